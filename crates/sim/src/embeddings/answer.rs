//! Writes the answer: a list of vectors.

use super::request::Request;
use crate::call_context::CallContext;
use crate::fault::UsageFault;
use crate::reply::Reply;
use crate::seal::encode;
use crate::usage_number::UsageNumber;
use http::StatusCode;
use serde::Serialize;

pub(super) fn whole(request: &Request, context: &CallContext<'_>) -> Reply {
    let data = request.inputs.iter().enumerate().map(|(index, input)| {
        let vector = input.vector(request.dimensions);
        Item {
            object: "embedding",
            index,
            embedding: if request.base64 {
                let bytes: Vec<u8> = vector
                    .iter()
                    .flat_map(|value| value.to_le_bytes())
                    .collect();
                Embedding::Base64(encode(&bytes))
            } else {
                Embedding::Float(vector)
            },
        }
    });
    let fault = context.script.usage;
    let list = List {
        object: "list",
        data: data.collect(),
        model: context.reported_model(),
        usage: (fault != UsageFault::Missing).then(|| Usage {
            prompt_tokens: UsageNumber::with_fault(request.tokens, fault),
            total_tokens: UsageNumber::with_fault(request.tokens, fault),
        }),
    };
    // Strings and finite numbers always serialize.
    Reply::json(
        StatusCode::OK,
        serde_json::to_vec(&list).unwrap_or_default(),
    )
}

#[derive(Serialize)]
struct List {
    object: &'static str,
    data: Vec<Item>,
    model: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
}

#[derive(Serialize)]
struct Item {
    object: &'static str,
    index: usize,
    embedding: Embedding,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Embedding {
    Float(Vec<f32>),
    Base64(String),
}

#[derive(Serialize)]
struct Usage {
    prompt_tokens: UsageNumber,
    total_tokens: UsageNumber,
}
