//! `[log]`: the format of the log on standard error.

use toml::de::DeValue;

use crate::config::document::setting::{optional, settings};
use crate::config::document::{Section, value};

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
        /// The format of each line: `text` for people, or `json`, one object with the same fields. If left out, lines
        /// are text on a terminal and JSON everywhere else. The variable `TOLLGATE_LOG` sets the level.
        pub format: Option<LogFormat> = optional("format", read_format, r#""json""#),
    }
}

fn read_format(raw: &DeValue<'_>) -> Result<LogFormat, String> {
    let words = [("text", LogFormat::Text), ("json", LogFormat::Json)];
    value::one_of(raw, &words)
}
