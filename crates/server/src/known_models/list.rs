//! The list of known models: the built-in ones, and those of a file.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use ledger::PriceCard;
use protocol::Tool;
use serde::Deserialize;
use serde_json::json;
use upstream::Preset;

use super::entry::{Day, KnownModel};

const BUILT_IN: &str = include_str!("../../../../catalog/models.toml");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The catalog that is built into the program.
    BuiltIn,
    /// The file that the configuration names.
    File,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct KnownModels {
    pub(crate) version: String,
    pub(crate) date: Day,
    entries: Vec<(KnownModel, Origin)>,
    by_id: BTreeMap<String, usize>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CatalogFile {
    version: String,
    date: Day,
    #[serde(default)]
    model: Vec<KnownModel>,
}

impl KnownModels {
    pub(crate) fn built_in() -> &'static Self {
        static BUILT_IN_MODELS: LazyLock<KnownModels> =
            LazyLock::new(|| match KnownModels::parse(BUILT_IN, Origin::BuiltIn) {
                Ok(models) => models,
                // A test parses this file, so a program with an invalid file is never released.
                Err(fault) => unreachable!("catalog/models.toml: {fault}"),
            });
        &BUILT_IN_MODELS
    }

    /// Parses a catalog file. The error describes the first problem.
    pub(crate) fn parse(text: &str, origin: Origin) -> Result<Self, String> {
        let file: CatalogFile = toml::from_str(text).map_err(|fault| fault.to_string())?;
        let mut models = Self {
            version: file.version,
            date: file.date,
            entries: Vec::with_capacity(file.model.len()),
            by_id: BTreeMap::new(),
        };
        for model in file.model {
            check(&model).map_err(|fault| format!("{}: {fault}", model.id))?;
            if models.by_id.contains_key(&model.id) {
                return Err(format!("{}: stands there twice", model.id));
            }
            models.put(model, origin);
        }
        Ok(models)
    }

    /// The built-in models and those of a file. An entry of the file replaces the built-in one with the same id.
    pub(crate) fn with_file(file: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(file)
            .map_err(|error| format!("{} cannot be read: {error}", file.display()))?;
        let own = Self::parse(&text, Origin::File)
            .map_err(|fault| format!("{}: {fault}", file.display()))?;
        let mut models = Self::built_in().clone();
        for (model, origin) in own.entries {
            models.put(model, origin);
        }
        Ok(models)
    }

    fn put(&mut self, model: KnownModel, origin: Origin) {
        if let Some(place) = self.by_id.get(&model.id) {
            if let Some(entry) = self.entries.get_mut(*place) {
                *entry = (model, origin);
            }
        } else {
            self.by_id.insert(model.id.clone(), self.entries.len());
            self.entries.push((model, origin));
        }
    }

    pub(crate) fn find(&self, id: &str) -> Option<(&KnownModel, Origin)> {
        let (model, origin) = self.entries.get(*self.by_id.get(id)?)?;
        Some((model, *origin))
    }

    /// All models, in the order of the files.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&KnownModel, Origin)> {
        self.entries.iter().map(|(model, origin)| (model, *origin))
    }

    /// The models that channels of this preset serve.
    pub(crate) fn of_preset(&self, preset: Preset) -> impl Iterator<Item = (&KnownModel, Origin)> {
        self.iter()
            .filter(move |(model, _)| model.offer(preset).is_some())
    }
}

/// Checks the rules that the types of an entry do not enforce.
fn check(model: &KnownModel) -> Result<(), String> {
    if !model.id.contains('/') || model.id.split('/').any(str::is_empty) {
        return Err("the id must have the form <maker>/<model>".to_owned());
    }
    if model.vendors.is_empty() {
        return Err("no vendor serves it".to_owned());
    }
    if model.vendors.iter().any(|offer| offer.protocols.is_empty()) {
        return Err("a vendor serves it by no protocol".to_owned());
    }
    let costs = model.vendors.iter().filter_map(|offer| offer.cost.as_ref());
    for card in costs.chain([&model.price]) {
        check_tools(card)?;
    }
    Ok(())
}

/// Refuses prices of tools that the gateway does not meter, because such a price would never be charged.
fn check_tools(card: &PriceCard) -> Result<(), String> {
    let card = json!(card);
    let names = card.get("tools").and_then(|tools| tools.as_object());
    let names = names.into_iter().flat_map(|tools| tools.keys());
    let unknown = names.filter(|name| !Tool::ALL.iter().any(|tool| tool.as_str() == *name));
    match unknown.map(String::as_str).next() {
        Some(name) => Err(format!("`{name}` is no built-in tool")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "version = '1'\ndate = '2026-11-15'\n";

    fn model(id: &str, more: &str) -> String {
        format!(
            "[[model]]\nid = '{id}'\nkind = 'text'\nprice = {{ input = '1', output = '2' }}\nsource = 'a page'\n{more}\n"
        )
    }

    #[test]
    fn the_built_in_catalog_has_a_version_and_every_entry_a_source() {
        let models = KnownModels::built_in();
        assert!(!models.version.is_empty());
        assert!(models.iter().count() >= 100);
        for (model, origin) in models.iter() {
            assert_eq!(origin, Origin::BuiltIn);
            assert!(!model.source.is_empty(), "{}", model.id);
            assert_ne!(model.unsure.as_deref(), Some(""), "{}", model.id);
            assert!(
                model
                    .next_price
                    .as_ref()
                    .is_none_or(|next| next.price != model.price)
            );
        }
    }

    #[test]
    fn what_is_not_certain_says_so() {
        for (model, _) in KnownModels::built_in().iter() {
            let id = &model.id;
            let has_day = model.created.is_some() || model.created_unsure.is_some();
            assert!(has_day, "{id}: neither a day nor why there is none");
            assert_ne!(model.created_unsure.as_deref(), Some(""), "{id}");
            for (place, offer) in model.vendors.iter().enumerate() {
                assert_ne!(offer.unsure.as_deref(), Some(""), "{id}");
                // The source of the entry is also the source of the first vendor.
                let is_known = place == 0 || offer.source.is_some() || offer.unsure.is_some();
                assert!(
                    is_known,
                    "{id} at {}: neither sourced nor unsure",
                    offer.preset
                );
                let is_at_bedrock = offer.preset.as_str().starts_with("bedrock");
                if is_at_bedrock && id.starts_with("openai/") {
                    let notes = [&model.unsure, &offer.unsure];
                    let notes = notes.into_iter().flatten();
                    let is_noted = notes.into_iter().any(|it| it.contains("cache writes"));
                    assert!(is_noted, "{id} at {}", offer.preset);
                }
            }
        }
    }

    #[test]
    fn a_faulty_file_is_refused_with_its_first_fault() {
        let vendors = "vendors = [{ preset = 'openai', model = 'm', protocols = ['chat'] }]";
        for (text, fault) in [
            (String::new(), "missing field `version`"),
            (
                format!("{HEAD}{}", model("a/b", "")),
                "missing field `vendors`",
            ),
            (
                format!("{HEAD}{}", model("a/b", "vendors = []")),
                "a/b: no vendor serves it",
            ),
            (
                format!("{HEAD}{}", model("ab", vendors)),
                "ab: the id must have the form <maker>/<model>",
            ),
            (
                format!(
                    "{HEAD}{}",
                    model("a/b", &vendors.replace("openai", "opena"))
                ),
                "\"opena\" is none of: openai",
            ),
            (
                format!("{HEAD}{}", model("a/b", &vendors.replace("['chat']", "[]"))),
                "a/b: a vendor serves it by no protocol",
            ),
            (
                format!(
                    "{HEAD}{}",
                    model("a/b", &format!("{vendors}\nretires = 'soon'"))
                ),
                "\"soon\" is not a date such as 2026-11-15",
            ),
            (
                format!("{HEAD}{0}{0}", model("a/b", vendors)),
                "a/b: stands there twice",
            ),
            (
                format!("{HEAD}{}", model("a/b", vendors))
                    .replace("output = '2'", "tools = { x = '1' }"),
                "a/b: `x` is no built-in tool",
            ),
        ] {
            let error = KnownModels::parse(&text, Origin::File).unwrap_err();
            assert!(error.contains(fault), "{error}\ninstead of {fault}");
        }
    }

    #[test]
    fn an_entry_of_a_file_replaces_the_one_of_the_same_id() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("catalog.toml");
        let vendors = "vendors = [{ preset = 'xai', model = 'm', protocols = ['chat'] }]";
        let (first, _) = KnownModels::built_in().iter().next().unwrap();
        let text = format!(
            "{HEAD}{}{}",
            model(&first.id, vendors),
            model("new/one", vendors)
        );
        std::fs::write(&file, text).unwrap();
        let models = KnownModels::with_file(&file).unwrap();
        assert_eq!(
            models.iter().count(),
            KnownModels::built_in().iter().count() + 1
        );
        let (replaced, origin) = models.find(&first.id).unwrap();
        assert_eq!((replaced.source.as_str(), origin), ("a page", Origin::File));
        assert_eq!(models.iter().next().unwrap().0.id, first.id);
        let xai: Preset = "xai".parse().unwrap();
        assert!(
            models
                .of_preset(xai)
                .any(|(model, _)| model.id == "new/one")
        );
        let missing = KnownModels::with_file(&folder.path().join("none")).unwrap_err();
        assert!(missing.contains("none cannot be read"), "{missing}");
    }
}
