//! What of a realtime session's settings the meter depends on.

use std::ops::RangeInclusive;

use super::audio::Format;
use super::event::{at, text_of};
use crate::json::{Integer, Raw};

/// Rates of samples that can be meant; a session that names another keeps the one it had.
const RATES: RangeInclusive<u64> = 8_000..=192_000;
const RATE: u64 = 24_000;

/// How a session's turns are taken, which decides what is billed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turns {
    /// The upstream listens all the time: every second counts.
    VoiceActivity,
    /// The caller says when: audio counts, both ways.
    PushToTalk,
}

/// Client generations differ in where they put it; the vendor's own place counts first.
pub(super) fn turns(session: Raw<'_>) -> Option<Turns> {
    let places: [&[&str]; 2] = [&["turn_detection"], &["audio", "input", "turn_detection"]];
    let told = places.iter().find_map(|place| at(session, place))?;
    Some(if told.is_null() {
        Turns::PushToTalk
    } else {
        Turns::VoiceActivity
    })
}

/// The format of what the caller says.
pub(super) fn input_format(session: Raw<'_>) -> Option<Format> {
    format(session, "input", "input_audio_format")
}

/// The format of what the upstream says.
pub(super) fn output_format(session: Raw<'_>) -> Option<Format> {
    format(session, "output", "output_audio_format")
}

fn format(session: Raw<'_>, direction: &str, legacy: &str) -> Option<Format> {
    if let Some(format) = at(session, &["audio", direction, "format"]) {
        let kind = text_of(at(format, &["type"])?)?;
        let rate = at(format, &["rate"]).and_then(|it| it.integer());
        return named(&kind, rate.map_or(RATE, Integer::saturating));
    }
    named(&text_of(at(session, &[legacy])?)?, RATE)
}

fn named(kind: &str, rate: u64) -> Option<Format> {
    let bytes = |per_second| Some(Format::Bytes { per_second });
    match kind {
        "audio/pcm" | "pcm16" if RATES.contains(&rate) => bytes(rate * 2),
        "audio/pcmu" | "audio/pcma" | "g711_ulaw" | "g711_alaw" => bytes(8_000),
        "audio/opus" => Some(Format::Opus),
        _ => None,
    }
}
