//! The id of a task: a UUID of version 7, whose first 48 bits are the time of its creation.

use std::fmt;
use std::str::FromStr;

use ledger::UnixMs;
use rand::RngExt as _;

/// The id of a task, as callers know it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId([u8; 16]);

/// A text that is not a task id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a task id is a UUID")]
pub struct TaskIdError;

/// The bytes that have a hyphen before them in the text form.
const HYPHENS: [usize; 4] = [4, 6, 8, 10];

impl TaskId {
    /// A fresh id. It sorts before the ids of later milliseconds.
    pub fn random(now: UnixMs) -> Self {
        let mut bytes: [u8; 16] = rand::rng().random();
        let time = u64::try_from(now.get()).unwrap_or(0).to_be_bytes();
        for (byte, of_time) in bytes.iter_mut().zip(time.into_iter().skip(2)) {
            *byte = of_time;
        }
        bytes[6] = (bytes[6] & 0x0f) | 0x70;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        Self(bytes)
    }

    /// Parses the text form, in lower case only, so that each task has one spelling.
    pub fn parse(text: &str) -> Result<Self, TaskIdError> {
        let mut bytes = [0; 16];
        let mut rest = text.bytes();
        for (place, byte) in bytes.iter_mut().enumerate() {
            if HYPHENS.contains(&place) && rest.next() != Some(b'-') {
                return Err(TaskIdError);
            }
            let mut digit = || {
                let sign = rest.next().filter(|sign| !sign.is_ascii_uppercase())?;
                char::from(sign).to_digit(16)
            };
            let (high, low) = (digit().ok_or(TaskIdError)?, digit().ok_or(TaskIdError)?);
            *byte = u8::try_from(high * 16 + low).map_err(|_| TaskIdError)?;
        }
        match rest.next() {
            None => Ok(Self(bytes)),
            Some(_) => Err(TaskIdError),
        }
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, byte) in self.0.iter().enumerate() {
            if HYPHENS.contains(&place) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for TaskId {
    type Err = TaskIdError;

    fn from_str(text: &str) -> Result<Self, TaskIdError> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_uuid_of_version_7_and_reads_back() {
        let id = TaskId::random(UnixMs::new(0x0198_76ab_cdef));
        let text = id.to_string();
        assert_eq!(text.len(), 36);
        assert_eq!(&text[..15], "019876ab-cdef-7");
        assert!("89ab".contains(&text[19..20]), "{text}");
        assert_eq!(TaskId::parse(&text), Ok(id));
        assert_ne!(
            TaskId::random(UnixMs::new(0)),
            TaskId::random(UnixMs::new(0))
        );
    }

    #[test]
    fn other_texts_are_no_task_id() {
        for text in [
            "",
            "019876ab-cdef-7000-8000-00000000000",
            "019876ab-cdef-7000-8000-0000000000000",
            "019876abcdef70008000000000000000",
            "019876AB-cdef-7000-8000-000000000000",
            "019876ab-cdef-7000-8000-00000000000g",
            "../../etc/passwd",
        ] {
            assert_eq!(TaskId::parse(text), Err(TaskIdError), "{text}");
        }
    }
}
