//! Channels and models as a versioned document.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use sha2::{Digest as _, Sha256};
use toml_edit::DocumentMut;

use super::edit::{self, CHANNELS, MODELS};

/// The entries of a configuration, with the same members as in the file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entries {
    pub(crate) channels: Vec<Map<String, Json>>,
    pub(crate) models: Vec<Map<String, Json>>,
}

/// The file is not valid TOML, so its entries can be neither read nor replaced.
#[derive(Debug, thiserror::Error)]
#[error("the configuration is not TOML: {0}")]
pub(crate) struct EntriesError(#[from] toml_edit::TomlError);

impl Entries {
    pub(crate) fn of(text: &str) -> Result<Self, EntriesError> {
        let document: DocumentMut = text.parse()?;
        Ok(Self {
            channels: edit::read(&document, &CHANNELS),
            models: edit::read(&document, &MODELS),
        })
    }

    /// Replaces the entries in the text of a configuration file. Comments and all other settings stay.
    pub(crate) fn write_into(&self, text: &str) -> Result<String, EntriesError> {
        let mut document: DocumentMut = text.parse()?;
        edit::write(&mut document, &CHANNELS, &self.channels);
        edit::write(&mut document, &MODELS, &self.models);
        Ok(document.to_string())
    }

    /// A version number that changes with every change of an entry: the beginning of a digest, limited to the integers
    /// that JSON parsers read exactly.
    pub(crate) fn digest_version(&self) -> u64 {
        let text = serde_json::to_vec(self).unwrap_or_default();
        let digest = Sha256::digest(text);
        digest
            .iter()
            .take(6)
            .fold(0, |number, byte| (number << 8) | u64::from(*byte))
    }

    /// The entries that are absent or different in `other`. The audit row of a change contains only these entries.
    pub(crate) fn without_those_of(&self, other: &Self) -> Self {
        let beyond = |ours: &[Map<String, Json>], theirs: &[Map<String, Json>]| {
            let differs = |entry: &&Map<String, Json>| !theirs.contains(entry);
            ours.iter().filter(differs).cloned().collect()
        };
        Self {
            channels: beyond(&self.channels, &other.channels),
            models: beyond(&self.models, &other.models),
        }
    }

    /// Copies credentials from `before` to channels that have no member `credential`. Clients never see credentials, so
    /// an entry that they send back without one keeps its credential. Null removes it.
    pub(crate) fn keep_credentials_of(&mut self, before: &Self) {
        for channel in &mut self.channels {
            if channel.contains_key("credential") {
                continue;
            }
            let same = |other: &&Map<String, Json>| other.get("name") == channel.get("name");
            let known = before.channels.iter().find(same);
            if let Some(known) = known.and_then(|known| known.get("credential")) {
                channel.insert("credential".to_owned(), known.clone());
            }
        }
    }

    /// Switches a channel on or off. Returns whether the channel exists.
    pub(crate) fn switch_channel(&mut self, name: &str, enabled: bool) -> bool {
        let is_it = |channel: &&mut Map<String, Json>| {
            channel.get("name").and_then(Json::as_str) == Some(name)
        };
        let Some(channel) = self.channels.iter_mut().find(is_it) else {
            return false;
        };
        // An entry without the member is enabled.
        if enabled {
            channel.remove("enabled");
        } else {
            channel.insert("enabled".to_owned(), Json::Bool(false));
        }
        true
    }

    /// The files that channels name as their credential.
    pub(crate) fn credential_files(&self) -> impl Iterator<Item = &str> {
        let credentials = self.channels.iter().filter_map(|it| it.get("credential"));
        credentials.filter_map(|it| it.get("file")?.as_str())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const FILE: &str = r#"# The gateway of the shop.
[server]
listen = "127.0.0.1:8080" # behind the proxy

# The account of the shop.
[[channel]]
name = "main"      # as routes call it
preset = "openai"
credential = { env = "OPENAI_API_KEY" }

[[model]]
id = "openai/large"
kind = "text"
created = 2026-09-01
routes = [{ channel = "main", model = "large" }]
# Checked in May.
price = { input = "1.25", output = "10" }

[[model]]
id = "openai/small"
kind = "text"
[[model.routes]]
channel = "main"
model = "small"

[journal]
keep_days = 30 # days
"#;

    fn entry(json: &Json) -> Map<String, Json> {
        json.as_object().unwrap().clone()
    }

    #[test]
    fn entries_are_read_with_dates_as_texts() {
        let entries = Entries::of(FILE).unwrap();
        assert_eq!(
            entries.channels[0]["credential"],
            json!({ "env": "OPENAI_API_KEY" })
        );
        assert_eq!(entries.models[0]["created"], "2026-09-01");
        assert_eq!(
            entries.models[1]["routes"],
            json!([{ "channel": "main", "model": "small" }])
        );
    }

    #[test]
    fn the_same_entries_leave_the_text_as_it_is() {
        let entries = Entries::of(FILE).unwrap();
        assert_eq!(entries.write_into(FILE).unwrap(), FILE);
    }

    #[test]
    fn a_change_keeps_comments_and_everything_else() {
        let mut entries = Entries::of(FILE).unwrap();
        entries.models[0]["price"] = json!({ "input": "2", "output": "10" });
        entries.channels[0].insert("protocols".to_owned(), json!(["chat"]));
        entries.models[1].remove("routes");
        let expected = FILE
            .replace(
                "{ input = \"1.25\", output = \"10\" }",
                "{ input = \"2\", output = \"10\" }",
            )
            .replace("_KEY\" }\n", "_KEY\" }\nprotocols = [\"chat\"]\n")
            .replace(
                "[[model.routes]]\nchannel = \"main\"\nmodel = \"small\"\n",
                "",
            );
        assert_eq!(entries.write_into(FILE).unwrap(), expected);
    }

    #[test]
    fn new_entries_stand_behind_the_old_ones_and_removed_ones_are_gone() {
        let mut entries = Entries::of(FILE).unwrap();
        let second =
            json!({ "preset": "sim", "name": "second", "base_url": "http://sim/v1", "x": null });
        entries.channels.push(entry(&second));
        entries.models.remove(0);
        let text = entries.write_into(FILE).unwrap();
        let again = Entries::of(&text).unwrap();
        assert_eq!(
            again.channels[1],
            entry(&json!({ "preset": "sim", "name": "second", "base_url": "http://sim/v1" }))
        );
        assert_eq!(again.models, entries.models);
        let place = |what: &str| {
            text.find(what)
                .unwrap_or_else(|| panic!("no {what} in {text}"))
        };
        assert!(place("OPENAI_API_KEY") < place("name = \"second\""));
        assert!(place("name = \"second\"") < place("openai/small"), "{text}");
        assert!(place("openai/small") < place("[journal]"), "{text}");
        assert!(!text.contains("openai/large"));
        assert!(
            text.contains("\n\n[[channel]]\nname = \"second\"\npreset = \"sim\"\n"),
            "{text}"
        );
    }

    #[test]
    fn the_order_of_entries_is_that_of_the_list() {
        let mut entries = Entries::of(FILE).unwrap();
        entries.models.reverse();
        let text = entries.write_into(FILE).unwrap();
        assert_eq!(Entries::of(&text).unwrap(), entries, "{text}");
    }

    #[test]
    fn tables_inside_an_entry_stay_with_it() {
        const NESTED: &str = "[[channel]]\nname = \"a\"\n[channel.credential]\nenv = \"A\"\n\n\
            [[channel]]\nname = \"b\"\n[channel.credential]\nenv = \"B\"\n\n\
            [[model]]\nid = \"x/one\"\n[[model.routes]]\nchannel = \"a\"\n[model.price]\ninput = \"1\"\n\n\
            [[model]]\nid = \"x/two\"\n[[model.routes]]\nchannel = \"b\"\n[model.price]\ninput = \"2\"\n";
        let given = Entries::of(NESTED).unwrap();
        let mut changes = Vec::new();
        let mut added = given.clone();
        added.channels.push(entry(&json!({ "name": "c" })));
        added.models.insert(
            0,
            entry(&json!({ "id": "x/new", "routes": [{ "channel": "c" }] })),
        );
        changes.push(added);
        for at in 0..2 {
            let mut removed = given.clone();
            removed.channels.remove(at);
            removed.models.remove(at);
            changes.push(removed);
        }
        let mut reversed = given.clone();
        reversed.channels.reverse();
        reversed.models.reverse();
        changes.push(reversed);
        for entries in changes {
            let text = entries.write_into(NESTED).unwrap();
            assert_eq!(Entries::of(&text).unwrap(), entries, "{text}");
        }
    }

    #[test]
    fn entries_can_be_put_into_a_file_without_any_and_taken_out_of_it() {
        let entries = Entries::of(FILE).unwrap();
        for text in [
            "",
            "[server]\nlisten = \"127.0.0.1:1\"\n",
            "channel = []\nmodel = [{ id = \"a/b\" }]\n",
        ] {
            let written = entries.write_into(text).unwrap();
            assert_eq!(Entries::of(&written).unwrap(), entries, "{written}");
            let emptied = Entries::default().write_into(&written).unwrap();
            assert_eq!(
                Entries::of(&emptied).unwrap(),
                Entries::default(),
                "{emptied}"
            );
        }
    }

    #[test]
    fn the_version_is_that_of_the_entries_and_not_of_their_form() {
        let entries = Entries::of(FILE).unwrap();
        let version = entries.digest_version();
        assert!(version < 1 << 53);
        let rewritten = entries.write_into("[server]\n").unwrap();
        assert_eq!(Entries::of(&rewritten).unwrap().digest_version(), version);
        let mut other = entries.clone();
        other.models[0]["price"]["output"] = json!("11");
        assert_ne!(other.digest_version(), version);
        assert_eq!(other.without_those_of(&entries).models, other.models[..1]);
        assert!(other.without_those_of(&entries).channels.is_empty());
    }

    #[test]
    fn a_switched_channel_keeps_everything_else() {
        let mut entries = Entries::of(FILE).unwrap();
        assert!(entries.switch_channel("main", false));
        let off = entries.write_into(FILE).unwrap();
        let expected = FILE.replace("_KEY\" }\n", "_KEY\" }\nenabled = false\n");
        assert_eq!(off, expected);
        assert!(entries.switch_channel("main", true));
        assert_eq!(entries.write_into(&off).unwrap(), FILE);
        assert!(!entries.switch_channel("other", true));
    }

    #[test]
    fn a_credential_that_is_not_mentioned_stays() {
        let before = Entries::of(FILE).unwrap();
        let mut after = before.clone();
        after.channels[0].remove("credential");
        after.keep_credentials_of(&before);
        assert_eq!(after, before);
        after.channels[0].insert("credential".to_owned(), Json::Null);
        after.keep_credentials_of(&before);
        assert!(!after.write_into(FILE).unwrap().contains("OPENAI_API_KEY"));
    }
}
