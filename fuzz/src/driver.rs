//! Runs a body on seeds and on mutations of them: on a stable toolchain, without coverage.
//!
//! `cargo test` runs some hundred inputs of each body. A long run takes its number from the environment
//! (CONTRIBUTING): `TOLLGATE_FUZZ_INPUTS` for each body, `TOLLGATE_FUZZ_SEED` for other inputs.

use std::env;
use std::fs;
use std::path::Path;
use std::str::FromStr;

/// No seed is longer; what a long one finds a short one finds sooner.
const SEED_BYTES_MAX: usize = 8192;
/// No input grows beyond this.
const INPUT_BYTES_MAX: usize = 2 * SEED_BYTES_MAX;
const DICE: u64 = 0x9e37_79b9_7f4a_7c15;

/// Runs the body on each seed and then on so many mutations, unless the environment says how many.
/// `tokens` are texts that mean something to the parser.
pub fn run(seeds: &[Vec<u8>], tokens: &[&[u8]], inputs: u64, body: fn(&[u8])) {
    let inputs = from_env("TOLLGATE_FUZZ_INPUTS").unwrap_or(inputs);
    let dice = from_env("TOLLGATE_FUZZ_SEED").unwrap_or(DICE);
    for seed in seeds {
        run_one(seed, body);
    }
    // A generator of this kind stays at zero for ever.
    let mut dice = Dice(dice.max(1));
    let mut input = Vec::new();
    for _ in 0..inputs {
        dice.mutate(seeds, tokens, &mut input);
        run_one(&input, body);
    }
}

/// The files in a folder and below it whose names end so.
pub fn seeds(folder: impl AsRef<Path>, ending: &str) -> Vec<Vec<u8>> {
    let mut folders = vec![folder.as_ref().to_owned()];
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
    let mut seeds: Vec<_> = found.iter().map(|path| fs::read(path).unwrap()).collect();
    seeds.retain(|seed| seed.len() <= SEED_BYTES_MAX);
    assert!(seeds.len() > 4, "{} seeds end with {ending}", seeds.len());
    seeds
}

fn from_env<T: FromStr>(name: &str) -> Option<T> {
    let text = env::var(name).ok()?;
    let Ok(value) = text.parse() else {
        panic!("{name} is no number: {text}");
    };
    Some(value)
}

fn run_one(input: &[u8], body: fn(&[u8])) {
    let shown = Shown(input);
    body(input);
    drop(shown);
}

/// Shows the input if its body panics.
struct Shown<'a>(&'a [u8]);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("input: b\"{}\"", self.0.escape_ascii());
        }
    }
}

/// Small, seeded, and good enough to choose (xorshift).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % sides.max(1)
    }

    fn choose<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.roll(from.len())]
    }

    fn mutate(&mut self, seeds: &[Vec<u8>], tokens: &[&[u8]], bytes: &mut Vec<u8>) {
        bytes.clear();
        let seed: &Vec<u8> = self.choose(seeds);
        bytes.extend_from_slice(seed);
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
                3 => drop(bytes.splice(at..at, self.choose(tokens).iter().copied())),
                4 => drop(bytes.splice(at..end, self.choose(tokens).iter().copied())),
                5 => {
                    let other = self.choose(seeds);
                    let from = self.roll(other.len() + 1);
                    bytes.splice(at.., other[from..].iter().copied());
                }
                _ => {
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte = u8::try_from(self.roll(256)).unwrap();
                    }
                }
            }
        }
        bytes.truncate(INPUT_BYTES_MAX);
    }
}
