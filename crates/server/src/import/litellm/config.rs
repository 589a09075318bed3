//! Reads the configuration file of `LiteLLM`.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::yaml;

/// The maximum depth of included files.
const DEPTH_MAX: usize = 8;

/// The sections of a configuration that an import needs.
#[derive(Debug, Default)]
pub(super) struct Config {
    pub(super) model_list: Vec<Value>,
    pub(super) credential_list: Vec<Value>,
    /// Each alias, with the public name that it stands for.
    pub(super) aliases: Vec<(String, String)>,
    /// The time zone of budgets.
    pub(super) time_zone: Option<String>,
    pub(super) master_key: Option<String>,
    pub(super) has_fallbacks: bool,
    pub(super) stores_models: bool,
}

/// Reads a file and the files that it includes.
pub(super) fn read(path: &Path) -> Result<Config, String> {
    let mut config = Config::default();
    read_into(path, &mut config, 0)?;
    Ok(config)
}

fn read_into(path: &Path, config: &mut Config, depth: usize) -> Result<(), String> {
    let place = path.display();
    if depth > DEPTH_MAX {
        return Err(format!("{place}: files include each other"));
    }
    let text = std::fs::read_to_string(path).map_err(|error| format!("{place}: {error}"))?;
    let document = yaml::read(&text).map_err(|fault| format!("{place}: {fault}"))?;
    if !document.is_object() {
        return Err(format!("{place}: this is no configuration of LiteLLM"));
    }
    config.merge(&document);
    for included in list(&document, "include") {
        if let Some(name) = included.as_str() {
            let folder = path.parent().map_or_else(PathBuf::new, Path::to_path_buf);
            read_into(&folder.join(name), config, depth + 1)?;
        }
    }
    Ok(())
}

impl Config {
    /// Adds the sections of a document, or of a row of the database table that stores sections.
    pub(super) fn merge(&mut self, document: &Value) {
        self.model_list
            .extend(list(document, "model_list").cloned());
        let credentials = list(document, "credential_list").cloned();
        self.credential_list.extend(credentials);
        let (general, litellm, router) = (
            &document["general_settings"],
            &document["litellm_settings"],
            &document["router_settings"],
        );
        if let Some(zone) = litellm["timezone"].as_str() {
            self.time_zone = Some(zone.to_owned());
        }
        if let Some(key) = general["master_key"].as_str() {
            self.master_key = Some(key.to_owned());
        }
        self.stores_models |= general["store_model_in_db"] == Value::Bool(true);
        self.has_fallbacks |= [litellm, router].into_iter().any(|section| {
            ["fallbacks", "context_window_fallbacks"]
                .iter()
                .any(|name| list(section, name).next().is_some())
        });
        if let Some(aliases) = router["model_group_alias"].as_object() {
            for (alias, target) in aliases {
                let target = target.as_str().or(target["model"].as_str());
                if let Some(target) = target {
                    self.aliases.push((alias.clone(), target.to_owned()));
                }
            }
        }
    }
}

fn list<'v>(value: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> {
    value[name].as_array().into_iter().flatten()
}
