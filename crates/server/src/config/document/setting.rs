//! Declares settings: the key, the default, the reader, and the line in the example file.
//!
//! `settings!` turns a list of settings into one table of the configuration file. The functions below it declare
//! settings of each type.

use std::fmt::Display;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use ledger::Micro;
use toml::de::DeValue;

use super::secret::{SecretSource, read_source};
use super::section::Section;
use super::value;

/// Declares a table: a struct with its defaults, its reader and its part of `config/example.toml`.
/// The comment of a field is also its comment in that file.
macro_rules! settings {
    (
        $(#[$about:meta])*
        pub struct $table:ident in $name:literal {
            $($(#[doc = $comment:literal])+ pub $field:ident: $type:ty = $setting:expr,)+
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $table {
            $($(#[doc = $comment])+ pub $field: $type,)+
        }

        impl Default for $table {
            fn default() -> Self {
                Self { $($field: $setting.default,)+ }
            }
        }

        impl $table {
            /// Reads the table. A setting that the file leaves out keeps its default.
            pub(crate) fn read(section: &mut Section<'_, '_, '_>) -> Self {
                Self { $($field: $setting.read(section),)+ }
            }

            /// The text of the table in the example file.
            #[cfg(test)]
            pub(crate) fn example() -> String {
                let settings = [$($setting.shown(&[$($comment),+]),)+];
                format!("[{}]\n{}\n", $name, settings.concat())
            }
        }
    };
}
pub(crate) use settings;

pub(crate) struct Setting<T> {
    pub(crate) key: &'static str,
    pub(crate) default: T,
    #[cfg_attr(not(test), expect(dead_code, reason = "only a test writes the file"))]
    pub(crate) example: Example,
    pub(crate) reader: Box<Reader<T>>,
}

/// Reads the value of a key. The last argument is the default, for a table that has no valid value of the key.
type Reader<T> = dyn FnOnce(&mut Section<'_, '_, '_>, &'static str, T) -> T;

/// The value of a setting in the example file.
#[cfg_attr(not(test), expect(dead_code, reason = "only a test writes the file"))]
pub(crate) enum Example {
    Default(String),
    /// An example for a setting that has no default. The file shows it commented out.
    Optional(&'static str),
}

impl<T> Setting<T> {
    pub(crate) fn read(self, section: &mut Section<'_, '_, '_>) -> T {
        (self.reader)(section, self.key, self.default)
    }

    /// The comment and the line of the setting in the example file.
    #[cfg(test)]
    pub(crate) fn shown(self, comment: &[&str]) -> String {
        const WIDTH: usize = 110;
        let mut text = "#".to_owned();
        let mut line_start = 0;
        for word in comment.iter().flat_map(|line| line.split_whitespace()) {
            if text.len() - line_start + 1 + word.len() > WIDTH {
                text.push_str("\n#");
                line_start = text.len() - 1;
            }
            text.push(' ');
            text.push_str(word);
        }
        let key = self.key;
        match self.example {
            Example::Default(value) => format!("{text}\n{key} = {value}\n"),
            Example::Optional(value) => format!("{text}\n# {key} = {value}\n"),
        }
    }
}

pub(crate) fn single<T: 'static>(
    key: &'static str,
    default: T,
    example: impl Display,
    read: impl FnOnce(&DeValue<'_>) -> Result<T, String> + 'static,
) -> Setting<T> {
    Setting {
        key,
        default,
        example: Example::Default(example.to_string()),
        reader: Box::new(|section, key, default| section.value(key, read).unwrap_or(default)),
    }
}

pub(crate) fn flag(key: &'static str, default: bool) -> Setting<bool> {
    single(key, default, default, value::flag)
}

/// A whole number, 0 included.
pub(crate) fn count<T>(key: &'static str, default: T) -> Setting<T>
where
    T: TryFrom<u64> + Display + Copy + 'static,
{
    single(key, default, default, value::count)
}

pub(crate) fn positive<T>(key: &'static str, default: T) -> Setting<T>
where
    T: TryFrom<u64> + Default + PartialEq + Display + Copy + 'static,
{
    single(key, default, default, value::positive)
}

pub(crate) fn credits(key: &'static str, default: Micro) -> Setting<Micro> {
    single(key, default, format_args!("\"{default}\""), value::credits)
}

/// One of two words. The first is the default.
pub(crate) fn one_of<T: Copy + 'static>(
    key: &'static str,
    words: &'static [(&'static str, T); 2],
) -> Setting<T> {
    let [(word, default), _] = words;
    single(key, *default, format_args!("\"{word}\""), |raw| {
        value::one_of(raw, words)
    })
}

/// A duration in milliseconds, above 0.
pub(crate) fn millis(key: &'static str, default: u64) -> Setting<Duration> {
    single(key, Duration::from_millis(default), default, value::millis)
}

/// A duration in milliseconds, where 0 has a special meaning.
pub(crate) fn millis_or_zero(key: &'static str, default: u64) -> Setting<Duration> {
    single(
        key,
        Duration::from_millis(default),
        default,
        value::millis_or_zero,
    )
}

/// A duration in milliseconds, from 0 to `max`.
pub(crate) fn millis_up_to(key: &'static str, default: u64, max: u64) -> Setting<Duration> {
    single(
        key,
        Duration::from_millis(default),
        default,
        move |raw| match value::millis_or_zero(raw)? {
            time if time > Duration::from_millis(max) => Err(format!("must be at most {max}")),
            time => Ok(time),
        },
    )
}

/// A duration in milliseconds, within a range.
pub(crate) fn millis_within(
    key: &'static str,
    default: u64,
    range: RangeInclusive<u64>,
) -> Setting<Duration> {
    single(key, Duration::from_millis(default), default, move |raw| {
        let time = value::millis(raw)?;
        let (min, max) = (*range.start(), *range.end());
        if time < Duration::from_millis(min) || time > Duration::from_millis(max) {
            return Err(format!("must be between {min} and {max}"));
        }
        Ok(time)
    })
}

/// A duration in minutes, above 0, at most a day.
pub(crate) fn minutes(key: &'static str, default: u32) -> Setting<Duration> {
    const MINUTES_MAX: u32 = 24 * 60;
    single(key, seconds(default, 60), default, |raw| {
        value::positive(raw).and_then(|count| at_most(count, MINUTES_MAX, 60))
    })
}

/// Ten years, in hours.
const HOURS_MAX: u32 = 10 * 366 * 24;

/// A duration in hours, above 0.
pub(crate) fn hours(key: &'static str, default: u32) -> Setting<Duration> {
    single(key, seconds(default, 3600), default, |raw| {
        value::positive(raw).and_then(|count| at_most(count, HOURS_MAX, 3600))
    })
}

/// A duration in hours, 0 included.
pub(crate) fn hours_or_zero(key: &'static str, default: u32) -> Setting<Duration> {
    single(key, seconds(default, 3600), default, |raw| {
        value::count(raw).and_then(|count| at_most(count, HOURS_MAX, 3600))
    })
}

fn at_most(count: u32, max: u32, unit_secs: u64) -> Result<Duration, String> {
    if count > max {
        return Err(format!("must be at most {max}"));
    }
    Ok(seconds(count, unit_secs))
}

fn seconds(count: u32, unit_secs: u64) -> Duration {
    Duration::from_secs(u64::from(count) * unit_secs)
}

pub(crate) fn socket(key: &'static str, default: impl Into<SocketAddr>) -> Setting<SocketAddr> {
    let default = default.into();
    single(key, default, format_args!("\"{default}\""), value::socket)
}

/// A name that is also used as a label of metrics.
pub(crate) fn name(key: &'static str, default: &'static str) -> Setting<String> {
    single(
        key,
        default.to_owned(),
        format_args!("\"{default}\""),
        value::label,
    )
}

pub(crate) fn optional<T: 'static>(
    key: &'static str,
    read: impl FnOnce(&DeValue<'_>) -> Result<T, String> + 'static,
    example: &'static str,
) -> Setting<Option<T>> {
    Setting {
        key,
        default: None,
        example: Example::Optional(example),
        reader: Box::new(|section, key, _| section.value(key, read)),
    }
}

/// A list that is empty by default.
pub(crate) fn list<T: 'static>(
    key: &'static str,
    read: impl Fn(&DeValue<'_>) -> Result<T, String> + 'static,
) -> Setting<Vec<T>> {
    Setting {
        key,
        default: Vec::new(),
        example: Example::Default("[]".to_owned()),
        reader: Box::new(|section, key, _| {
            let items = section.list(key, read).unwrap_or_default();
            items.into_iter().map(|item| item.value).collect()
        }),
    }
}

/// The delays before retries, in milliseconds. `too_many` is the error message for a list that is too long.
pub(crate) fn pauses(
    key: &'static str,
    default: &'static [u64],
    count_max: usize,
    too_many: &'static str,
) -> Setting<Vec<Duration>> {
    Setting {
        key,
        default: default.iter().copied().map(Duration::from_millis).collect(),
        example: Example::Default(format!("{default:?}")),
        reader: Box::new(move |section, key, default| {
            let Some(pauses) = section.list(key, value::millis) else {
                return default;
            };
            if let Some(extra) = pauses.get(count_max) {
                section
                    .log
                    .report(Some(extra.span.clone()), extra.key.as_str(), too_many);
            }
            pauses.into_iter().map(|at| at.value).collect()
        }),
    }
}

/// A path, relative to the folder of the configuration file.
pub(crate) fn path(key: &'static str, default: &'static str) -> Setting<PathBuf> {
    Setting {
        key,
        default: PathBuf::from(default),
        example: Example::Default(format!("\"{default}\"")),
        reader: Box::new(|section, key, default| {
            let named = section.value(key, value::text).map(PathBuf::from);
            section.folder().join(named.unwrap_or(default))
        }),
    }
}

pub(crate) fn optional_path(key: &'static str, example: &'static str) -> Setting<Option<PathBuf>> {
    Setting {
        key,
        default: None,
        example: Example::Optional(example),
        reader: Box::new(|section, key, _| {
            let named = section.value(key, value::text)?;
            Some(section.folder().join(named))
        }),
    }
}

/// An optional secret in the environment or in a file.
pub(crate) fn secret(key: &'static str, example: &'static str) -> Setting<Option<SecretSource>> {
    Setting {
        key,
        default: None,
        example: Example::Optional(example),
        reader: Box::new(|section, key, _| read_source(section, key)),
    }
}
