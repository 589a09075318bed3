//! The errors of commands.

use std::fmt;
use std::io;
use std::process::ExitCode;

use store::{OpenError, StoreError};

use crate::config::Problem;
use crate::gateway::StartError;

/// Why a command failed. `main` prints it to standard error.
#[derive(Debug)]
pub(crate) enum CommandError {
    Message(String),
    Problems(Vec<Problem>),
    /// The command has already printed the problem.
    Reported,
    /// The reader of our output, such as `head`, has closed it. This counts as success.
    OutputClosed,
}

impl CommandError {
    pub(crate) fn message(text: impl Into<String>) -> Self {
        Self::Message(text.into())
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Message(_) | Self::Problems(_) | Self::Reported => ExitCode::FAILURE,
            Self::OutputClosed => ExitCode::SUCCESS,
        }
    }
}

impl fmt::Display for CommandError {
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
            Self::Reported | Self::OutputClosed => Ok(()),
        }
    }
}

impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::OutputClosed;
        }
        Self::Message(error.to_string())
    }
}

impl From<OpenError> for CommandError {
    fn from(error: OpenError) -> Self {
        Self::Message(with_sources(&error))
    }
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        Self::Message(with_sources(&error))
    }
}

impl From<StartError> for CommandError {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Config(problems) => Self::Problems(problems),
            other => Self::Message(with_sources(&other)),
        }
    }
}

impl From<Vec<Problem>> for CommandError {
    fn from(problems: Vec<Problem>) -> Self {
        Self::Problems(problems)
    }
}

/// The messages of an error and of its causes, without repetitions.
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
