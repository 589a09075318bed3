//! Writes spoken answers: a transcript, and silence whose length grows with the text.

use crate::seed::Seed;
use serde::Serialize;

/// How long a later turn can refer to a clip, in seconds.
const KEPT_S: u64 = 3600;
/// Three zero bytes as base64. Silence consists of whole groups, so the base64 of pieces can be
/// concatenated.
const GROUP: &str = "AAAA";
const GROUPS_PER_BYTE: usize = 4;

/// The audio clip of a whole answer.
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

/// Silence for a text, as base64.
pub(super) fn silence(text: &str) -> String {
    GROUP.repeat(text.len().saturating_mul(GROUPS_PER_BYTE))
}
