//! Writes new secrets to a file that only its owner can read, and that is never overwritten.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

const HEADING: &str =
    "# New secrets of imported keys: key, wallet, name, origin, secret, separated by tabs.";
const EXPLANATION: &str = "# If a key stands here twice, its last secret counts. Give them to their owners and delete this file.";

/// An open file of secrets.
#[derive(Debug)]
pub(crate) struct SecretsFile {
    file: File,
}

impl SecretsFile {
    /// Creates the file, or opens one that an earlier run created. Any other file is refused, and so is a file that
    /// other users can read.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let created = OpenOptions::new()
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(path);
        match created {
            Ok(mut file) => {
                writeln!(file, "{HEADING}\n{EXPLANATION}")?;
                file.sync_all()?;
                Ok(Self { file })
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let mut first = String::new();
                let read = File::open(path)?;
                if read.metadata()?.permissions().mode() & 0o077 != 0 {
                    return Err(refused(path, "exists and can be read by others"));
                }
                BufReader::new(read).read_line(&mut first)?;
                if first.trim_end() != HEADING {
                    return Err(refused(path, "exists and is not a list of secrets"));
                }
                let file = OpenOptions::new().append(true).open(path)?;
                Ok(Self { file })
            }
            Err(error) => Err(error),
        }
    }

    /// Appends lines and syncs them to disk.
    pub(super) fn append(&mut self, lines: &[[String; 5]]) -> io::Result<()> {
        let mut text = String::new();
        for line in lines {
            let cells = line
                .each_ref()
                .map(|cell| cell.replace(['\t', '\n', '\r'], " "));
            text.push_str(&cells.join("\t"));
            text.push('\n');
        }
        self.file.write_all(text.as_bytes())?;
        self.file.sync_all()
    }
}

fn refused(path: &Path, why: &str) -> io::Error {
    let message = format!("{} {why}", path.display());
    io::Error::new(io::ErrorKind::AlreadyExists, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_private_and_continued_and_nothing_else_is_touched() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secrets");
        let line = ["key_1", "w", "n\tm", "tokens:1", "sk-1"].map(str::to_owned);
        for _ in 0..2 {
            let lines = std::slice::from_ref(&line);
            SecretsFile::open(&path).unwrap().append(lines).unwrap();
        }
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 4);
        assert!(text.ends_with("key_1\tw\tn m\ttokens:1\tsk-1\n"), "{text}");
        let other = folder.path().join("other");
        std::fs::write(&other, "mine").unwrap();
        assert!(SecretsFile::open(&other).is_err());
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "mine");
    }
}
