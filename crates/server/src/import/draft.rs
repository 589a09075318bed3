//! Writes the channels and models of another system as part of a configuration, for an operator to review.
//!
//! The text never contains a credential: channels name environment variables, and the report says where their values
//! are now.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use protocol::Kind;
use upstream::Preset;

use crate::known_models::KnownModels;

/// Channels, models, and the variables that channels need.
#[derive(Debug, Default)]
pub(crate) struct CatalogDraft {
    pub(crate) channels: Vec<DraftChannel>,
    pub(crate) models: BTreeMap<String, DraftModel>,
    /// Environment variables to set, each with the current location of its value.
    pub(crate) variables: BTreeMap<String, String>,
    /// Maps public names of the other system to model ids of this one.
    pub(crate) ids: BTreeMap<String, String>,
}

/// Whether an account of this preset needs more than an address and a key. Only the operator knows the other values.
pub(crate) fn needs_account(preset: Preset) -> bool {
    preset.base_url().is_some_and(|url| url.contains('{'))
}

/// Whether an address may contain a credential: a user, a query or a fragment. Such an address is not copied.
pub(crate) fn may_hold_secret(address: &str) -> bool {
    address.contains(['@', '?', '#'])
}

/// The note for a channel whose address is not copied.
pub(crate) const ADDRESS_NOT_COPIED: &str = "its address has a user, a query or a fragment, which may be a secret; write its channel by hand";

#[derive(Debug, Clone)]
pub(crate) struct DraftChannel {
    pub(crate) name: String,
    pub(crate) preset: Preset,
    pub(crate) base_url: Option<String>,
    /// The environment variable that contains the account's key.
    pub(crate) variable: Option<String>,
    /// Whether the channel serves all known models of this vendor.
    pub(crate) has_all_models: bool,
    pub(crate) comments: Vec<String>,
}

/// A model, with the values that are known.
#[derive(Debug, Clone, Default)]
pub(crate) struct DraftModel {
    pub(crate) kind: Option<Kind>,
    pub(crate) routes: Vec<DraftRoute>,
    pub(crate) price: BTreeMap<&'static str, String>,
    pub(crate) context_tokens: Option<u64>,
    pub(crate) max_output_tokens: Option<u64>,
    pub(crate) comments: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DraftRoute {
    pub(crate) channel: String,
    pub(crate) model: String,
    pub(crate) priority: u32,
    pub(crate) weight: u32,
}

impl CatalogDraft {
    /// Records and returns the id for a public name. `route` is a preset and the vendor's name for the model.
    pub(crate) fn id_for(
        &mut self,
        system: &str,
        name: &str,
        route: Option<(Preset, &str)>,
    ) -> String {
        if let Some(id) = self.ids.get(name) {
            return id.clone();
        }
        let known = route.and_then(|(preset, model)| {
            let known = KnownModels::built_in().of_preset(preset);
            let mut known = known.map(|(known, _)| known);
            let served = known.find(|it| it.offer(preset).is_some_and(|it| it.model == model))?;
            Some(served.id.clone())
        });
        let maker = route.and_then(|(preset, _)| preset.maker());
        let id = known.unwrap_or_else(|| public_id(maker.unwrap_or(system), name));
        self.ids.insert(name.to_owned(), id.clone());
        id
    }

    /// The recorded id for a public name, or else the id that the name would get.
    pub(crate) fn known_id(&self, system: &str, name: &str) -> String {
        let known = self.ids.get(name).cloned();
        known.unwrap_or_else(|| public_id(system, name))
    }

    pub(crate) fn channel_name(&self, wanted: &str) -> String {
        let plain = |c: char| {
            if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') {
                c
            } else {
                '-'
            }
        };
        let name: String = wanted.chars().map(plain).take(56).collect();
        let name = name.trim_matches('-');
        let name = if name.is_empty() { "channel" } else { name };
        let is_taken = |name: &str| self.channels.iter().any(|it| it.name == name);
        if !is_taken(name) {
            return name.to_owned();
        }
        let mut numbered = (2_u32..).map(|number| format!("{name}-{number}"));
        numbered
            .find(|name| !is_taken(name))
            .unwrap_or_else(|| name.to_owned())
    }

    /// Whether there is nothing to write.
    pub(crate) fn is_empty(&self) -> bool {
        self.channels.is_empty() && self.models.is_empty()
    }

    /// The text of the file.
    pub(crate) fn text(&self, system: &str) -> String {
        let mut text = format!(
            "# Channels and models of {system}, written by `tollgate import`. Review them and append them to your\n\
             # configuration; `tollgate check` explains the result. Credentials are in the variables that are named here.\n"
        );
        for channel in &self.channels {
            channel.write(&mut text);
        }
        for (id, model) in &self.models {
            model.write(id, &mut text);
        }
        text
    }
}

impl DraftChannel {
    fn write(&self, text: &mut String) {
        text.push('\n');
        write_comments(&self.comments, text);
        // Writing into a String cannot fail.
        let _ = writeln!(
            text,
            "[[channel]]\nname = {}\npreset = {}",
            quoted(&self.name),
            quoted(self.preset.as_str())
        );
        if let Some(url) = &self.base_url {
            let _ = writeln!(text, "base_url = {}", quoted(url));
        }
        if let Some(variable) = &self.variable {
            let _ = writeln!(text, "credential = {{ env = {} }}", quoted(variable));
        }
        let is_known = KnownModels::built_in()
            .of_preset(self.preset)
            .next()
            .is_some();
        if self.has_all_models && is_known {
            text.push_str("models = \"all\"\n");
        } else if self.has_all_models {
            text.push_str("# The catalog knows no models of this vendor: add [[model]] entries for those that you offer.\n");
        }
    }
}

impl DraftModel {
    fn write(&self, id: &str, text: &mut String) {
        text.push('\n');
        write_comments(&self.comments, text);
        let _ = writeln!(text, "[[model]]\nid = {}", quoted(id));
        let known = KnownModels::built_in().find(id).map(|(known, _)| known);
        if known.is_none() {
            let kind = self.kind.unwrap_or(Kind::Text);
            let _ = writeln!(text, "kind = {}", quoted(kind.as_str()));
        }
        let routes = self.routes.iter().map(|route| {
            let (channel, model) = (quoted(&route.channel), quoted(&route.model));
            let mut line = format!("{{ channel = {channel}, model = {model}");
            if route.priority != 0 {
                let _ = write!(line, ", priority = {}", route.priority);
            }
            if route.weight != 1 {
                let _ = write!(line, ", weight = {}", route.weight);
            }
            line + " }"
        });
        let routes: Vec<String> = routes.collect();
        let _ = writeln!(text, "routes = [{}]", routes.join(", "));
        if self.price.is_empty() {
            let comment = match known {
                Some(_) => "# The price is that of the catalog.",
                None => {
                    "# Without a price it cannot be called: price = { input = \"…\", output = \"…\" }"
                }
            };
            let _ = writeln!(text, "{comment}");
        } else {
            let prices = self.price.iter();
            let prices = prices.map(|(key, price)| format!("{key} = {}", quoted(price)));
            let prices: Vec<String> = prices.collect();
            let _ = writeln!(text, "price = {{ {} }}", prices.join(", "));
        }
        let limits = [
            ("context_tokens", self.context_tokens),
            ("max_output_tokens", self.max_output_tokens),
        ];
        let limits = limits
            .into_iter()
            .filter_map(|(name, tokens)| Some(format!("{name} = {}", tokens?)));
        let limits: Vec<String> = limits.collect();
        if known.is_none() && limits.is_empty() {
            text.push_str(
                "# Without its sizes it cannot be called: profile = { context_tokens = …, max_output_tokens = … }\n",
            );
        } else if known.is_none() {
            let _ = writeln!(text, "profile = {{ {} }}", limits.join(", "));
        }
    }
}

fn write_comments(comments: &[String], text: &mut String) {
    for comment in comments {
        let printable = comment
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c });
        let _ = writeln!(text, "# {}", printable.collect::<String>());
    }
}

/// `maker/name`, or the name itself if it already has a maker. Characters that ids cannot contain become dashes. A star
/// is kept, because the model lists of keys may contain one.
fn public_id(maker: &str, name: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "-_.:@+~/*".contains(c) {
            c
        } else {
            '-'
        }
    };
    let name: String = name.trim().chars().map(plain).collect();
    let has_maker = name
        .split_once('/')
        .is_some_and(|(maker, model)| !maker.is_empty() && !model.is_empty());
    if has_maker {
        name
    } else {
        format!("{maker}/{}", name.trim_matches('/'))
    }
}

fn quoted(text: &str) -> String {
    toml_edit::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_with_a_user_a_query_or_a_fragment_may_hold_a_secret() {
        for address in [
            "https://user:pass@example.com/v1",
            "https://key@example.com",
            "https://example.com/v1?key=secret",
            "https://example.com/v1#secret",
        ] {
            assert!(may_hold_secret(address), "{address}");
        }
        assert!(!may_hold_secret("https://example.com:8080/v1"));
    }
}
