//! `models` of a channel: the known models that it serves.

use toml::de::DeValue;

use crate::config::document::kind_of;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelChoice {
    All,
    /// Ids, and `maker/*` for all models of a maker.
    Listed(Vec<String>),
}

pub(crate) fn read_choice(raw: &DeValue<'_>) -> Result<ModelChoice, String> {
    const FORM: &str = "must be \"all\" or a list of model ids";
    match raw {
        DeValue::String(text) if text == "all" => Ok(ModelChoice::All),
        DeValue::Array(items) => {
            let text = |item: &toml::Spanned<DeValue<'_>>| match item.get_ref() {
                DeValue::String(text) => Ok(text.as_ref().to_owned()),
                other => Err(format!("{FORM}, found {}", kind_of(other))),
            };
            let listed: Result<Vec<_>, _> = items.iter().map(text).collect();
            match listed? {
                empty if empty.is_empty() => Err(FORM.to_owned()),
                listed => Ok(ModelChoice::Listed(listed)),
            }
        }
        other => Err(format!("{FORM}, found {}", kind_of(other))),
    }
}
