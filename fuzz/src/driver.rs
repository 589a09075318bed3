//! Runs a body on seeds and on mutations of them, on a stable toolchain and without coverage.
//!
//! `cargo test` runs a hundred to a few thousand inputs of each body. For a long run,
//! `TOLLGATE_FUZZ_INPUTS` sets the number of inputs of each body, and `TOLLGATE_FUZZ_SEED` selects
//! other inputs (CONTRIBUTING.md).

use std::env;
use std::fs;
use std::path::Path;
use std::str::FromStr;

/// Longer files are not used as seeds, because short inputs find errors sooner.
const SEED_BYTES_MAX: usize = 8192;
/// Mutations do not grow an input beyond this.
const INPUT_BYTES_MAX: usize = 2 * SEED_BYTES_MAX;
const RANDOM_SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// Runs the body on each seed and then on `inputs` mutations, or as many as the environment says.
/// `tokens` are texts that are significant for the parser.
pub fn run(seeds: &[Vec<u8>], tokens: &[&[u8]], inputs: u64, body: fn(&[u8])) {
    let inputs = from_env("TOLLGATE_FUZZ_INPUTS").unwrap_or(inputs);
    let random = from_env("TOLLGATE_FUZZ_SEED").unwrap_or(RANDOM_SEED);
    for seed in seeds {
        run_one(seed, body);
    }
    // A xorshift generator never leaves zero.
    let mut random = Random(random.max(1));
    let mut input = Vec::new();
    for _ in 0..inputs {
        random.mutate(seeds, tokens, &mut input);
        run_one(&input, body);
    }
}

/// The files in a folder and its subfolders whose names have this ending.
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
        panic!("{name} is not a number: {text}");
    };
    Some(value)
}

fn run_one(input: &[u8], body: fn(&[u8])) {
    let shown = PrintOnPanic(input);
    body(input);
    drop(shown);
}

/// Prints the input if its body panics.
struct PrintOnPanic<'a>(&'a [u8]);

impl Drop for PrintOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("input: b\"{}\"", self.0.escape_ascii());
        }
    }
}

/// A small seeded random generator (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % sides.max(1)
    }

    fn choose<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    fn mutate(&mut self, seeds: &[Vec<u8>], tokens: &[&[u8]], bytes: &mut Vec<u8>) {
        bytes.clear();
        let seed: &Vec<u8> = self.choose(seeds);
        bytes.extend_from_slice(seed);
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len() + 1);
            let end = (at + self.below(40)).min(bytes.len());
            match self.below(7) {
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
                    let from = self.below(other.len() + 1);
                    bytes.splice(at.., other[from..].iter().copied());
                }
                _ => {
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte = u8::try_from(self.below(256)).unwrap();
                    }
                }
            }
        }
        bytes.truncate(INPUT_BYTES_MAX);
    }
}
