//! Reads from `strace` what a process has written and synced, and computes what a power cut would leave.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The unit in which a disk writes, in bytes.
const SECTOR: usize = 512;

#[derive(Debug)]
enum Operation {
    Write {
        file: PathBuf,
        at: usize,
        bytes: Vec<u8>,
    },
    Truncate {
        file: PathBuf,
        length: usize,
    },
    /// A sync of a file. It covers the operations on that file before the number `begun`.
    Synced {
        file: PathBuf,
        begun: usize,
    },
    /// A line of output.
    Printed(String),
}

/// The operations of a process, in order.
#[derive(Debug)]
pub(crate) struct Trace(Vec<Operation>);

impl Trace {
    /// Whether processes can be traced here.
    pub(crate) fn is_possible() -> bool {
        let watched = Command::new("strace")
            .args(["-o", "/dev/null", "true"])
            .status();
        watched.is_ok_and(|status| status.success())
    }

    /// `strace` for the system calls that `read` understands, with output to a file.
    pub(crate) fn command(to: &Path) -> Command {
        let mut command = Command::new("strace");
        let calls = "trace=write,pwrite64,ftruncate,fsync,fdatasync";
        command.args(["-f", "-y", "-xx", "-s", "10000000", "-e", calls, "-o"]);
        command.arg(to);
        command
    }

    /// `strace` that kills the traced process at a given system call of one thread.
    pub(crate) fn killing_at(call: &str, number: usize) -> Command {
        let mut command = Command::new("strace");
        let (trace, inject) = (
            format!("trace={call}"),
            format!("inject={call}:signal=SIGKILL:when={number}"),
        );
        command.args(["-f", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject]);
        command
    }

    pub(crate) fn read(from: &Path) -> Self {
        let mut operations = Vec::new();
        // Calls that have not returned yet: their text, and the number of operations at their start.
        let mut begun: BTreeMap<&str, (&str, usize)> = BTreeMap::new();
        let text = std::fs::read_to_string(from).unwrap();
        for line in text.lines() {
            let (thread, rest) = line.split_once(' ').unwrap();
            let rest = rest.trim_start();
            if let Some(call) = rest.strip_suffix(" <unfinished ...>") {
                // From here on, the bytes may be on disk.
                if !call.contains("sync(") {
                    operations.extend(operation(call, 0));
                }
                begun.insert(thread, (call, operations.len()));
            } else if rest.starts_with("<... ") {
                let Some((call, since)) = begun.remove(thread) else {
                    continue;
                };
                if call.contains("sync(") && rest.ends_with("= 0") {
                    operations.extend(operation(call, since));
                }
            } else if !rest.contains(" = -1 ") {
                operations.extend(operation(rest, operations.len()));
            }
        }
        Self(operations)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The last line with this prefix among the first `by` operations.
    pub(crate) fn said(&self, by: usize, beginning: &str) -> Option<&str> {
        self.0[..by]
            .iter()
            .rev()
            .find_map(|operation| match operation {
                Operation::Printed(line) => line.strip_prefix(beginning),
                _ => None,
            })
    }

    /// The files as a power cut after `by` operations may leave them: everything that was synced, and a random part of
    /// the rest, some of it torn.
    pub(crate) fn after_a_power_cut(
        &self,
        by: usize,
        found: &[(PathBuf, Vec<u8>)],
        chance: &mut impl FnMut() -> usize,
    ) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut safe: BTreeMap<&Path, usize> = BTreeMap::new();
        for operation in &self.0[..by] {
            if let Operation::Synced { file, begun } = operation {
                let until = safe.entry(file).or_default();
                *until = (*until).max(*begun);
            }
        }
        let mut files: BTreeMap<PathBuf, Vec<u8>> = found.iter().cloned().collect();
        for (number, operation) in self.0[..by].iter().enumerate() {
            let is_safe = |file: &PathBuf| number < safe.get(file.as_path()).copied().unwrap_or(0);
            match operation {
                Operation::Write { file, at, bytes } => {
                    let kept = match chance() % 4 {
                        _ if is_safe(file) => bytes.len(),
                        0 => 0,
                        1 => bytes.len() / SECTOR / 2 * SECTOR,
                        _ => bytes.len(),
                    };
                    let content = files.entry(file.clone()).or_default();
                    content.resize(content.len().max(at + kept), 0);
                    content[*at..at + kept].copy_from_slice(&bytes[..kept]);
                }
                Operation::Truncate { file, length }
                    if is_safe(file) || chance().is_multiple_of(2) =>
                {
                    files.entry(file.clone()).or_default().resize(*length, 0);
                }
                Operation::Truncate { .. } | Operation::Synced { .. } | Operation::Printed(_) => {}
            }
        }
        files
    }
}

/// Parses lines such as `pwrite64(7<\x2f…>, "\x00…", 4096, 32) = 4096`.
fn operation(call: &str, begun: usize) -> Option<Operation> {
    let (name, rest) = call.split_once('(')?;
    let (descriptor, rest) = rest.split_once('<')?;
    let (path, rest) = rest.split_once('>')?;
    let file = PathBuf::from(String::from_utf8(unhex(path)).ok()?);
    match name {
        "fsync" | "fdatasync" => Some(Operation::Synced { file, begun }),
        "ftruncate" => Some(Operation::Truncate {
            file,
            length: number(rest)?,
        }),
        "write" if descriptor == "1" => {
            let line = String::from_utf8(unhex(rest.split('"').nth(1)?)).ok()?;
            Some(Operation::Printed(line.trim_end().to_owned()))
        }
        "pwrite64" => {
            let (_, rest) = rest.split_once('"')?;
            let (bytes, rest) = rest.split_once('"')?;
            // The count and the offset follow the bytes.
            let at = number(rest.trim_start_matches(", ").split_once(", ")?.1)?;
            Some(Operation::Write {
                file,
                at,
                bytes: unhex(bytes),
            })
        }
        _ => None,
    }
}

fn number(text: &str) -> Option<usize> {
    let digits = text.trim_start_matches([',', ' ']);
    let end = digits
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(digits.len());
    digits[..end].parse().ok()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = text.split("\\x").skip(1);
    digits
        .map(|digits| u8::from_str_radix(digits, 16).unwrap())
        .collect()
}
