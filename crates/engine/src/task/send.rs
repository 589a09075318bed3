//! Sends the creation of a task to the upstream, once.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use protocol::video::{Cause, CreationRequest, CreationResult, CreationTarget};
use protocol::{Code, Failure};
use store::{End, RequestId, TaskAccepted, TaskRow, TaskUpstream};
use upstream::{Endpoint, Sent, UpstreamRequest};

use super::poll_answer::PollAnswer;
use super::protocols::TaskProtocol;
use crate::call::attempt::Attempt;
use crate::call::collect_body::CollectError;
use crate::call::open_record::OpenRecord;
use crate::call::progress::Progress;
use crate::call::record::Record;
use crate::call::route_failure::RouteFailure;
use crate::call::route_plan::RoutePlan;
use crate::catalog::{Model, Route};
use crate::clock;
use crate::engine::Engine;
use crate::failures::no_memory_for;

/// The time limit for an upstream to accept a task.
const ACCEPT_WITHIN: Duration = Duration::from_secs(120);
/// The time limit for an upstream that returns the result in its answer.
const BLOCK_WITHIN: Duration = Duration::from_secs(30 * 60);
/// The lease of the creating node. It is longer than `ACCEPT_WITHIN` plus the write of the answer. A longer creation
/// renews it.
pub(super) const CREATION_LEASE: Duration = Duration::from_secs(180);
/// The maximum size of the answer to a creation, without and with the result.
const ACCEPTED_BYTES_MAX: usize = 1 << 20;
const RESULT_BYTES_MAX: usize = 64 << 20;
/// The number of attempts to store an accepted task while the store does not answer.
const STORE_ID_TRIES: u32 = 5;
const STORE_ID_PAUSE: Duration = Duration::from_millis(200);
/// The message of a task whose creation was never answered.
pub(super) const UNKNOWN: &str = "The upstream did not say whether it accepted the task.";

/// A task whose row is durable and that is being sent to an upstream.
pub(super) struct Sender {
    pub(super) engine: Arc<Engine>,
    pub(super) protocol: TaskProtocol,
    pub(super) request: Box<dyn CreationRequest>,
    pub(super) endpoint: Endpoint,
    pub(super) model: Arc<Model>,
    pub(super) plan: RoutePlan,
    pub(super) draft: Option<Box<str>>,
    pub(super) row: TaskRow,
    /// The request id of the creation, for log lines.
    pub(super) request_id: RequestId,
}

/// The failure of a creation, and how the hold of the task is closed.
pub(super) struct CreationFailure {
    pub(super) failure: Failure,
    pub(super) end: &'static str,
}

/// An accepted creation, and the upstream that runs its task.
type AcceptedTask = (CreationResult, TaskUpstream);

/// The error for a creation that no upstream has accepted.
#[derive(Debug)]
enum Unaccepted {
    /// The upstream refused the creation. There is no task.
    Refused(Failure),
    /// No byte of the request was sent.
    Unsent(Failure),
    /// It is unknown whether the upstream has created a task.
    Unknown(Failure),
}

impl Unaccepted {
    /// The failure of the route. Another route is tried only if no byte was sent (T3).
    fn route_failure(&self) -> RouteFailure {
        match self {
            Self::Unsent(failure) => RouteFailure::try_next(failure.clone()),
            Self::Refused(failure) | Self::Unknown(failure) => RouteFailure::stop(failure.clone()),
        }
    }
}

impl Sender {
    /// Sends the creation while its caller waits. If it is refused, the caller gets the refusal and there is no task.
    pub(super) async fn send(&mut self, record: &mut OpenRecord) -> Result<(), CreationFailure> {
        match self.try_routes(Some(record), ACCEPT_WITHIN).await {
            Ok((accepted, upstream)) => self.handle_accepted(accepted, upstream).await,
            Err(Unaccepted::Refused(failure) | Unaccepted::Unsent(failure)) => {
                self.undo_creation().await;
                let end = "released";
                Err(CreationFailure { failure, end })
            }
            Err(Unaccepted::Unknown(failure)) => {
                self.fail(Cause::Ambiguous, UNKNOWN, End::Abandoned).await;
                // The client must not retry automatically.
                Err(CreationFailure {
                    failure: failure.should_retry(false),
                    end: "abandoned",
                })
            }
        }
    }

    /// Sends the creation after the caller has been answered. The task then shows the result.
    pub(super) async fn send_after_answer(mut self) {
        let engine = Arc::clone(&self.engine);
        let claim = self.row.claim;
        let sending = self.try_routes(None, BLOCK_WITHIN);
        let Some(sending) = engine.while_claimed(claim, CREATION_LEASE, sending).await else {
            // Nobody will read the answer. If another node has claimed the task, this call changes nothing.
            return self.fail(Cause::Ambiguous, UNKNOWN, End::Abandoned).await;
        };
        match sending {
            Ok((accepted, upstream)) => {
                // If the result cannot be stored, the task ends when its lease expires.
                let _ = self.handle_accepted(accepted, upstream).await;
            }
            Err(Unaccepted::Refused(failure)) => {
                let cause = cause_of(failure.code);
                self.fail(cause, &failure.message, End::Released).await;
            }
            Err(Unaccepted::Unsent(failure)) => {
                let cause = Cause::Unreachable;
                self.fail(cause, &failure.message, End::Released).await;
            }
            Err(Unaccepted::Unknown(_)) => {
                self.fail(Cause::Ambiguous, UNKNOWN, End::Abandoned).await;
            }
        }
    }

    /// Tries one route after another until one has accepted the task or may have accepted it.
    async fn try_routes(
        &mut self,
        mut record: Option<&mut OpenRecord>,
        within: Duration,
    ) -> Result<AcceptedTask, Unaccepted> {
        let nobody_leaves = Progress::new(&self.engine);
        let mut last = Unaccepted::Unsent(Failure::upstream_error());
        while let Some(route) = self.plan.next(&nobody_leaves, &mut record) {
            let header = record.as_ref().and_then(|it| it.traceparent(&route));
            match self.send_to(&route, header, within).await {
                Ok(accepted) => {
                    if let Some(record) = record {
                        record.update_record(Record::upstream_answered);
                    }
                    return Ok(accepted);
                }
                Err(unaccepted) => {
                    let failed = unaccepted.route_failure();
                    self.plan.attempt_failed(failed, &mut record);
                    last = unaccepted;
                }
            }
        }
        Err(last)
    }

    async fn send_to(
        &self,
        route: &Route,
        traceparent: Option<HeaderValue>,
        within: Duration,
    ) -> Result<AcceptedTask, Unaccepted> {
        let mut attempt = Attempt::over(route).of_call(self.request_id);
        let target = CreationTarget {
            model: &route.model,
            draft: self.draft.as_deref(),
        };
        let body = self.request.write(&target);
        let body = body.map_err(Unaccepted::Refused)?;
        let mut outgoing = UpstreamRequest::json(self.endpoint, Arc::clone(&route.model), body);
        outgoing.traceparent = traceparent;
        let bytes_max = if self.protocol.video.is_blocking() {
            RESULT_BYTES_MAX
        } else {
            ACCEPTED_BYTES_MAX
        };
        let exchange = async {
            let incoming = route.channel.send(&outgoing).await?;
            let status = incoming.status;
            if !(200..300).contains(&status) {
                return Ok(Err((status, incoming)));
            }
            let budget = &self.engine.task_budget;
            Ok(Ok(PollAnswer::collect_body(
                incoming.body,
                bytes_max,
                budget,
            )
            .await?))
        };
        let answered: Result<Result<_, CollectError>, _> =
            tokio::time::timeout(within, exchange).await;
        let Ok(answered) = answered else {
            attempt.report(upstream::CallOutcome::Failed);
            return Err(Unaccepted::Unknown(Failure::upstream_timeout()));
        };
        match answered {
            Err(CollectError::NoMemory) => Err(Unaccepted::Unknown(no_memory_for("this answer"))),
            Err(CollectError::TooLarge) => Err(too_large(route, &mut attempt, bytes_max)),
            Err(CollectError::Lost(error)) => {
                let unsent = error.sent == Sent::No;
                let failure = RouteFailure::lost(route, &error, &mut attempt).failure;
                if unsent {
                    Err(Unaccepted::Unsent(failure))
                } else {
                    Err(Unaccepted::Unknown(failure))
                }
            }
            Ok(Err((status, incoming))) => {
                attempt.report(upstream::CallOutcome::of_status(
                    status,
                    incoming.retry_after,
                ));
                let failed = RouteFailure::refused(
                    route,
                    &self.model.id,
                    self.endpoint,
                    &outgoing.body,
                    incoming,
                    attempt.request_id(),
                )
                .await;
                // A 408 is a timeout, not a decision about the request.
                if (400..500).contains(&status) && status != 408 {
                    Err(Unaccepted::Refused(failed.failure))
                } else {
                    Err(Unaccepted::Unknown(failed.failure))
                }
            }
            Ok(Ok(answer)) => {
                let name = self.row.claim.task.to_string();
                let mut task = self.engine.task_of(&self.row, &name);
                task.upstream_model = &route.model;
                task.hidden = route.channel.identity();
                let mut accepted = self.protocol.video.read_creation(answer.body(), &task);
                let id = match &mut accepted {
                    CreationResult::Follow(id) => id.as_str().into(),
                    CreationResult::Delivered(delivery) => {
                        answer.deliver(delivery);
                        "".into()
                    }
                    CreationResult::Ended(_) => "".into(),
                    CreationResult::Unclear => {
                        attempt.report(upstream::CallOutcome::Failed);
                        return Err(Unaccepted::Unknown(Failure::upstream_error()));
                    }
                };
                attempt.report(upstream::CallOutcome::Served);
                let upstream = TaskUpstream {
                    channel: route.channel.name().into(),
                    model: (&*route.model).into(),
                    id,
                };
                Ok((accepted, upstream))
            }
        }
    }

    /// Handles a task that the upstream has accepted or has already finished.
    async fn handle_accepted(
        &mut self,
        accepted: CreationResult,
        upstream: TaskUpstream,
    ) -> Result<(), CreationFailure> {
        match accepted {
            CreationResult::Follow(_) => self.store_upstream_id(upstream).await,
            CreationResult::Delivered(delivery) => {
                self.row.upstream = Some(upstream);
                self.engine
                    .copy_and_end(&mut self.row, self.protocol, delivery)
                    .await;
                Ok(())
            }
            CreationResult::Ended(outcome) => {
                self.row.upstream = Some(upstream);
                self.engine.end_as_reported(&self.row, outcome).await;
                Ok(())
            }
            CreationResult::Unclear => Ok(()),
        }
    }

    /// Stores the upstream's id of the task. The caller is answered when the id is durable.
    async fn store_upstream_id(&self, upstream: TaskUpstream) -> Result<(), CreationFailure> {
        let accepted = TaskAccepted {
            claim: self.row.claim,
            upstream,
            next_in: self.engine.settings.tasks.poll_first,
            now: clock::steady(),
        };
        for tried in 1..=STORE_ID_TRIES {
            match self.engine.store.accept_task(accepted.clone()).await {
                Ok(true) => return Ok(()),
                // The creation took longer than its lease.
                Ok(false) => break,
                Err(error) => {
                    let task = accepted.claim.task;
                    tracing::warn!(%error, %task, tried, "an accepted task could not be stored");
                    tokio::time::sleep(STORE_ID_PAUSE * tried).await;
                }
            }
        }
        let failure = Failure::unavailable("The task could not be recorded.");
        Err(CreationFailure {
            failure: failure.should_retry(false),
            end: "abandoned",
        })
    }

    /// Removes the row and releases the hold, because there is no task at the upstream.
    async fn undo_creation(&self) {
        let claim = self.row.claim;
        if let Err(error) = self.engine.store.refuse_task(claim, clock::steady()).await {
            // The row stays. The task ends when its lease expires, like a task whose creation was never answered.
            tracing::warn!(%error, task = %claim.task, "the row of a refused task could not be removed; it ends with its lease");
        }
    }

    async fn fail(&self, cause: Cause, message: &str, end: End) {
        let name = self.row.claim.task.to_string();
        let task = self.engine.task_of(&self.row, &name);
        let outcome = self.protocol.video.write_failed(&task, cause, message);
        self.engine.end(&self.row, outcome, end).await;
    }
}

/// The error for an upstream whose answer to the creation exceeds its limit.
fn too_large(route: &Route, attempt: &mut Attempt<'_>, bytes_max: usize) -> Unaccepted {
    attempt.report(upstream::CallOutcome::Failed);
    tracing::warn!(
        request_id = attempt.request_id(),
        channel = route.channel.name(),
        bytes_max,
        "the answer to a creation is too large"
    );
    Unaccepted::Unknown(Failure::upstream_error())
}

/// The cause that the task reports for a refusal.
fn cause_of(code: Code) -> Cause {
    match code {
        Code::UpstreamOverloaded => Cause::Overloaded,
        Code::UpstreamError | Code::UpstreamTimeout => Cause::Upstream,
        _ => Cause::Refused,
    }
}
