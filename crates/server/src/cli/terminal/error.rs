//! Why a command ends without success.

use std::fmt;
use std::io;
use std::process::ExitCode;

use store::{OpenError, StoreError};

use crate::config::Problem;
use crate::gateway::StartError;

/// The end of a command that failed; each is told on standard error.
#[derive(Debug)]
pub(crate) enum Stop {
    Message(String),
    Problems(Vec<Problem>),
    /// The answer itself, already written, says what is wrong.
    Told,
    /// Whoever read our output has seen enough.
    Unread,
}

impl Stop {
    pub(crate) fn message(text: impl Into<String>) -> Self {
        Self::Message(text.into())
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Message(_) | Self::Problems(_) | Self::Told => ExitCode::FAILURE,
            Self::Unread => ExitCode::SUCCESS,
        }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(text) => writeln!(f, "tollgate: {text}"),
            Self::Problems(problems) => {
                for problem in problems {
                    writeln!(f, "{problem}")?;
                }
                let count = problems.len();
                let noun = if count == 1 { "problem" } else { "problems" };
                writeln!(f, "tollgate: {count} {noun} in the configuration")
            }
            Self::Told | Self::Unread => Ok(()),
        }
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::Unread;
        }
        Self::Message(error.to_string())
    }
}

impl From<OpenError> for Stop {
    fn from(error: OpenError) -> Self {
        Self::Message(with_sources(&error))
    }
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Message(with_sources(&error))
    }
}

impl From<StartError> for Stop {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Config(problems) => Self::Problems(problems),
            other => Self::Message(with_sources(&other)),
        }
    }
}

impl From<Vec<Problem>> for Stop {
    fn from(problems: Vec<Problem>) -> Self {
        Self::Problems(problems)
    }
}

/// An error and what caused it, without saying the same twice.
pub(crate) fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
