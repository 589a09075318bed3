//! A bounded run of the fuzz targets: the fixtures as seeds, a small mutator with a fixed seed.
//!
//! `cargo fuzz` looks longer and deeper (CONTRIBUTING); what it found is a case here or beside the
//! code that was mended.

use std::fs;
use std::path::Path;

use crate::bodies;

/// Mutations of all seeds together, for each target.
const ROUNDS: usize = 400;
/// No seed is longer; what a long one finds a short one finds sooner.
const SEED_BYTES_MAX: usize = 4096;

/// Texts that mean something to a parser.
const TOKENS: [&[u8]; 24] = [
    b"\n\n",
    b"\r\n\r\n",
    b"\r",
    b"data: ",
    b"data: [DONE]\n\n",
    b"event: error\n",
    b": comment\n\n",
    b"{",
    b"}",
    b"[]",
    b"null",
    b"\"\"",
    b"\\u0000",
    b"\\ud800",
    b"\xff\xfe",
    "\u{2028}".as_bytes(),
    b"-1",
    b"18446744073709551616",
    b"1e999",
    b"\"model\":\"x\",",
    b"\"error\":{\"message\":\"m\"},",
    b"\"finish_reason\":\"stop\",",
    b"\"type\":\"message_stop\"",
    b",",
];

/// Small, seeded, and good enough to choose.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % sides.max(1)
    }

    fn mutated(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = seeds[self.roll(seeds.len())].clone();
        for _ in 0..=self.roll(4) {
            let at = self.roll(bytes.len() + 1);
            let end = (at + self.roll(40)).min(bytes.len());
            match self.roll(7) {
                0 => drop(bytes.drain(at..end)),
                1 => bytes.truncate(at),
                2 => {
                    let copy = bytes[at..end].to_vec();
                    bytes.splice(at..at, copy);
                }
                3 => {
                    let token = TOKENS[self.roll(TOKENS.len())];
                    bytes.splice(at..at, token.iter().copied());
                }
                4 => {
                    let token = TOKENS[self.roll(TOKENS.len())];
                    bytes.splice(at..end, token.iter().copied());
                }
                5 => {
                    let other = &seeds[self.roll(seeds.len())];
                    let from = self.roll(other.len());
                    bytes.splice(at.., other[from..].iter().copied());
                }
                _ => {
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte = u8::try_from(self.roll(256)).unwrap();
                    }
                }
            }
        }
        bytes
    }
}

/// All fixtures whose names end so, wherever they lie.
fn seeds(ending: &str) -> Vec<Vec<u8>> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    let read = |path| fs::read(path).unwrap();
    let mut seeds: Vec<_> = found.iter().map(read).collect();
    seeds.retain(|seed| seed.len() <= SEED_BYTES_MAX);
    assert!(seeds.len() > 5, "{} seeds end with {ending}", seeds.len());
    seeds
}

fn run(ending: &str, rounds: usize, body: fn(&[u8])) {
    let seeds = seeds(ending);
    for seed in &seeds {
        body(seed);
    }
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    for _ in 0..rounds {
        let input = dice.mutated(&seeds);
        // The input is shown before anything can go wrong with it: output is kept until then.
        eprintln!("input: {}", input.escape_ascii());
        body(&input);
    }
}

#[test]
fn frames_hold_for_any_bytes() {
    run(".sse", ROUNDS * 5, bodies::split);
}

#[test]
fn patches_hold_for_any_bytes() {
    run(".json", ROUNDS * 10, bodies::patch);
}

#[test]
fn counts_keep_their_floor_for_any_bytes() {
    run(".json", ROUNDS * 5, bodies::count);
}

#[test]
fn escapes_change_no_decision_for_any_bytes() {
    run(".json", ROUNDS * 5, bodies::guarded_names);
}

#[test]
fn redaction_holds_for_any_bytes() {
    run(".json", ROUNDS * 5, bodies::redact);
}

#[test]
fn requests_are_read_or_refused_for_any_bytes() {
    run(".json", ROUNDS * 5, bodies::read_request);
}

#[test]
fn streams_are_converted_or_failed_for_any_bytes() {
    run(".sse", ROUNDS / 4, bodies::transcode);
}
