//! Reads and writes the file of chain heads for `tollgate ledger verify --heads`.
//!
//! An attacker who can write to the database can also compute new hashes. A file that the attacker cannot change proves
//! what the chains were before.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;

use store::{WalletHead, WalletId};
use tempfile::NamedTempFile;

use crate::cli::terminal::CommandError;

/// The first line of the file, with the version of its format.
const TITLE: &str = "tollgate ledger heads 1";

/// Reads the heads in a file. `None` if the file does not exist.
pub(crate) fn read(file: &Path) -> Result<Option<Vec<WalletHead>>, CommandError> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(refused(file, &error)),
    };
    let heads = parse(&text).map_err(|reason| refused(file, &reason))?;
    Ok(Some(heads))
}

/// Writes a new file. Fails if the file exists.
pub(crate) fn create(file: &Path, heads: &[WalletHead]) -> Result<(), CommandError> {
    let written = prepare(file, heads).map_err(|error| refused(file, &error))?;
    let kept = written.persist_noclobber(file);
    kept.map(drop).map_err(|error| refused(file, &error.error))
}

/// Replaces a file atomically.
pub(crate) fn replace(file: &Path, heads: &[WalletHead]) -> Result<(), CommandError> {
    let written = prepare(file, heads).map_err(|error| refused(file, &error))?;
    let kept = written.persist(file);
    kept.map(drop).map_err(|error| refused(file, &error.error))
}

fn prepare(file: &Path, heads: &[WalletHead]) -> io::Result<NamedTempFile> {
    let folder = file
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let mut written = NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
    written.write_all(format(heads).as_bytes())?;
    written.as_file().sync_all()?;
    Ok(written)
}

fn format(heads: &[WalletHead]) -> String {
    let mut text = format!("{TITLE}\n");
    for WalletHead {
        wallet,
        entries,
        head,
    } in heads
    {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{wallet} {entries} {head}");
    }
    text
}

fn parse(text: &str) -> Result<Vec<WalletHead>, String> {
    let mut lines = text.lines().enumerate();
    if lines.next().is_none_or(|(_, title)| title != TITLE) {
        return Err(format!("the first line is not `{TITLE}`"));
    }
    let mut seen: HashSet<WalletId> = HashSet::new();
    let mut heads = Vec::new();
    for (n, line) in lines {
        let head = parse_line(line).filter(|head| seen.insert(head.wallet));
        heads.push(head.ok_or_else(|| {
            let line = n + 1;
            format!("line {line} is not a wallet that was not named before, its number of entries and its head")
        })?);
    }
    Ok(heads)
}

fn parse_line(line: &str) -> Option<WalletHead> {
    let mut words = line.split(' ');
    let head = WalletHead {
        wallet: words.next()?.parse().ok()?,
        entries: words.next()?.parse().ok().filter(|count| *count >= 0)?,
        head: words.next()?.parse().ok()?,
    };
    words.next().is_none().then_some(head)
}

fn refused(file: &Path, reason: &impl std::fmt::Display) -> CommandError {
    CommandError::message(format!("{}: {reason}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(entries: i64) -> WalletHead {
        WalletHead {
            wallet: WalletId::random(),
            entries,
            head: "5e".repeat(32).parse().unwrap(),
        }
    }

    #[test]
    fn heads_read_back_from_their_file() {
        for heads in [
            vec![],
            vec![head(0)],
            vec![head(0), head(7), head(i64::MAX)],
        ] {
            assert_eq!(parse(&format(&heads)), Ok(heads));
        }
    }

    #[test]
    fn other_texts_are_refused() {
        let one = format(&[head(7)]);
        let line = one.lines().last().unwrap();
        for text in [
            "",
            "tollgate ledger heads 2\n",
            &one.replace(" 7 ", " -7 "),
            &one.replace(" 7 ", " "),
            &one.replace("5e", "5"),
            &format!("{one}\n"),
            &format!("{one}{line}\n"),
            &format!("{one}{line} more\n"),
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
