//! Serves the control endpoint under `/_sim/`, which queues faults and shows received calls.
//!
//! | request | effect |
//! |---|---|
//! | `POST /_sim/faults` `{"model", "faults", "times"}` | queues a script for the next calls of a model (`*`: of any model; the default of `times` is 1) |
//! | `GET /_sim/faults` | `{"faults": [...]}`, the queue |
//! | `DELETE /_sim/faults` | empties the queue |
//! | `GET /_sim/calls` | `{"calls": [...]}`, the logged calls, oldest first |
//! | `GET /_sim/calls/count` | `{"count"}` of the logged calls, and the totals since the start |
//! | `GET /_sim/tasks` | `{"tasks": [...]}`, the content tasks with their state and billing |
//! | `DELETE /_sim/calls` | drops the logged calls; the totals stay |
//!
//! `GET` of `calls` and `calls/count` takes `?model=NAME` (the name without its script), `?end=END`
//! (`open completed cancelled cut reset broken`) and `?last=N`.

use crate::call_log::{Call, CallEnd, Counts};
use crate::content_task::TaskRecord;
use crate::fault::QueuedFaults;
use crate::percent::decoded;
use crate::reply::Reply;
use crate::serve::State;
use bytes::Bytes;
use http::request::Parts;
use http::{Method, StatusCode};
use serde::{Deserialize, Serialize};

pub(crate) const REQUEST_BYTES_MAX: usize = 1 << 20;
const PREFIX: &str = "/_sim/";

/// Whether a path belongs to the control endpoint.
pub(crate) fn owns(path: &str) -> bool {
    path.starts_with(PREFIX)
}

pub(crate) fn answer(parts: &Parts, body: &Bytes, state: &State) -> Reply {
    let path = parts.uri.path().strip_prefix(PREFIX).unwrap_or_default();
    let filter = match Filter::read(parts.uri.query().unwrap_or_default()) {
        Ok(filter) => filter,
        Err(why) => return failure(StatusCode::BAD_REQUEST, &why),
    };
    match (&parts.method, path) {
        (&Method::POST, "faults") => queue_faults(body, state),
        (&Method::GET, "faults") => {
            #[derive(Serialize)]
            struct QueueAnswer {
                faults: Vec<QueuedFaults>,
            }
            json(&QueueAnswer {
                faults: state.queue.rows(),
            })
        }
        (&Method::DELETE, "faults") => {
            state.queue.clear();
            done()
        }
        (&Method::GET, "calls") => {
            #[derive(Serialize)]
            struct CallsAnswer {
                calls: Vec<Call>,
            }
            json(&CallsAnswer {
                calls: filter.calls(state),
            })
        }
        (&Method::GET, "calls/count") => {
            #[derive(Serialize)]
            struct Count {
                count: usize,
                #[serde(flatten)]
                totals: Counts,
            }
            json(&Count {
                count: filter.calls(state).len(),
                totals: state.calls.counts(),
            })
        }
        (&Method::GET, "tasks") => {
            #[derive(Serialize)]
            struct TasksAnswer {
                tasks: Vec<TaskRecord>,
            }
            json(&TasksAnswer {
                tasks: state.content_tasks.records(),
            })
        }
        (&Method::DELETE, "calls") => {
            state.calls.forget();
            done()
        }
        _ => failure(StatusCode::NOT_FOUND, "no such control endpoint"),
    }
}

fn queue_faults(body: &Bytes, state: &State) -> Reply {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct QueueRequest {
        model: String,
        faults: String,
        #[serde(default = "once")]
        times: u32,
    }
    fn once() -> u32 {
        1
    }
    let request: QueueRequest = match serde_json::from_slice(body) {
        Ok(request) => request,
        Err(error) => return failure(StatusCode::BAD_REQUEST, &error.to_string()),
    };
    let row = QueuedFaults {
        model: request.model,
        faults: request.faults,
        times: request.times,
    };
    match state.queue.push(row) {
        Ok(()) => done(),
        Err(error) => failure(StatusCode::BAD_REQUEST, &error.into_script().to_string()),
    }
}

/// Selects calls of the log.
#[derive(Debug, Default, PartialEq, Eq)]
struct Filter {
    model: Option<String>,
    end: Option<CallEnd>,
    last: Option<usize>,
}

impl Filter {
    fn read(query: &str) -> Result<Self, String> {
        let mut filter = Self::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            match name {
                "model" => filter.model = Some(decoded(value)),
                "end" => {
                    let end = serde_json::Value::String(value.to_owned());
                    filter.end = Some(
                        serde_json::from_value(end).map_err(|_| format!("no such end: {value}"))?,
                    );
                }
                "last" => {
                    filter.last = Some(
                        value
                            .parse()
                            .map_err(|_| format!("last is not a number: {value}"))?,
                    );
                }
                _ => return Err(format!("no such filter: {name}")),
            }
        }
        Ok(filter)
    }

    fn calls(&self, state: &State) -> Vec<Call> {
        let mut calls = state.calls.rows(self.model.as_deref());
        if let Some(end) = self.end {
            calls.retain(|call| call.end == end);
        }
        if let Some(last) = self.last {
            let skip = calls.len().saturating_sub(last);
            calls.drain(..skip);
        }
        calls
    }
}

fn json(value: &impl Serialize) -> Reply {
    match serde_json::to_vec(value) {
        Ok(body) => Reply::json(StatusCode::OK, body),
        Err(error) => failure(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

fn done() -> Reply {
    Reply::json(StatusCode::OK, r#"{"ok":true}"#)
}

fn failure(status: StatusCode, why: &str) -> Reply {
    let body = serde_json::json!({ "error": why });
    Reply::json(status, body.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_read() {
        let read = |query| Filter::read(query);
        assert_eq!(read(""), Ok(Filter::default()));
        assert_eq!(
            read("model=a%2Fb&end=cancelled&last=3"),
            Ok(Filter {
                model: Some("a/b".to_owned()),
                end: Some(CallEnd::Cancelled),
                last: Some(3),
            })
        );
        for query in ["last=x", "end=never", "colour=red"] {
            assert!(read(query).is_err(), "{query}");
        }
    }
}
