//! Reads the grammar of scripts; see the module above.

use super::script::{How, Instead, Place, Script, Status, Stop, UsageFault};
use std::fmt;
use std::time::Duration;

const DURATION_MAX: Duration = Duration::from_secs(3600);
/// The longest text, event and count that a script may ask for.
const BYTES_MAX: usize = 64 << 20;
const CHUNKS_MAX: usize = 1_000_000;
const PARTS_MAX: usize = 32;
/// Calls of one tool of the upstream's own.
const HOSTED_MAX: usize = 1_000;

/// A script that cannot be read; the text says which part and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptError(String);

impl ScriptError {
    pub(super) fn new(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ScriptError {}

/// Cuts an upstream model name into the name proper and the text of its script.
pub(crate) fn split_model(model: &str) -> (&str, &str) {
    model.split_once('+').unwrap_or((model, ""))
}

impl Script {
    /// Adds the parts of a text to a script. Parts of the text override what stood before, so
    /// queued faults win over those of the model name.
    pub(crate) fn apply(&mut self, text: &str) -> Result<(), ScriptError> {
        let mut seen: Vec<&str> = Vec::new();
        for part in text.split('+').filter(|part| !part.is_empty()) {
            let (name, value) = match part.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (part, None),
            };
            let group = group_of(name);
            if seen.contains(&group) {
                return Err(ScriptError(format!(
                    "fault '{part}': '{group}' is given twice"
                )));
            }
            if seen.len() >= PARTS_MAX {
                return Err(ScriptError(format!("more than {PARTS_MAX} faults")));
            }
            seen.push(group);
            self.apply_part(name, value)
                .map_err(|why| ScriptError(format!("fault '{part}': {why}")))?;
        }
        Ok(())
    }

    fn apply_part(&mut self, name: &str, value: Option<&str>) -> Result<(), String> {
        match name {
            "delay" => self.times.delay = Some(duration(value)?),
            "first-byte" => self.times.first_byte = Some(duration(value)?),
            "chunk-delay" => self.times.chunk_delay = Some(duration(value)?),
            "slow-usage" => self.times.slow_usage = Some(duration(value)?),
            "hang" => self.stop = Some(stop(How::Hang, value)?),
            "reset" => self.stop = Some(stop(How::Reset, value)?),
            "cut" => self.stop = Some(stop(How::Cut, value)?),
            "truncate" => self.stop = Some(stop(How::Truncate, value)?),
            "pieces" => self.pieces = Some(number(value, 1, BYTES_MAX)?),
            "status" => self.instead = Some(Instead::Status(status(value)?)),
            "error-in-200" => self.instead = Some(flag(value, Instead::ErrorIn200)?),
            "garbage" => self.instead = Some(flag(value, Instead::Garbage)?),
            "wrong-type" => self.instead = Some(wrong_type(value)?),
            "empty-object" => self.instead = Some(flag(value, Instead::EmptyObject)?),
            "endless-line" => self.instead = Some(flag(value, Instead::EndlessLine)?),
            "garbage-event" => self.events.garbage_after = Some(count(value)?),
            "error-event" => self.events.error_after = Some(count(value)?),
            "failure-event" => self.events.failure_after = Some(count(value)?),
            "no-done" => self.events.no_done = flag(value, true)?,
            "no-finish" => self.events.no_finish = flag(value, true)?,
            "no-usage" => self.usage = flag(value, UsageFault::Missing)?,
            "usage" => self.usage = usage(value)?,
            "invalid-utf8" => self.text.invalid_utf8 = flag(value, true)?,
            "huge-event" => self.text.huge_event_bytes = Some(number(value, 1, BYTES_MAX)?),
            "chunks" => self.text.chunks = Some(number(value, 1, CHUNKS_MAX)?),
            "reply-bytes" => self.text.bytes = Some(number(value, 1, BYTES_MAX)?),
            "refuse" => self.text.refuse = Some(value.unwrap_or_default().to_owned()),
            "redacted" => self.reasoning.redacted = flag(value, true)?,
            "ignore-limit" => self.text.ignore_limit = flag(value, true)?,
            "content-filter" => self.text.content_filter = flag(value, true)?,
            "cached" => self.cached = Some(count(value)?),
            "cache-write" => self.cache_write = Some(count(value)?),
            "searches" => self.hosted.searches = hosted(value)?,
            "fetches" => self.hosted.fetches = hosted(value)?,
            "code-runs" => self.hosted.code_runs = hosted(value)?,
            "file-searches" => self.hosted.file_searches = hosted(value)?,
            "interleaved" => self.reasoning.interleaved = flag(value, true)?,
            "demand-reasoning" => self.reasoning.demanded = flag(value, true)?,
            "strict" => self.strict = flag(value, true)?,
            "finish" => self.finish = Some(needed(value)?.to_owned()),
            "early-content" => self.events.early_content = flag(value, true)?,
            "blocked" => self.text.blocked = Some(value.unwrap_or("SAFETY").to_owned()),
            "continuation" => self.google.continuation = flag(value, true)?,
            "unsigned" => self.google.unsigned = flag(value, true)?,
            "no-call-ids" => self.google.no_call_ids = flag(value, true)?,
            "tool-use" => self.google.tool_use_tokens = Some(count(value)?),
            _ => return Err("no such fault".to_owned()),
        }
        Ok(())
    }
}

/// Parts that exclude each other share a group.
fn group_of(name: &str) -> &str {
    match name {
        "hang" | "reset" | "cut" | "truncate" => "hang, reset, cut or truncate",
        "status" | "error-in-200" | "garbage" | "wrong-type" | "empty-object" | "endless-line" => {
            "an answer's substitute"
        }
        "no-usage" => "usage",
        _ => name,
    }
}

fn needed(value: Option<&str>) -> Result<&str, String> {
    value
        .filter(|value| !value.is_empty())
        .ok_or_else(|| "needs a value".to_owned())
}

fn flag<T>(value: Option<&str>, set: T) -> Result<T, String> {
    match value {
        None => Ok(set),
        Some(_) => Err("takes no value".to_owned()),
    }
}

fn hosted(value: Option<&str>) -> Result<u64, String> {
    number(value, 0, HOSTED_MAX).map(|calls| calls as u64)
}

fn duration(value: Option<&str>) -> Result<Duration, String> {
    let value = needed(value)?;
    let unit_at = value
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(value.len());
    let (digits, unit) = value.split_at(unit_at);
    let number = digits.parse().ok();
    let duration = match unit {
        "ms" => number.map(Duration::from_millis),
        "s" => number.map(Duration::from_secs),
        "m" => number
            .and_then(|minutes: u64| minutes.checked_mul(60))
            .map(Duration::from_secs),
        _ => None,
    };
    duration
        .filter(|duration| *duration <= DURATION_MAX)
        .ok_or_else(|| "needs a duration such as 200ms, 2s or 1m, at most an hour".to_owned())
}

fn stop(how: How, value: Option<&str>) -> Result<Stop, String> {
    let place = match needed(value)? {
        "head" if how == How::Truncate => return Err("needs a place in the body".to_owned()),
        "head" => Place::Head,
        "body" => Place::Byte(0),
        "content" => Place::Content,
        bytes => Place::Byte(
            bytes
                .parse()
                .map_err(|_| "needs head, body, content or a number of bytes".to_owned())?,
        ),
    };
    Ok(Stop { how, place })
}

fn number(value: Option<&str>, min: usize, max: usize) -> Result<usize, String> {
    needed(value)?
        .parse()
        .ok()
        .filter(|number| (min..=max).contains(number))
        .ok_or_else(|| format!("needs a number from {min} to {max}"))
}

fn count(value: Option<&str>) -> Result<u64, String> {
    needed(value)?
        .parse()
        .map_err(|_| "needs a number".to_owned())
}

fn status(value: Option<&str>) -> Result<Status, String> {
    let value = needed(value)?;
    let (code, more) = match value.split_once(':') {
        Some((code, more)) => (code, Some(more)),
        None => (value, None),
    };
    let code = code
        .parse()
        .ok()
        .filter(|code| (300..600).contains(code))
        .ok_or_else(|| "needs a status from 300 to 599".to_owned())?;
    let retry_after_s = match more {
        None => None,
        Some(more) => Some(
            more.strip_prefix("retry-after=")
                .and_then(|seconds| seconds.parse().ok())
                .ok_or_else(|| "only ':retry-after=SECONDS' may follow".to_owned())?,
        ),
    };
    Ok(Status {
        code,
        retry_after_s,
    })
}

fn wrong_type(value: Option<&str>) -> Result<Instead, String> {
    match value {
        None | Some("html") => Ok(Instead::HtmlPage),
        Some("swapped") => Ok(Instead::Swapped),
        Some(_) => Err("is html or swapped".to_owned()),
    }
}

fn usage(value: Option<&str>) -> Result<UsageFault, String> {
    Ok(match needed(value)? {
        "zero" => UsageFault::Zero,
        "negative" => UsageFault::Negative,
        "huge" => UsageFault::Huge,
        "overflow" => UsageFault::Overflow,
        "string" => UsageFault::Text,
        "fraction" => UsageFault::Fraction,
        "shrinking" => UsageFault::Shrinking,
        "running" => UsageFault::Running,
        "on-finish" => UsageFault::OnFinish,
        "unasked" => UsageFault::Unasked,
        _ => {
            return Err(
                "is zero, negative, huge, overflow, string, fraction, shrinking, \
                        running, on-finish or unasked"
                    .to_owned(),
            );
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::script::{Events, Google, Reasoning, Text, Times};
    use super::*;

    fn parsed(model: &str) -> Result<Script, ScriptError> {
        let (_, text) = split_model(model);
        let mut script = Script::default();
        script.apply(text)?;
        Ok(script)
    }

    fn with(change: impl FnOnce(&mut Script)) -> Script {
        let mut script = Script::default();
        change(&mut script);
        script
    }

    #[test]
    fn the_name_stands_before_the_first_plus() {
        for (model, name, text) in [
            ("sim-chat", "sim-chat", ""),
            ("sim-chat+delay=1s", "sim-chat", "delay=1s"),
            ("a/b:c+no-usage+cut=3", "a/b:c", "no-usage+cut=3"),
            ("+x", "", "x"),
        ] {
            assert_eq!(split_model(model), (name, text));
        }
    }

    #[test]
    fn times_and_stops_are_read() {
        let millis = |ms| Some(Duration::from_millis(ms));
        let times = |change: fn(&mut Times)| with(|script| change(&mut script.times));
        for (text, expected) in [
            ("", Script::default()),
            (
                "delay=200ms",
                times(|t| t.delay = Some(Duration::from_millis(200))),
            ),
            (
                "first-byte=2s",
                times(|t| t.first_byte = Some(Duration::from_secs(2))),
            ),
            (
                "slow-usage=1m",
                times(|t| t.slow_usage = Some(Duration::from_secs(60))),
            ),
            (
                "chunk-delay=0ms",
                times(|t| t.chunk_delay = Some(Duration::ZERO)),
            ),
        ] {
            assert_eq!(parsed(&format!("m+{text}")), Ok(expected), "{text}");
        }
        for (text, how, place) in [
            ("hang=head", How::Hang, Place::Head),
            ("hang=body", How::Hang, Place::Byte(0)),
            ("reset=content", How::Reset, Place::Content),
            ("cut=1000", How::Cut, Place::Byte(1000)),
            ("truncate=7", How::Truncate, Place::Byte(7)),
        ] {
            let expected = with(|script| script.stop = Some(Stop { how, place }));
            assert_eq!(parsed(&format!("m+{text}")), Ok(expected), "{text}");
        }
        let combined = parsed("m+delay=5ms+pieces=1+cut=9").unwrap();
        assert_eq!(combined.times.delay, millis(5));
        assert_eq!(combined.pieces, Some(1));
        assert!(combined.stop.is_some());
    }

    #[test]
    fn substitutes_are_read() {
        for (text, instead) in [
            (
                "status=503",
                Instead::Status(Status {
                    code: 503,
                    retry_after_s: None,
                }),
            ),
            (
                "status=429:retry-after=7",
                Instead::Status(Status {
                    code: 429,
                    retry_after_s: Some(7),
                }),
            ),
            ("error-in-200", Instead::ErrorIn200),
            ("garbage", Instead::Garbage),
            ("wrong-type", Instead::HtmlPage),
            ("wrong-type=swapped", Instead::Swapped),
            ("empty-object", Instead::EmptyObject),
            ("endless-line", Instead::EndlessLine),
        ] {
            let expected = with(|script| script.instead = Some(instead));
            assert_eq!(parsed(&format!("m+{text}")), Ok(expected), "{text}");
        }
    }

    #[test]
    fn parts_of_the_answer_are_read() {
        let script = parsed(
            "m+no-done+no-finish+error-event=3+failure-event=4+garbage-event=0+no-usage+huge-event=1000\
             +chunks=100+reply-bytes=5000+invalid-utf8+refuse+ignore-limit+content-filter+blocked+cached=8\
             +cache-write=9+strict+finish=OTHER+early-content+redacted+demand-reasoning+interleaved",
        );
        let expected = Script {
            events: Events {
                garbage_after: Some(0),
                error_after: Some(3),
                failure_after: Some(4),
                no_done: true,
                no_finish: true,
                early_content: true,
            },
            usage: UsageFault::Missing,
            text: Text {
                chunks: Some(100),
                bytes: Some(5000),
                huge_event_bytes: Some(1000),
                invalid_utf8: true,
                refuse: Some(String::new()),
                content_filter: true,
                ignore_limit: true,
                blocked: Some("SAFETY".to_owned()),
            },
            cached: Some(8),
            cache_write: Some(9),
            strict: true,
            finish: Some("OTHER".to_owned()),
            reasoning: Reasoning {
                redacted: true,
                demanded: true,
                interleaved: true,
            },
            ..Script::default()
        };
        assert_eq!(script, Ok(expected));
        let google = parsed("m+continuation+unsigned+no-call-ids+tool-use=7");
        assert_eq!(
            google.unwrap().google,
            Google {
                continuation: true,
                unsigned: true,
                no_call_ids: true,
                tool_use_tokens: Some(7),
            }
        );
        for (text, usage) in [
            ("zero", UsageFault::Zero),
            ("negative", UsageFault::Negative),
            ("huge", UsageFault::Huge),
            ("overflow", UsageFault::Overflow),
            ("string", UsageFault::Text),
            ("fraction", UsageFault::Fraction),
            ("shrinking", UsageFault::Shrinking),
            ("running", UsageFault::Running),
            ("on-finish", UsageFault::OnFinish),
            ("unasked", UsageFault::Unasked),
        ] {
            assert_eq!(parsed(&format!("m+usage={text}")).unwrap().usage, usage);
        }
    }

    #[test]
    fn a_bad_script_is_refused_by_name() {
        for (text, part) in [
            ("nonsense", "nonsense"),
            ("delay", "delay"),
            ("delay=5", "delay=5"),
            ("delay=5h", "delay=5h"),
            ("delay=99999m", "delay=99999m"),
            ("delay=307445734561825861m", "307445734561825861m"),
            ("hang=tail", "hang=tail"),
            ("truncate=head", "truncate=head"),
            ("status=200", "status=200"),
            ("status=429:after=7", "status=429:after=7"),
            ("no-usage=1", "no-usage=1"),
            ("pieces=0", "pieces=0"),
            ("reply-bytes=99999999999", "reply-bytes=99999999999"),
            ("usage=odd", "usage=odd"),
            ("cut=-1", "cut=-1"),
            ("cut=1+reset=2", "reset=2"),
            ("no-usage+usage=zero", "usage=zero"),
            ("garbage+status=500", "status=500"),
            ("delay=1s+delay=2s", "delay=2s"),
        ] {
            let error = parsed(&format!("m+{text}")).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn later_texts_override_earlier_ones() {
        let mut script = parsed("m+cut=5+delay=1s").unwrap();
        script.apply("reset=head+usage=zero").unwrap();
        assert_eq!(
            script.stop,
            Some(Stop {
                how: How::Reset,
                place: Place::Head
            })
        );
        assert_eq!(script.times.delay, Some(Duration::from_secs(1)));
    }
}
