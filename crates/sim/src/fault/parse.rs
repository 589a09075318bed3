//! Parses scripts. The module documentation of `fault` has the grammar.

use super::script::{BreakKind, Script, SubstituteReply, UsageFault};
use super::value::{
    count, duration, flag, hosted, names, number, required_value, status, stop, usage, vendor,
    wrong_type,
};
use crate::habit::VendorRefusal;
use std::fmt;

/// Limits for the sizes and counts that a script may ask for.
const BYTES_MAX: usize = 64 << 20;
const CHUNKS_MAX: usize = 1_000_000;
const PARTS_MAX: usize = 32;

/// The error for a script that cannot be parsed or queued. The text has the reason, and the part if one part is wrong.
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

/// Splits the name of an upstream model into the name itself and its script.
pub(crate) fn split_model(model: &str) -> (&str, &str) {
    model.split_once('+').unwrap_or((model, ""))
}

impl Script {
    /// Applies the parts of a text to the script. They override earlier parts, so queued faults take precedence over
    /// those in the model name.
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
            "hang" => self.stop = Some(stop(BreakKind::Hang, value)?),
            "reset" => self.stop = Some(stop(BreakKind::Reset, value)?),
            "cut" => self.stop = Some(stop(BreakKind::Cut, value)?),
            "truncate" => self.stop = Some(stop(BreakKind::Truncate, value)?),
            "pieces" => self.pieces = Some(number(value, 1, BYTES_MAX)?),
            "status" => self.substitute = Some(SubstituteReply::Status(status(value)?)),
            "error-in-200" => self.substitute = Some(flag(value, SubstituteReply::ErrorIn200)?),
            "garbage" => self.substitute = Some(flag(value, SubstituteReply::Garbage)?),
            "wrong-type" => self.substitute = Some(wrong_type(value)?),
            "empty-object" => self.substitute = Some(flag(value, SubstituteReply::EmptyObject)?),
            "endless-line" => self.substitute = Some(flag(value, SubstituteReply::EndlessLine)?),
            "no-such-model" => self.substitute = Some(vendor(value, VendorRefusal::no_such_model)?),
            "context-overflow" => {
                self.substitute = Some(vendor(value, VendorRefusal::context_overflow)?);
            }
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
            "finish" => self.finish = Some(required_value(value)?.to_owned()),
            "early-content" => self.events.early_content = flag(value, true)?,
            "blocked" => self.text.blocked = Some(value.unwrap_or("SAFETY").to_owned()),
            "continuation" => self.google.continuation = flag(value, true)?,
            "unsigned" => self.google.unsigned = flag(value, true)?,
            "no-call-ids" => self.google.no_call_ids = flag(value, true)?,
            "without" => self.habits.without = names(value)?,
            "no-event-lines" => self.habits.no_event_lines = flag(value, true)?,
            "late-done" => self.habits.late_done = flag(value, true)?,
            "flat-end" => self.habits.flat_end = flag(value, true)?,
            "tool-use" => self.google.tool_use_tokens = Some(count(value)?),
            _ => return Err("no such fault".to_owned()),
        }
        Ok(())
    }
}

/// The group of a part. Only one part of a group is allowed, because the parts of a group exclude each other.
fn group_of(name: &str) -> &str {
    match name {
        "hang" | "reset" | "cut" | "truncate" => "hang, reset, cut or truncate",
        "status" | "error-in-200" | "garbage" | "wrong-type" | "empty-object" | "endless-line"
        | "no-such-model" | "context-overflow" => "an answer's substitute",
        "no-usage" => "usage",
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::super::script::{
        BreakOff, BreakPoint, Delays, EventFaults, GoogleOptions, Reasoning, Status, TextFaults,
    };
    use super::*;
    use std::time::Duration;

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
        let times = |change: fn(&mut Delays)| with(|script| change(&mut script.times));
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
            ("hang=head", BreakKind::Hang, BreakPoint::Head),
            ("hang=body", BreakKind::Hang, BreakPoint::Byte(0)),
            ("reset=content", BreakKind::Reset, BreakPoint::Content),
            ("cut=1000", BreakKind::Cut, BreakPoint::Byte(1000)),
            ("truncate=7", BreakKind::Truncate, BreakPoint::Byte(7)),
        ] {
            let expected = with(|script| script.stop = Some(BreakOff { how, place }));
            assert_eq!(parsed(&format!("m+{text}")), Ok(expected), "{text}");
        }
        let combined = parsed("m+delay=5ms+pieces=1+cut=9").unwrap();
        assert_eq!(combined.times.delay, millis(5));
        assert_eq!(combined.pieces, Some(1));
        assert!(combined.stop.is_some());
    }

    #[test]
    fn substitutes_are_read() {
        for (text, substitute) in [
            (
                "status=503",
                SubstituteReply::Status(Status {
                    code: 503,
                    retry_after_s: None,
                }),
            ),
            (
                "status=429:retry-after=7",
                SubstituteReply::Status(Status {
                    code: 429,
                    retry_after_s: Some(7),
                }),
            ),
            ("error-in-200", SubstituteReply::ErrorIn200),
            ("garbage", SubstituteReply::Garbage),
            ("wrong-type", SubstituteReply::HtmlPage),
            ("wrong-type=swapped", SubstituteReply::Swapped),
            ("empty-object", SubstituteReply::EmptyObject),
            ("endless-line", SubstituteReply::EndlessLine),
        ] {
            let expected = with(|script| script.substitute = Some(substitute));
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
            events: EventFaults {
                garbage_after: Some(0),
                error_after: Some(3),
                failure_after: Some(4),
                no_done: true,
                no_finish: true,
                early_content: true,
            },
            usage: UsageFault::Missing,
            text: TextFaults {
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
            GoogleOptions {
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
            ("costed", UsageFault::Costed),
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
            ("no-such-model=nobody", "no-such-model=nobody"),
            ("context-overflow", "context-overflow"),
            ("without", "without"),
            ("status=400+no-such-model=openai", "no-such-model=openai"),
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
            Some(BreakOff {
                how: BreakKind::Reset,
                place: BreakPoint::Head
            })
        );
        assert_eq!(script.times.delay, Some(Duration::from_secs(1)));
    }
}
