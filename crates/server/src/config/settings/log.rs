//! `[log]`: how the log on standard error is written.

use toml::de::DeValue;

use crate::config::document::setting::{optional, settings};
use crate::config::document::{Section, value};

/// How a line of the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object on each line.
    Json,
}

settings! {
    /// The log on standard error.
    pub struct LogOutput in "log" {
        /// How each line is written: `text` for people, or `json`, one object with the same fields. If left out, lines
        /// are text on a terminal and JSON everywhere else. `TOLLGATE_LOG` sets the level.
        pub format: Option<LogFormat> = optional("format", read_format, r#""json""#),
    }
}

fn read_format(raw: &DeValue<'_>) -> Result<LogFormat, String> {
    let words = [("text", LogFormat::Text), ("json", LogFormat::Json)];
    value::one_of(raw, &words)
}
