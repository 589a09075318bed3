//! The usage of image answers: tokens by modality, or what the pictures cost the upstream.

use crate::json::{Cursor, Raw, Shape, SyntaxError};
use crate::usage::{Inclusive, Usage, count};

/// What a usage object tells.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Told {
    /// Tokens, where they are told.
    pub(super) tokens: Option<Usage>,
    /// The upstream's cost.
    pub(super) usd_ticks: Option<u64>,
    /// Which of the three totals every client reads are there.
    pub(super) has: [bool; 3],
}

/// The totals that every client reads.
pub(super) const TOTALS: [&str; 3] = ["input_tokens", "output_tokens", "total_tokens"];

/// Reads a usage object; nothing if it cannot be billed by.
pub(super) fn read(usage: Raw<'_>) -> Option<Told> {
    if usage.shape() != Shape::Object {
        return None;
    }
    let mut told = Told::default();
    let mut counts = Inclusive::default();
    let (mut input, mut output) = (None, None);
    let mut output_images = None;
    let mut malformed = false;
    let mut cursor = Cursor::new(usage.text());
    let read = cursor.object(|cursor, name| {
        if let Some(index) = TOTALS.iter().position(|known| name.is(known)) {
            let value = cursor.value()?;
            if let Some(has) = told.has.get_mut(index) {
                *has = !value.is_null();
            }
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
        } else {
            let value = cursor.value()?;
            if name.is("cost_in_usd_ticks") {
                told.usd_ticks = count(value);
                malformed |= told.usd_ticks.is_none() && !value.is_null();
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
        // Without details the output is what was asked for: pictures.
        counts.image_output = output_images.unwrap_or(output);
        told.tokens = Some(Usage::from(counts));
    }
    (told.tokens.is_some() || told.usd_ticks.is_some()).then_some(told)
}

/// Two reports of one call together: each picture of a stream has its own.
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

    #[test]
    fn tokens_are_told_by_modality() {
        let told = |json: &str| read(Cursor::new(json).value().unwrap());
        let usage = told(
            r#"{"input_tokens":50,"output_tokens":300,"total_tokens":350,
                "input_tokens_details":{"text_tokens":10,"image_tokens":40},
                "output_tokens_details":{"text_tokens":20,"image_tokens":280}}"#,
        );
        let usage = usage.unwrap().tokens.unwrap();
        assert_eq!((usage.input, usage.image_input), (10, 40));
        assert_eq!((usage.output, usage.image_output), (20, 280));
        let bare = told(r#"{"input_tokens":5,"output_tokens":300}"#).unwrap();
        assert_eq!(bare.tokens.unwrap().image_output, 300);
        assert_eq!(bare.has, [true, true, false]);
        let ticks = told(r#"{"cost_in_usd_ticks":200000000}"#).unwrap();
        assert_eq!((ticks.tokens, ticks.usd_ticks), (None, Some(200_000_000)));
        for json in [
            "null",
            "[]",
            "{}",
            r#"{"output_tokens":-1}"#,
            r#"{"output_tokens":"5"}"#,
        ] {
            assert_eq!(told(json), None, "{json}");
        }
    }
}
