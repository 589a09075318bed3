//! Converts entries of `model_list` to channels and models.

use std::collections::HashMap;

use protocol::Kind;
use serde_json::Value;
use upstream::Preset;

use super::SYSTEM;
use super::sealed::SealKey;
use crate::import::draft::{
    ADDRESS_NOT_COPIED, DraftChannel, DraftRoute, may_hold_secret, needs_account,
};
use crate::import::exact::Decimal;
use crate::import::plan::ImportPlan;

/// Members that are prices per token, and their keys in our price cards.
const TOKEN_PRICES: [(&str, &str); 7] = [
    ("input_cost_per_token", "input"),
    ("output_cost_per_token", "output"),
    ("cache_read_input_token_cost", "cached_input"),
    ("cache_creation_input_token_cost", "cache_write"),
    ("input_cost_per_audio_token", "audio_input"),
    ("output_cost_per_audio_token", "audio_output"),
    ("output_cost_per_image_token", "image_output"),
];

/// The origin of an entry, and the key that opens its sealed values.
pub(super) struct Source<'s> {
    pub(super) origin: String,
    pub(super) key: Option<&'s SealKey>,
    pub(super) is_sealed: bool,
    /// The named credentials that entries may refer to.
    pub(super) credentials: &'s [Value],
}

/// The names of the planned channels, by preset, address and credential.
#[derive(Default)]
pub(super) struct Channels(HashMap<ChannelPlace, String>);

/// The preset, the address and the variable of the credential.
type ChannelPlace = (&'static str, Option<String>, Option<String>);

pub(super) fn read(
    entry: &Value,
    source: &Source<'_>,
    channels: &mut Channels,
    plan: &mut ImportPlan,
) {
    let origin = &source.origin;
    let params = &entry["litellm_params"];
    let Some(public) = text(&entry["model_name"]) else {
        plan.report(origin, "it has no model_name");
        return;
    };
    let route = match source.route(params) {
        Ok(route) => route,
        Err(reason) => {
            plan.report(origin, format!("model {public}: {reason}"));
            return;
        }
    };
    let credential = source.credential(params, route.preset, plan);
    let is_wildcard = public.contains('*') || route.model.contains('*');
    let channel = channels.find_or_add(&route, credential, is_wildcard, plan);
    if is_wildcard {
        plan.report(
            origin,
            format!("model {public} is a pattern: the channel {channel} offers all models that the catalog knows of it"),
        );
        return;
    }
    let id = plan
        .catalog
        .id_for(SYSTEM, &public, Some((route.preset, &route.model)));
    let model = plan.catalog.models.entry(id.clone()).or_default();
    if id != public && model.routes.is_empty() {
        model
            .comments
            .push(format!("Callers named it {public} there."));
    }
    model.routes.push(DraftRoute {
        channel,
        model: route.model,
        priority: number(&params["order"]).map_or(0, |order| order.saturating_sub(1)),
        weight: number(&params["weight"]).unwrap_or(1).max(1),
    });
    let info = &entry["model_info"];
    model.kind = model.kind.or_else(|| kind(info));
    let tokens = |name: &str| text(&info[name]).and_then(|it| it.parse().ok());
    model.context_tokens = model.context_tokens.or_else(|| tokens("max_input_tokens"));
    let output = tokens("max_output_tokens").or_else(|| tokens("max_tokens"));
    model.max_output_tokens = model.max_output_tokens.or(output);
    for (member, key) in TOKEN_PRICES {
        let Some(price) = text(&params[member]).or_else(|| text(&info[member])) else {
            continue;
        };
        let million = Decimal::integer(1_000_000);
        let price = Decimal::parse(&price).and_then(|price| price.times(million));
        match price
            .filter(|price| !price.is_zero())
            .and_then(Decimal::price)
        {
            Some((price, _)) => {
                model.price.insert(key, price);
            }
            None => model
                .comments
                .push(format!("{member} is no price; check it.")),
        }
    }
}

/// The upstream and model of an entry.
struct Route {
    preset: Preset,
    base_url: Option<String>,
    model: String,
}

impl Source<'_> {
    /// Returns a text of the entry, opened if it is sealed.
    fn opened(&self, value: &Value) -> Result<Option<String>, String> {
        let value = text(value);
        if !self.is_sealed {
            return Ok(value);
        }
        value.map(|value| self.open(value)).transpose()
    }

    /// Opens a sealed text of the database.
    fn open(&self, value: String) -> Result<String, String> {
        match self.key.and_then(|key| key.open(&value)) {
            Some(opened) => Ok(opened),
            // Rows of old versions are not sealed.
            None if value.contains("://") || is_model(&value) => Ok(value),
            None => {
                Err("it is sealed; set LITELLM_SALT_KEY (or the master key) to open it".to_owned())
            }
        }
    }

    fn route(&self, params: &Value) -> Result<Route, String> {
        let named = self.opened(&params["model"])?;
        let named = named.ok_or("it has no litellm_params.model")?;
        let address = self.opened(&params["api_base"])?;
        let address = address.or(self.opened(&params["base_url"])?);
        let address = match address {
            Some(address) => Some(address),
            None => self.credential_address(params)?,
        };
        let provider = self.opened(&params["custom_llm_provider"])?;
        let (provider, model) = match provider {
            Some(provider) => {
                let prefix = format!("{provider}/");
                let model = named.strip_prefix(&prefix).unwrap_or(&named).to_owned();
                (provider, model)
            }
            None => match named.split_once('/') {
                Some((provider, model)) => (provider.to_owned(), model.to_owned()),
                None => ("openai".to_owned(), named),
            },
        };
        // Only LiteLLM's process knows the value of the variable. Without an address, the channel would send the
        // prompts and the key to the preset's own address, which may belong to another vendor.
        let variable = address
            .as_deref()
            .and_then(|url| url.strip_prefix("os.environ/"));
        if let Some(variable) = variable {
            return Err(format!(
                "its address is in LiteLLM's environment variable {variable}; write its channel by hand, with this address as base_url"
            ));
        }
        let preset = preset(&provider, address.as_deref())?;
        if address.as_deref().is_some_and(may_hold_secret) {
            return Err(ADDRESS_NOT_COPIED.to_owned());
        }
        if address.is_none() && preset.base_url().is_none() {
            return Err(format!(
                "provider {provider} needs an address, and the entry has none"
            ));
        }
        Ok(Route {
            preset,
            base_url: address,
            model,
        })
    }

    /// The name of the credential that an entry refers to.
    fn credential_name(&self, params: &Value) -> Option<String> {
        let name = text(&params["litellm_credential_name"])?;
        let opened = self.key.filter(|_| self.is_sealed);
        Some(opened.and_then(|key| key.open(&name)).unwrap_or(name))
    }

    /// The address in the credential that an entry refers to. `LiteLLM` uses it if the entry itself has none.
    fn credential_address(&self, params: &Value) -> Result<Option<String>, String> {
        let Some(name) = self.credential_name(params) else {
            return Ok(None);
        };
        let mut credentials = self.credentials.iter();
        let Some(found) =
            credentials.find(|it| text(&it["credential_name"]).as_deref() == Some(&*name))
        else {
            return Err(format!(
                "its credential {name} was not read and may have an address; name the database and the file, or write its channel by hand"
            ));
        };
        let values = &found["credential_values"];
        let address = text(&values["api_base"]).or_else(|| text(&values["base_url"]));
        if found["is_sealed"] != true {
            return Ok(address);
        }
        address.map(|address| self.open(address)).transpose()
    }

    /// The environment variable for the entry's credential. A literal, named or sealed credential gets a new variable.
    /// An entry without a credential gets the usual variable of its preset, or `None` if the preset needs no key.
    fn credential(&self, params: &Value, preset: Preset, plan: &mut ImportPlan) -> Option<String> {
        let key = text(&params["api_key"]).filter(|_| !self.is_sealed);
        if let Some(name) = key
            .as_deref()
            .and_then(|key| key.strip_prefix("os.environ/"))
        {
            let place = "the variable of the same name".to_owned();
            plan.catalog.variables.insert(name.to_owned(), place);
            return Some(name.to_owned());
        }
        let upper = |c: char| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_uppercase()
            } else {
                '_'
            }
        };
        let (name, place) = if let Some(named) = self.credential_name(params) {
            let place = format!("the credential {named} of LiteLLM");
            (format!("LITELLM_{named}_KEY"), place)
        } else if params["api_key"].is_string() {
            let place = format!("litellm_params.api_key of {}", self.origin);
            (format!("LITELLM_{}_KEY", self.origin), place)
        } else if !preset.needs_credential() {
            return None;
        } else {
            let variable = preset.key_variables().first();
            let variable = variable
                .cloned()
                .unwrap_or_else(|| format!("{preset}_API_KEY"));
            let place = "the key that LiteLLM found in its environment".to_owned();
            (variable, place)
        };
        let name: String = name.chars().map(upper).collect();
        plan.catalog.variables.insert(name.clone(), place);
        Some(name)
    }
}

impl Channels {
    fn find_or_add(
        &mut self,
        route: &Route,
        variable: Option<String>,
        has_all_models: bool,
        plan: &mut ImportPlan,
    ) -> String {
        let (preset, base_url) = (route.preset, route.base_url.clone());
        let place = (preset.as_str(), base_url.clone(), variable.clone());
        let catalog = &mut plan.catalog;
        if let Some(name) = self.0.get(&place) {
            let known = catalog.channels.iter_mut().find(|it| it.name == *name);
            if let Some(channel) = known {
                channel.has_all_models |= has_all_models;
            }
            return name.clone();
        }
        let name = catalog.channel_name(preset.as_str());
        catalog.channels.push(DraftChannel {
            name: name.clone(),
            preset,
            base_url,
            variable,
            has_all_models,
            comments: Vec::new(),
        });
        self.0.insert(place, name.clone());
        name
    }
}

fn preset(provider: &str, address: Option<&str>) -> Result<Preset, String> {
    if provider == "openai" || provider == "custom_openai" {
        let is_other = address.is_some_and(|url| !url.contains("api.openai.com"));
        let name = if is_other {
            "openai-compatible"
        } else {
            "openai"
        };
        return name.parse().map_err(|_| format!("no preset {name}"));
    }
    let is_named = |preset: &Preset| {
        preset.as_str() == provider || preset.litellm_names().iter().any(|it| it == provider)
    };
    match Preset::all().find(is_named) {
        Some(preset) if needs_account(preset) => Err(format!(
            "an account of {provider} has more settings than a key; write its channel by hand"
        )),
        Some(preset) => Ok(preset),
        None => Err(format!("no preset for provider {provider}")),
    }
}

fn kind(info: &Value) -> Option<Kind> {
    match info["mode"].as_str()? {
        "chat" | "completion" | "responses" => Some(Kind::Text),
        "embedding" => Some(Kind::Embedding),
        "image_generation" | "image_edit" => Some(Kind::Image),
        "video_generation" => Some(Kind::Video),
        "audio_speech" | "audio_transcription" | "realtime" => Some(Kind::Audio),
        _ => None,
    }
}

/// Whether a text looks like `provider/model` rather than a sealed value.
fn is_model(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:@/*".contains(c);
    text.len() <= 128 && text.contains('/') && !text.ends_with('=') && text.chars().all(plain)
}

/// The text of a string or number. Numbers keep their notation.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn number(value: &Value) -> Option<u32> {
    text(value)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Reads one entry of a configuration file, with these parameters.
    fn read_entry(params: &Value) -> ImportPlan {
        read_entry_with(params, &[])
    }

    fn read_entry_with(params: &Value, credentials: &[Value]) -> ImportPlan {
        let source = Source {
            origin: "model_list:1".to_owned(),
            key: None,
            is_sealed: false,
            credentials,
        };
        let mut plan = ImportPlan::of(SYSTEM);
        let entry = json!({ "model_name": "big", "litellm_params": params });
        read(&entry, &source, &mut Channels::default(), &mut plan);
        plan
    }

    #[test]
    fn an_address_in_a_variable_is_reported_and_never_replaced_by_another() {
        for params in [
            json!({ "model": "openai/big", "api_base": "os.environ/OTHER_BASE" }),
            json!({ "model": "big", "base_url": "os.environ/OTHER_BASE", "api_key": "os.environ/OTHER_KEY" }),
            json!({ "model": "openai/*", "api_base": "os.environ/OTHER_BASE" }),
            json!({ "model": "anthropic/big", "api_base": "os.environ/OTHER_BASE" }),
            json!({ "model": "big", "custom_llm_provider": "mistral", "api_base": "os.environ/OTHER_BASE" }),
            json!({ "model": "hosted_vllm/big", "api_base": "os.environ/OTHER_BASE" }),
        ] {
            let plan = read_entry(&params);
            assert!(plan.catalog.is_empty(), "{params}: {:?}", plan.catalog);
            assert!(plan.catalog.variables.is_empty(), "{params}");
            let [leftover] = &plan.leftovers[..] else {
                panic!("{params}: {:?}", plan.leftovers)
            };
            let reason = &leftover.reason;
            assert!(
                reason.contains("OTHER_BASE") && reason.contains("by hand"),
                "{params}: {reason}"
            );
        }
    }

    #[test]
    fn an_address_in_a_named_credential_is_that_of_the_channel() {
        let credential = |name: &str, is_sealed: bool, values: Value| json!({ "credential_name": name, "credential_values": values, "is_sealed": is_sealed });
        let credentials = [
            credential("plain", false, json!({ "api_key": "os.environ/K" })),
            credential(
                "other",
                false,
                json!({ "api_base": "https://a.example/v1" }),
            ),
            credential(
                "stored",
                true,
                json!({ "base_url": "https://b.example/v1" }),
            ),
            credential(
                "variable",
                false,
                json!({ "api_base": "os.environ/OTHER_BASE" }),
            ),
            credential("sealed", true, json!({ "api_base": "c2VhbGVk" })),
        ];
        for (name, expected) in [
            ("plain", Ok(None)),
            ("other", Ok(Some("https://a.example/v1"))),
            ("stored", Ok(Some("https://b.example/v1"))),
            ("variable", Err("variable OTHER_BASE")),
            ("sealed", Err("it is sealed")),
            ("unknown", Err("its credential unknown was not read")),
        ] {
            let params = json!({ "model": "openai/big", "litellm_credential_name": name });
            let plan = read_entry_with(&params, &credentials);
            let channel = plan.catalog.channels.first();
            let address = channel.map(|it| it.base_url.as_deref());
            assert_eq!(address, expected.ok(), "{name}");
            let reasons: Vec<_> = plan.leftovers.iter().map(|it| &it.reason).collect();
            match expected {
                Ok(_) => assert!(reasons.is_empty(), "{name}: {reasons:?}"),
                Err(part) => assert!(reasons[0].contains(part), "{name}: {reasons:?}"),
            }
        }
        // The address of the entry itself takes precedence.
        let params = json!({ "model": "openai/big", "api_base": "https://c.example/v1", "litellm_credential_name": "other" });
        let plan = read_entry_with(&params, &credentials);
        let channel = &plan.catalog.channels[0];
        assert_eq!(channel.base_url.as_deref(), Some("https://c.example/v1"));
    }

    #[test]
    fn an_address_in_the_entry_is_that_of_the_channel() {
        for (params, preset, address) in [
            (json!({ "model": "openai/big" }), "openai", None),
            (
                json!({ "model": "openai/big", "api_base": "https://a.example/v1" }),
                "openai-compatible",
                Some("https://a.example/v1"),
            ),
            (
                json!({ "model": "anthropic/big", "api_base": "https://b.example" }),
                "anthropic",
                Some("https://b.example"),
            ),
        ] {
            let plan = read_entry(&params);
            let channel = &plan.catalog.channels[0];
            let found = (channel.preset.as_str(), channel.base_url.as_deref());
            assert_eq!(found, (preset, address), "{params}");
        }
    }
}
