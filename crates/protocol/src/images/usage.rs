//! Reads the usage of image answers: tokens by modality, or the cost that the upstream reports.

use bytes::Bytes;

use super::family::Family;
use crate::json::patch::{self, Edit};
use crate::json::{Cursor, Raw, Shape, SyntaxError, utf8};
use crate::scrub::strip;
use crate::tool::ToolCalls;
use crate::usage::costs::{self, USD_TICKS};
use crate::usage::{InclusiveCounts, Usage, count};

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct UsageReport {
    pub(super) tokens: Option<Usage>,
    /// The cost that the upstream reports, in ticks of 1e-10 US dollar.
    pub(super) usd_ticks: Option<u64>,
    pub(super) tools: ToolCalls,
}

/// The totals that every client reads.
const TOTALS: [&str; 3] = ["input_tokens", "output_tokens", "total_tokens"];

/// Reads a usage object. `None` if it cannot be used for billing.
pub(super) fn read(usage: Raw<'_>) -> Option<UsageReport> {
    if usage.shape() != Shape::Object {
        return None;
    }
    let mut reported = UsageReport::default();
    let mut counts = InclusiveCounts::default();
    let (mut input, mut output) = (None, None);
    let mut output_images = None;
    let mut malformed = false;
    let mut cursor = Cursor::new(usage.text());
    let read = cursor.object(|cursor, name| {
        if let Some(index) = TOTALS.iter().position(|known| name.is(known)) {
            let value = cursor.value()?;
            let number = count(value);
            malformed |= number.is_none() && !value.is_null() && index < 2;
            match index {
                0 => input = number,
                1 => output = number,
                _ => {}
            }
        } else if name.is("input_tokens_details") && cursor.shape()? == Shape::Object {
            cursor.object(|cursor, name| {
                let value = cursor.value()?;
                if name.is("image_tokens") {
                    counts.image_input = count(value).unwrap_or(0);
                } else if name.is("cached_tokens") {
                    counts.cached_input = count(value).unwrap_or(0);
                }
                Ok::<(), SyntaxError>(())
            })?;
        } else if name.is("output_tokens_details") && cursor.shape()? == Shape::Object {
            cursor.object(|cursor, name| {
                let value = cursor.value()?;
                if name.is("image_tokens") {
                    output_images = count(value);
                }
                Ok::<(), SyntaxError>(())
            })?;
        } else if name.is("tool_usage") {
            reported.tools.read(cursor, "")?;
        } else {
            let value = cursor.value()?;
            if name.is(USD_TICKS) {
                reported.usd_ticks = count(value);
                malformed |= reported.usd_ticks.is_none() && !value.is_null();
            }
        }
        Ok::<(), SyntaxError>(())
    });
    if read.is_err() || malformed {
        return None;
    }
    if let Some(output) = output {
        counts.input = input.unwrap_or(0);
        counts.output = output;
        // Without details, all output counts as images.
        counts.image_output = output_images.unwrap_or(output);
        reported.tokens = Some(Usage::from(counts));
    }
    (reported.tokens.is_some() || reported.usd_ticks.is_some()).then_some(reported)
}

/// The edits that prepare a usage object for clients. They remove the operator's costs and the upstream's
/// identity, and add the totals that the upstreams of two families leave out.
pub(super) fn shown(usage: Raw<'_>, family: Family, public_model: &str) -> Vec<Edit> {
    let totals = |usage: Raw<'_>| match family {
        Family::VideoA | Family::Content if usage.shape() == Shape::Object => complete(usage),
        _ => Vec::new(),
    };
    let ticks = (family == Family::VideoA).then_some(USD_TICKS);
    let has_costs = costs::has_costs_besides(usage.text(), ticks);
    let identity = strip(usage, public_model);
    if !has_costs && identity.is_empty() {
        return totals(usage);
    }
    let left = if has_costs {
        Bytes::from(costs::without_costs_besides(usage.text(), ticks).unwrap_or_default())
    } else {
        Bytes::copy_from_slice(usage.text().as_bytes())
    };
    let left = edited(&left, |left| strip(left, public_model));
    // The totals come last, because the comma after them depends on the remaining members.
    let left = edited(&left, totals);
    vec![Edit::replace(usage.span(), left.to_vec())]
}

/// Applies the edits of a value. Reading the value cannot fail, because it has been read before.
fn edited(value: &Bytes, edits_of: impl FnOnce(Raw<'_>) -> Vec<Edit>) -> Bytes {
    let read = utf8(value).and_then(|text| Cursor::new(text).value());
    patch::apply(value, read.map(edits_of).unwrap_or_default())
}

/// Adds the totals that a usage object leaves out or sets to `null`. Reported values do not change.
fn complete(usage: Raw<'_>) -> Vec<Edit> {
    let offset = usage.span().start;
    let mut reported = [None; 3];
    let read = Cursor::new(usage.text()).object(|cursor, name| {
        let value = cursor.value()?.moved(offset);
        let index = TOTALS.iter().position(|known| name.is(known));
        if let Some(place) = index.and_then(|index| reported.get_mut(index)) {
            *place = Some(value);
        }
        Ok::<(), SyntaxError>(())
    });
    if read.is_err() {
        return Vec::new();
    }
    let [input, output, total] = reported.map(|value| value.and_then(count));
    let input = input.unwrap_or(0);
    let output = output.unwrap_or_else(|| total.unwrap_or(0).saturating_sub(input));
    let total = total.unwrap_or_else(|| input.saturating_add(output));
    let mut edits = Vec::new();
    let mut missing = Vec::new();
    for ((name, reported), tokens) in TOTALS.iter().zip(reported).zip([input, output, total]) {
        match reported {
            None => missing.extend_from_slice(format!("\"{name}\":{tokens},").as_bytes()),
            Some(null) if null.is_null() => {
                edits.push(Edit::replace(null.span(), tokens.to_string().into_bytes()));
            }
            Some(_) => {}
        }
    }
    if usage.is_empty() {
        missing.pop();
    }
    if !missing.is_empty() {
        edits.push(Edit::insert(offset + 1, missing));
    }
    edits
}

/// The usage of an answer without a report, for clients that read the totals.
pub(super) const NONE: &[u8] = br#"{"input_tokens":0,"output_tokens":0,"total_tokens":0}"#;

/// The sum of two reports of one call, because each image of a stream has its own.
pub(super) fn add(one: Usage, other: Usage) -> Usage {
    Usage {
        input: one.input.saturating_add(other.input),
        cached_input: one.cached_input.saturating_add(other.cached_input),
        output: one.output.saturating_add(other.output),
        image_input: one.image_input.saturating_add(other.image_input),
        image_output: one.image_output.saturating_add(other.image_output),
        ..one
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::patch;
    use crate::tool::Tool;

    #[test]
    fn totals_are_written_once_and_add_up() {
        for (usage, expected) in [
            (
                "{}",
                r#"{"input_tokens":0,"output_tokens":0,"total_tokens":0}"#,
            ),
            (
                r#"{"output_tokens":9}"#,
                r#"{"input_tokens":0,"total_tokens":9,"output_tokens":9}"#,
            ),
            (
                r#"{"input_tokens":2,"output_tokens":9,"total_tokens":null}"#,
                r#"{"input_tokens":2,"output_tokens":9,"total_tokens":11}"#,
            ),
            (
                r#"{"total_tokens":9,"input_tokens":2}"#,
                r#"{"output_tokens":7,"total_tokens":9,"input_tokens":2}"#,
            ),
            (
                r#"{"output_tokens":"9"}"#,
                r#"{"input_tokens":0,"total_tokens":0,"output_tokens":"9"}"#,
            ),
            (
                r#"{"input_tokens":1,"output_tokens":2,"total_tokens":3}"#,
                r#"{"input_tokens":1,"output_tokens":2,"total_tokens":3}"#,
            ),
        ] {
            let edits = complete(Cursor::new(usage).value().unwrap());
            let out = patch::apply(&usage.to_owned().into(), edits);
            assert_eq!(out, expected);
        }
    }

    #[test]
    fn costs_are_shown_by_one_family() {
        let usage = r#"{"cost":0.1,"total_tokens":9,"cost_details":{"a":1},"cost_in_usd_ticks":4,"output_tokens":9}"#;
        for (family, expected) in [
            (Family::Gpt, r#"{"total_tokens":9,"output_tokens":9}"#),
            (Family::Unknown, r#"{"total_tokens":9,"output_tokens":9}"#),
            (
                Family::Content,
                r#"{"input_tokens":0,"total_tokens":9,"output_tokens":9}"#,
            ),
            (
                Family::VideoA,
                r#"{"input_tokens":0,"total_tokens":9,"cost_in_usd_ticks":4,"output_tokens":9}"#,
            ),
        ] {
            let edits = shown(Cursor::new(usage).value().unwrap(), family, "maker/m");
            let out = patch::apply(&usage.to_owned().into(), edits);
            assert_eq!(out, expected, "{family:?}");
        }
        let reported = read(Cursor::new(usage).value().unwrap()).unwrap();
        assert_eq!(reported.usd_ticks, Some(4));
        let only = r#"{"cost":1}"#;
        let edits = shown(
            Cursor::new(only).value().unwrap(),
            Family::Content,
            "maker/m",
        );
        assert_eq!(patch::apply(&only.to_owned().into(), edits), NONE);
    }

    #[test]
    fn tokens_are_reported_by_modality() {
        let reported = |json: &str| read(Cursor::new(json).value().unwrap());
        let usage = reported(
            r#"{"input_tokens":50,"output_tokens":300,"total_tokens":350,
                "input_tokens_details":{"text_tokens":10,"image_tokens":40},
                "output_tokens_details":{"text_tokens":20,"image_tokens":280}}"#,
        );
        let usage = usage.unwrap().tokens.unwrap();
        assert_eq!((usage.input, usage.image_input), (10, 40));
        assert_eq!((usage.output, usage.image_output), (20, 280));
        let bare = reported(r#"{"input_tokens":5,"output_tokens":300}"#).unwrap();
        assert_eq!(bare.tokens.unwrap().image_output, 300);
        let ticks = reported(r#"{"cost_in_usd_ticks":200000000}"#).unwrap();
        assert_eq!((ticks.tokens, ticks.usd_ticks), (None, Some(200_000_000)));
        let searched =
            reported(r#"{"output_tokens":9,"tool_usage":{"web_search":3,"x":1}}"#).unwrap();
        let calls: Vec<_> = searched.tools.iter().collect();
        assert_eq!(calls, [(Tool::WebSearch, 3)]);
        for json in [
            "null",
            "[]",
            "{}",
            r#"{"output_tokens":-1}"#,
            r#"{"output_tokens":"5"}"#,
        ] {
            assert_eq!(reported(json), None, "{json}");
        }
    }
}
