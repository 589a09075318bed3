//! Reads the list of models that an account can call, in the forms of all vendors.

use serde::Deserialize;
use serde_json::Value;

use crate::profile::Kind;

/// The maximum number of models that are read, which is more than any vendor lists.
const MODELS_MAX: usize = 5_000;
/// Longer names are left out: no model id may be longer (`docs/api/README.md`).
const NAME_BYTES_MAX: usize = 256;

/// The models that an account can call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelList {
    /// In the upstream's order.
    pub models: Vec<ListedModel>,
    /// Whether the list has all models of the account.
    pub is_complete: bool,
}

/// One model, as the upstream describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedModel {
    /// The name that calls to the upstream use.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// The kind of the model's output, if the upstream reports it.
    pub kind: Option<Kind>,
    pub context_tokens: Option<u64>,
    pub output_tokens_max: Option<u64>,
}

/// The envelope of the list. Most vendors use `data`, Google uses `models`.
#[derive(Deserialize)]
struct Envelope {
    data: Option<Vec<Value>>,
    models: Option<Vec<Value>>,
    #[serde(default)]
    has_more: Option<bool>,
    #[serde(default, rename = "nextPageToken")]
    next_page: Option<String>,
}

/// Reads an answer. `None` if it is not a list of models. Entries without a usable name are left
/// out.
pub fn read_model_list(body: &[u8]) -> Option<ModelList> {
    let envelope: Envelope = serde_json::from_slice(body).ok()?;
    let entries = envelope.data.or(envelope.models)?;
    let fits = entries.len() <= MODELS_MAX;
    let models = entries.iter().take(MODELS_MAX).filter_map(read_model);
    Some(ModelList {
        models: models.collect(),
        is_complete: fits
            && envelope.has_more != Some(true)
            && envelope.next_page.is_none_or(|token| token.is_empty()),
    })
}

fn read_model(entry: &Value) -> Option<ListedModel> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str);
    // Google writes `models/gemini-...`, but calls use only the part after the slash.
    let name = text("id").or_else(|| text("name").map(without_collection))?;
    let is_plain = |c: char| !c.is_control() && !c.is_whitespace();
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(is_plain) {
        return None;
    }
    let first = |names: &[&str]| names.iter().find_map(|name| entry.get(name)?.as_u64());
    let title = text("display_name")
        .or_else(|| text("displayName"))
        .or_else(|| text("id").and(text("name")));
    Some(ListedModel {
        name: name.to_owned(),
        title: title.filter(|title| *title != name).map(str::to_owned),
        kind: entry.get("supportedGenerationMethods").and_then(kind_of),
        context_tokens: first(&[
            "context_length",
            "context_window",
            "max_model_len",
            "max_input_tokens",
            "inputTokenLimit",
        ]),
        output_tokens_max: first(&["max_output_tokens", "max_tokens", "outputTokenLimit"]),
    })
}

fn without_collection(name: &str) -> &str {
    name.strip_prefix("models/").unwrap_or(name)
}

/// Derives the kind from the methods that Google lists for a model.
fn kind_of(methods: &Value) -> Option<Kind> {
    let methods = methods.as_array()?;
    let has = |name: &str| methods.iter().any(|method| method == name);
    if has("generateContent") {
        Some(Kind::Text)
    } else if has("embedContent") {
        Some(Kind::Embedding)
    } else if has("predictLongRunning") {
        Some(Kind::Video)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bare(name: &str) -> ListedModel {
        ListedModel {
            name: name.to_owned(),
            title: None,
            kind: None,
            context_tokens: None,
            output_tokens_max: None,
        }
    }

    #[test]
    fn the_lists_of_all_vendors_are_read() {
        for (answer, expected, is_complete) in [
            (
                r#"{"object":"list","data":[{"id":"large","object":"model","created":1,"owned_by":"x"}]}"#,
                bare("large"),
                true,
            ),
            (
                r#"{"data":[{"type":"model","id":"large-1","display_name":"Large 1","created_at":"2026-01-01T00:00:00Z","max_input_tokens":200000,"max_tokens":64000}],"has_more":true,"first_id":"large-1","last_id":"large-1"}"#,
                ListedModel {
                    title: Some("Large 1".to_owned()),
                    context_tokens: Some(200_000),
                    output_tokens_max: Some(64_000),
                    ..bare("large-1")
                },
                false,
            ),
            (
                r#"{"models":[{"name":"models/vectors-1","displayName":"Vectors 1","inputTokenLimit":2048,"outputTokenLimit":1,"supportedGenerationMethods":["embedContent"]}],"nextPageToken":""}"#,
                ListedModel {
                    title: Some("Vectors 1".to_owned()),
                    kind: Some(Kind::Embedding),
                    context_tokens: Some(2048),
                    output_tokens_max: Some(1),
                    ..bare("vectors-1")
                },
                true,
            ),
            (
                r#"{"models":[{"name":"models/film","supportedGenerationMethods":["predictLongRunning"]}],"nextPageToken":"more"}"#,
                ListedModel {
                    kind: Some(Kind::Video),
                    ..bare("film")
                },
                false,
            ),
            (
                r#"{"data":[{"id":"maker/large","name":"Maker: Large","context_length":131072}]}"#,
                ListedModel {
                    title: Some("Maker: Large".to_owned()),
                    context_tokens: Some(131_072),
                    ..bare("maker/large")
                },
                true,
            ),
        ] {
            let list = read_model_list(answer.as_bytes()).unwrap();
            assert_eq!(list.models, [expected], "{answer}");
            assert_eq!(list.is_complete, is_complete, "{answer}");
        }
    }

    #[test]
    fn odd_entries_are_left_out_and_other_answers_are_no_list() {
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        let odd = format!(
            r#"{{"data":[1,null,{{}},{{"id":7}},{{"id":""}},{{"id":"a b"}},{{"id":"{long}"}},{{"id":"good","context_length":-1}}]}}"#
        );
        let list = read_model_list(odd.as_bytes()).unwrap();
        assert_eq!(list.models, [bare("good")]);
        for answer in ["", "<html>", "[]", "{}", r#"{"data":7}"#, r#"{"error":{}}"#] {
            assert_eq!(read_model_list(answer.as_bytes()), None, "{answer}");
        }
    }

    #[test]
    fn a_list_without_an_end_is_cut() {
        let entries = vec![r#"{"id":"m"}"#; MODELS_MAX + 1].join(",");
        let list = read_model_list(format!(r#"{{"data":[{entries}]}}"#).as_bytes()).unwrap();
        assert_eq!(list.models.len(), MODELS_MAX);
        assert!(!list.is_complete);
    }
}
