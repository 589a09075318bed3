//! Reads the settings of a realtime session that metering depends on.

use std::ops::RangeInclusive;

use super::audio::Format;
use super::event::{at, text_of};
use crate::json::{Integer, Raw};

/// Plausible sample rates. A session that sets another one keeps its previous format.
const RATES: RangeInclusive<u64> = 8_000..=192_000;
const RATE: u64 = 24_000;

/// The turn mode of a session. It decides whether time or audio is billed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TurnMode {
    /// The upstream listens all the time, so every second counts.
    VoiceActivity,
    /// The client decides when to talk, so audio counts in both directions.
    PushToTalk,
}

/// The turn mode that an upstream reports. Older and newer versions of the protocol have it in different
/// members. The top-level member has priority.
pub(super) fn turn_mode(session: Raw<'_>) -> Option<TurnMode> {
    let places: [&[&str]; 2] = [&["turn_detection"], &["audio", "input", "turn_detection"]];
    let detection = places.iter().find_map(|place| at(session, place))?;
    Some(if detection.is_null() {
        TurnMode::PushToTalk
    } else {
        TurnMode::VoiceActivity
    })
}

/// The format of the client's audio.
pub(super) fn input_format(session: Raw<'_>) -> Option<Format> {
    format(session, "input", "input_audio_format")
}

/// The format of the upstream's audio.
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
