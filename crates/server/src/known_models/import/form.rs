//! Detects the format of a catalog, and reads it.

use serde_json::Value;

use super::proposal::Proposals;
use super::{litellm, models_dev};
use crate::known_models::{KnownModels, Origin};

/// The format of a catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Form {
    /// Our own format, as in catalog/models.toml.
    Tollgate,
    /// `LiteLLM`'s `model_prices_and_context_window.json`.
    Litellm,
    /// models.dev's api.json.
    ModelsDev,
}

/// Reads a catalog. If no format is given, it is detected from the text.
pub(crate) fn read(text: &str, form: Option<Form>) -> Result<(Form, Proposals), String> {
    let form = match form {
        Some(form) => form,
        None => form_of(text).ok_or(
            "this is neither a catalog of our form nor one of LiteLLM or models.dev; name its form with --form",
        )?,
    };
    let proposals = match form {
        Form::Tollgate => {
            let models = KnownModels::parse(text, Origin::File)?;
            Proposals {
                whole: models.iter().map(|(model, _)| model.clone()).collect(),
                ..Proposals::default()
            }
        }
        Form::Litellm => litellm::read(text)?,
        Form::ModelsDev => models_dev::read(text)?,
    };
    Ok((form, proposals))
}

fn form_of(text: &str) -> Option<Form> {
    let Ok(json) = serde_json::from_str::<Value>(text) else {
        return text.contains("[[model]]").then_some(Form::Tollgate);
    };
    let mut values = json.as_object()?.values();
    if values
        .clone()
        .any(|it| it.get("litellm_provider").is_some())
    {
        Some(Form::Litellm)
    } else if values.any(|it| it.get("models").is_some_and(Value::is_object)) {
        Some(Form::ModelsDev)
    } else {
        None
    }
}
