//! Reads and writes the usage object of Messages, where cached input is not part of `input_tokens`.

use crate::json::write::Object;
use crate::json::{Cursor, Raw, Shape, SyntaxError};
use crate::usage::{Compaction, Usage, count};

/// Reads a usage object. In a stream the first report has the input, and the last report has the output and
/// replaces values of the first. `before` is the report so far.
pub(crate) fn read_usage(usage: Raw<'_>, before: Option<Usage>) -> Option<Usage> {
    let mut input = before.map(|before| before.input);
    let mut output = before.map(|before| before.output);
    let mut report = before.unwrap_or_default();
    // A report without iterations does not change the counts of compaction.
    let mut compaction = Some(report.compaction);
    let mut writes = None;
    let [mut short, mut long] = [None; 2];
    Cursor::new(usage.text())
        .object(|cursor, name| {
            if name.is("output_tokens_details") && cursor.shape()? == Shape::Object {
                return cursor.object(|cursor, name| {
                    let value = cursor.value()?;
                    if name.is("thinking_tokens") {
                        report.reasoning = count(value).unwrap_or(report.reasoning);
                    }
                    Ok(())
                });
            }
            if name.is("cache_creation") && cursor.shape()? == Shape::Object {
                return cursor.object(|cursor, name| {
                    let value = cursor.value()?;
                    if name.is("ephemeral_5m_input_tokens") {
                        short = count(value);
                    } else if name.is("ephemeral_1h_input_tokens") {
                        long = count(value);
                    }
                    Ok(())
                });
            }
            if name.is("server_tool_use") {
                return report.tools.read(cursor, "_requests");
            }
            if name.is("iterations") && cursor.shape()? == Shape::Array {
                compaction = Some(Compaction::default());
                return cursor.array(|cursor| {
                    let more = read_compaction(cursor.value()?);
                    compaction = compaction.zip(more).map(|(mut sum, more)| {
                        sum.add(&more);
                        sum
                    });
                    Ok(())
                });
            }
            let value = cursor.value()?;
            if value.is_null() {
                return Ok(());
            }
            match &*name.decode_lossy() {
                "input_tokens" => input = count(value),
                "output_tokens" => output = count(value),
                "cache_read_input_tokens" => {
                    report.cached_input = count(value).unwrap_or(report.cached_input);
                }
                "cache_creation_input_tokens" => writes = count(value),
                _ => {}
            }
            Ok::<(), SyntaxError>(())
        })
        .ok()?;
    report.input = input?;
    report.output = output?;
    report.compaction = compaction?;
    note_writes(&mut report, writes, short, long);
    report.reasoning = report.reasoning.min(report.output);
    Some(report)
}

/// Reads one step of an answer that took several steps. Returns the counts of a step that shortened the
/// conversation, because the report itself includes only the other steps. `None` if billing cannot use the
/// counts.
fn read_compaction(step: Raw<'_>) -> Option<Compaction> {
    if step.shape() != Shape::Object {
        return Some(Compaction::default());
    }
    let mut is_compaction = false;
    let mut counts = Some(Compaction::default());
    let mut writes = Some(0);
    Cursor::new(step.text())
        .object(|cursor, name| {
            if name.is("cache_creation") && cursor.shape()? == Shape::Object {
                return cursor.object(|cursor, name| {
                    let value = cursor.value()?;
                    if name.is("ephemeral_1h_input_tokens") {
                        note(&mut counts, value, |counts, count| {
                            counts.cache_write_1h = count;
                        });
                    }
                    Ok(())
                });
            }
            let value = cursor.value()?;
            match &*name.decode_lossy() {
                "type" => is_compaction = value.string().is_some_and(|it| it.is("compaction")),
                "input_tokens" => note(&mut counts, value, |counts, count| {
                    counts.input = count;
                }),
                "output_tokens" => note(&mut counts, value, |counts, count| {
                    counts.output = count;
                }),
                "cache_read_input_tokens" => {
                    note(&mut counts, value, |counts, count| {
                        counts.cached_input = count;
                    });
                }
                "cache_creation_input_tokens" if !value.is_null() => writes = count(value),
                _ => {}
            }
            Ok::<(), SyntaxError>(())
        })
        .ok()?;
    if !is_compaction {
        return Some(Compaction::default());
    }
    let (mut counts, writes) = counts.zip(writes)?;
    counts.cache_write_1h = counts.cache_write_1h.min(writes);
    counts.cache_write = writes - counts.cache_write_1h;
    Some(counts)
}

/// Notes one count, unless it is `null`. A count that cannot be used for billing makes all of them unusable.
fn note(counts: &mut Option<Compaction>, value: Raw<'_>, set: impl FnOnce(&mut Compaction, u64)) {
    if value.is_null() {
        return;
    }
    *counts = counts.zip(count(value)).map(|(mut counts, count)| {
        set(&mut counts, count);
        counts
    });
}

/// Whether a report contains the output. Otherwise the output of an earlier report stays, although that
/// report was written before the output was known.
pub(crate) fn has_output(usage: &str) -> bool {
    let mut found = false;
    let read = Cursor::new(usage).object(|cursor, name| {
        let value = cursor.value()?;
        found |= name.is("output_tokens") && !value.is_null();
        Ok::<(), SyntaxError>(())
    });
    read.is_ok() && found
}

/// Splits cache writes by how long they are kept. The reported total takes precedence over the sum
/// of its parts, so the classes never exceed it. A report without parts does not change the split.
fn note_writes(report: &mut Usage, total: Option<u64>, short: Option<u64>, long: Option<u64>) {
    let sum = match (short, long) {
        (None, None) => None,
        (short, long) => Some(short.unwrap_or(0).saturating_add(long.unwrap_or(0))),
    };
    let total = total.or(sum).unwrap_or(report.cache_writes());
    report.cache_write_1h = long.unwrap_or(report.cache_write_1h).min(total);
    report.cache_write = total - report.cache_write_1h;
}

pub(super) fn write_usage(it: &mut Object<'_>, usage: &Usage) {
    // This dialect counts images and audio as input tokens.
    let input = usage.input.saturating_add(usage.image_input);
    it.number("input_tokens", input.saturating_add(usage.audio_input));
    if usage.cache_writes() > 0 {
        it.number("cache_creation_input_tokens", usage.cache_writes());
    }
    if usage.cache_write_1h > 0 {
        it.object("cache_creation", |it| {
            it.number("ephemeral_5m_input_tokens", usage.cache_write);
            it.number("ephemeral_1h_input_tokens", usage.cache_write_1h);
        });
    }
    if usage.cached_input > 0 {
        it.number("cache_read_input_tokens", usage.cached_input);
    }
    it.number("output_tokens", usage.output_total());
    if usage.reasoning > 0 {
        it.object("output_tokens_details", |it| {
            it.number("thinking_tokens", usage.reasoning);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, before: Option<Usage>) -> Option<Usage> {
        read_usage(Cursor::new(text).value().unwrap(), before)
    }

    #[test]
    fn classes_do_not_overlap() {
        let text = r#"{"input_tokens":9,"cache_read_input_tokens":100,"cache_creation_input_tokens":20,
            "cache_creation":{"ephemeral_5m_input_tokens":20},"output_tokens":7,
            "output_tokens_details":{"thinking_tokens":5},"service_tier":"standard"}"#;
        let expected = Usage {
            input: 9,
            cached_input: 100,
            cache_write: 20,
            output: 7,
            reasoning: 5,
            ..Usage::default()
        };
        assert_eq!(read(text, None), Some(expected));
    }

    #[test]
    fn the_end_adds_to_what_the_start_said() {
        let start = r#"{"input_tokens":9,"cache_read_input_tokens":3,"output_tokens":1}"#;
        let start = read(start, None);
        for (end, input, cached, output) in [
            (r#"{"output_tokens":7}"#, 9, 3, 7),
            (
                r#"{"input_tokens":null,"cache_read_input_tokens":null,"output_tokens":7}"#,
                9,
                3,
                7,
            ),
            (
                r#"{"input_tokens":12,"cache_read_input_tokens":0,"output_tokens":7}"#,
                12,
                0,
                7,
            ),
        ] {
            let usage = read(end, start).unwrap();
            let found = (usage.input, usage.cached_input, usage.output);
            assert_eq!(found, (input, cached, output), "{end}");
        }
    }

    #[test]
    fn what_shortening_the_conversation_took_is_read_apart() {
        let top = r#""input_tokens":23000,"output_tokens":1000"#;
        let summary = r#"{"type":"compaction","input_tokens":180000,"output_tokens":3500,"cache_read_input_tokens":7,
            "cache_creation_input_tokens":30,"cache_creation":{"ephemeral_1h_input_tokens":20}}"#;
        let message = r#"{"type":"message","input_tokens":23000,"output_tokens":1000}"#;
        let of = |steps: &str| format!(r#"{{{top},"iterations":{steps}}}"#);
        let once = Compaction {
            input: 180_000,
            cached_input: 7,
            cache_write: 10,
            cache_write_1h: 20,
            output: 3_500,
        };
        let mut twice = once;
        twice.add(&once);
        for (steps, expected) in [
            ("null", Compaction::default()),
            ("[]", Compaction::default()),
            (&format!("[{message},7]"), Compaction::default()),
            (&format!("[{summary},{message}]"), once),
            (&format!("[{message},{summary},{summary}]"), twice),
        ] {
            let usage = read(&of(steps), None).unwrap();
            assert_eq!(usage.compaction, expected, "{steps}");
            assert_eq!((usage.input, usage.output), (23_000, 1_000), "{steps}");
        }
        // The end of a stream repeats the counts of its start, or omits them.
        let start = read(&of(&format!("[{summary}]")), None);
        for end in [of(&format!("[{summary},{message}]")), format!("{{{top}}}")] {
            assert_eq!(read(&end, start).unwrap().compaction, once, "{end}");
        }
        for step in [
            r#"{"type":"compaction","input_tokens":-1}"#,
            r#"{"output_tokens":1e3,"type":"compaction"}"#,
            r#"{"type":"compaction","cache_creation_input_tokens":"1"}"#,
        ] {
            assert_eq!(
                read(&of(&format!("[{step},{message}]")), None),
                None,
                "{step}"
            );
        }
    }

    #[test]
    fn a_report_that_cannot_be_billed_is_not_a_report() {
        for text in [
            r"{}",
            r#"{"output_tokens":7}"#,
            r#"{"input_tokens":7}"#,
            r#"{"input_tokens":-1,"output_tokens":7}"#,
            r#"{"input_tokens":"1","output_tokens":7}"#,
            r#"{"input_tokens":1,"output_tokens":1e3}"#,
            r"[]",
            r"1",
        ] {
            assert_eq!(read(text, None), None, "{text}");
        }
        let start = Some(Usage::default());
        assert_eq!(read(r#"{"output_tokens":-7}"#, start), None);
        let usage = read(
            r#"{"input_tokens":1,"output_tokens":2,"output_tokens_details":{"thinking_tokens":9}}"#,
            None,
        );
        assert_eq!(usage.unwrap().reasoning, 2);
    }

    #[test]
    fn one_hour_writes_are_a_class_of_their_own() {
        let start = r#"{"input_tokens":9,"output_tokens":1,"cache_creation_input_tokens":30,
            "cache_creation":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":20}}"#;
        let usage = read(start, None).unwrap();
        assert_eq!((usage.cache_write, usage.cache_write_1h), (10, 20));
        assert_eq!(usage.input_total(), 39);
        // The end of a stream repeats the total without its parts.
        let end = r#"{"output_tokens":7,"cache_creation_input_tokens":30}"#;
        let usage = read(end, Some(usage)).unwrap();
        assert_eq!((usage.cache_write, usage.cache_write_1h), (10, 20));
        for (text, expected) in [
            (
                r#""cache_creation":{"ephemeral_1h_input_tokens":20}"#,
                (0, 20),
            ),
            (
                r#""cache_creation_input_tokens":5,"cache_creation":{"ephemeral_1h_input_tokens":20}"#,
                (0, 5),
            ),
            (
                r#""cache_creation":null,"cache_creation_input_tokens":5"#,
                (5, 0),
            ),
        ] {
            let text = format!(r#"{{"input_tokens":1,"output_tokens":1,{text}}}"#);
            let usage = read(&text, None).unwrap();
            assert_eq!(
                (usage.cache_write, usage.cache_write_1h),
                expected,
                "{text}"
            );
        }
    }
}
