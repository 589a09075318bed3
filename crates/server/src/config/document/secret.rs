//! Reads secrets from the environment or from files. The configuration only names them.

use std::borrow::Cow;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::problem::FilePosition;
use super::section::{Section, kind_of};
use super::value;

/// The size limit of a secret. A larger file is probably the wrong file.
const SECRET_BYTES_MAX: u64 = 64 * 1024;

/// The name of a secret's environment variable or file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretSource {
    location: SecretLocation,
    /// The position of the name in the configuration, for problems that the lookup finds.
    pub(crate) position: FilePosition,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum SecretLocation {
    Env(String),
    File(PathBuf),
}

/// The result of a lookup. Not `Debug`, because it contains the secret.
pub(crate) enum SecretLookup {
    Text(String),
    /// The variable or file does not exist; the text says which.
    Absent(String),
    Empty(String),
}

impl SecretSource {
    /// Whether the secret is in this environment variable.
    pub(crate) fn is_variable(&self, name: &str) -> bool {
        matches!(&self.location, SecretLocation::Env(env) if env == name)
    }

    /// Whether the secret is in this file, even if two different paths lead to it.
    pub(crate) fn is_file(&self, path: &Path) -> bool {
        let SecretLocation::File(file) = &self.location else {
            return false;
        };
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        file == path || real(file) == real(path)
    }

    /// The secret, if it exists and is valid.
    pub(crate) fn text(&self) -> Option<String> {
        match self.look_up(&process_environment) {
            Ok(SecretLookup::Text(text)) => Some(text),
            Ok(SecretLookup::Absent(_) | SecretLookup::Empty(_)) | Err(_) => None,
        }
    }

    /// Looks up the secret. `Err` says why the secret cannot be read or is not valid.
    pub(crate) fn look_up(&self, environment: Environment<'_>) -> Result<SecretLookup, String> {
        let text = match &self.location {
            SecretLocation::Env(name) => match environment(name) {
                Some(text) => text,
                None => return Ok(SecretLookup::Absent(format!("{self} is not set"))),
            },
            SecretLocation::File(path) => match read_small(path) {
                Ok(text) => text,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Ok(SecretLookup::Absent(format!("{self} does not exist")));
                }
                Err(error) => return Err(format!("{self} cannot be read: {error}")),
            },
        };
        let text = on_one_line(text.trim());
        if text.is_empty() {
            return Ok(SecretLookup::Empty(format!("{self} is empty")));
        }
        // Most secrets are sent in headers, which cannot contain line breaks.
        if !text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
            return Err(format!("{self} holds more than one line of plain text"));
        }
        Ok(SecretLookup::Text(text.into_owned()))
    }
}

/// Removes the line breaks of a key file that is a JSON object. Any other text is returned unchanged.
pub(crate) fn on_one_line(text: &str) -> Cow<'_, str> {
    let is_object = text.starts_with('{') && text.contains('\n');
    let object = is_object.then(|| serde_json::from_str::<Map<String, Value>>(text));
    match object {
        Some(Ok(object)) => Cow::Owned(Value::Object(object).to_string()),
        _ => Cow::Borrowed(text),
    }
}

impl std::fmt::Display for SecretSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.location {
            SecretLocation::Env(name) => write!(f, "environment variable {name}"),
            SecretLocation::File(path) => write!(f, "file {}", path.display()),
        }
    }
}

/// Looks up an environment variable. Tests pass their own function.
pub(crate) type Environment<'e> = &'e dyn Fn(&str) -> Option<String>;

/// Reads the environment of this process. A value that is not Unicode is returned as empty, and every reader of secrets
/// reports an empty value.
pub(crate) fn process_environment(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.into_string().unwrap_or_default())
}

/// Reads `key = { env = "NAME" }` or `key = { file = "path" }`.
pub(crate) fn read_source(
    section: &mut Section<'_, '_, '_>,
    key: &'static str,
) -> Option<SecretSource> {
    let how =
        "must be { env = \"NAME\" } or { file = \"path\" }; a secret never stands here itself";
    let raw = section.raw(key)?;
    let path = section.path_of(key);
    if raw.get_ref().as_table().is_none() {
        let message = format!("{how}, found {}", kind_of(raw.get_ref()));
        section.log.report(Some(raw.span()), path, message);
        return None;
    }
    let mut table = Section::of(raw, path, section.log);
    let env = table.take("env", value::text);
    let file = table.take("file", value::text);
    let both_absent = !table.has("env") && !table.has("file");
    let location = match (env, file) {
        (Some(env), None) if !table.has("file") => Some(SecretLocation::Env(env.value)),
        (None, Some(file)) if !table.has("env") => {
            Some(SecretLocation::File(table.folder().join(&file.value)))
        }
        (Some(_), Some(_)) => {
            table.report("names both `env` and `file`; keep one");
            None
        }
        _ if both_absent => {
            table.report(how);
            None
        }
        _ => None,
    };
    table.end();
    let position = section.log.position(&raw.span());
    location.map(|location| SecretSource { location, position })
}

fn read_small(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    // Opening a named pipe would block until another process writes to it.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let file = std::fs::File::open(path)?;
    file.take(SECRET_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > SECRET_BYTES_MAX {
        return Err(io::Error::other("larger than 64 KiB"));
    }
    Ok(text)
}
