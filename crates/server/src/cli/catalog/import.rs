//! Writes imported models to the file that `[catalog]` names.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use toml_edit::DocumentMut;

use crate::cli::context::Context;
use crate::cli::terminal::CommandError;
use crate::config::{Config, FileDraft, read_if_exists};
use crate::known_models::{KnownModel, KnownModels, Origin, write_file};

/// The name of the file, if the configuration does not name one.
const FILE: &str = "catalog.toml";

/// Asks whether to make the changes that were shown.
pub(super) fn confirm(models: usize) -> Result<bool, CommandError> {
    if !io::stdin().is_terminal() {
        return Err(CommandError::message(
            "nothing was changed, because nobody can be asked: the input is not a terminal. Say --yes to import this",
        ));
    }
    let mut prompt = io::stderr();
    write!(prompt, "Import these {models} models? [y/N] ")?;
    prompt.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(answer.trim().to_ascii_lowercase().starts_with('y'))
}

/// Writes the entries to the catalog file. If the configuration does not name such a file, adds the setting. If the
/// configuration would become invalid, restores the catalog file and returns an error.
pub(super) fn write(
    entries: &[KnownModel],
    config: &Config,
    context: &mut Context,
) -> Result<(), CommandError> {
    let Some(config_file) = config.file.clone() else {
        return Err(CommandError::message(
            "there is no configuration that could name the imported file; begin with `tollgate init`",
        ));
    };
    let named = config.catalog.file.clone();
    let file: PathBuf = named
        .clone()
        .unwrap_or_else(|| config_file.with_file_name(FILE));
    let before = read_if_exists(&file)?;
    if named.is_none() && before.is_some() {
        return Err(CommandError::message(format!(
            "{} exists, but [catalog] does not name it; name it there or move it away",
            file.display()
        )));
    }
    let mut models: Vec<KnownModel> = match &before {
        Some(text) => {
            let own = KnownModels::parse(text, Origin::File).map_err(CommandError::message)?;
            own.iter().map(|(model, _)| model.clone()).collect()
        }
        None => Vec::new(),
    };
    for entry in entries {
        match models.iter_mut().find(|model| model.id == entry.id) {
            Some(model) => *model = entry.clone(),
            None => models.push(entry.clone()),
        }
    }
    let today = jiff::Zoned::now().date().to_string();
    let text = write_file(&models, &today);
    KnownModels::parse(&text, Origin::File).map_err(CommandError::message)?;
    let config_text = std::fs::read_to_string(&config_file)?;
    put(&file, &text, before.is_some())?;
    let changed = with_setting(&config_text)?;
    let wanted = if named.is_some() {
        &config_text
    } else {
        &changed
    };
    if let Err(problems) = Config::parse(wanted, &config_file) {
        // The new entries make the configuration invalid, so restore the old file.
        match &before {
            Some(before) => replace_file(&file, before)?,
            None => std::fs::remove_file(&file)?,
        }
        return Err(problems.into());
    }
    if named.is_none() {
        replace_file(&config_file, &changed)?;
    }
    if !context.json {
        context.out.line(format!(
            "imported {} models into {}; a running gateway takes them over now",
            entries.len(),
            file.display()
        ))?;
    }
    Ok(())
}

fn put(file: &Path, text: &str, exists: bool) -> io::Result<()> {
    if !exists {
        std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(file)?;
    }
    replace_file(file, text)
}

fn replace_file(file: &Path, text: &str) -> io::Result<()> {
    FileDraft::write(file, text)?.replace()
}

/// Adds `[catalog] file` to the text of the configuration.
fn with_setting(text: &str) -> Result<String, CommandError> {
    let mut document: DocumentMut = text
        .parse()
        .map_err(|fault: toml_edit::TomlError| CommandError::message(fault.to_string()))?;
    let table = document.entry("catalog").or_insert_with(toml_edit::table);
    table["file"] = toml_edit::value(FILE);
    Ok(document.to_string())
}
