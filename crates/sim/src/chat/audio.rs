//! Spoken answers: the words as a transcript, and as much silence as it takes to say them.

use crate::seed::Seed;
use serde::Serialize;

/// A clip can be named in a later turn for so long.
const KEPT_S: u64 = 3600;
/// Silence for one byte of text: groups of three zero bytes, so that clips can be joined.
const GROUP: &str = "AAAA";
const GROUPS_PER_BYTE: usize = 4;

/// The clip of an unstreamed answer.
#[derive(Serialize)]
pub(super) struct Clip<'a> {
    id: String,
    data: String,
    expires_at: u64,
    transcript: &'a str,
}

impl<'a> Clip<'a> {
    pub(super) fn of(transcript: &'a str, created: u64, seed: &mut Seed) -> Self {
        Self {
            id: clip_id(seed),
            data: silence(transcript),
            expires_at: expires_at(created),
            transcript,
        }
    }
}

pub(super) fn clip_id(seed: &mut Seed) -> String {
    format!("audio_Sim{}", seed.letters(21))
}

pub(super) fn expires_at(created: u64) -> u64 {
    created.saturating_add(KEPT_S)
}

/// Base64 of the silence for a text.
pub(super) fn silence(text: &str) -> String {
    GROUP.repeat(text.len().saturating_mul(GROUPS_PER_BYTE))
}
