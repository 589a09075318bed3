//! Writes the whole answer of a call that is not streamed.

use super::family::Family;
use super::picture_spec::PictureSpec;
use super::usage;
use crate::call_context::CallContext;
use crate::reply::Reply;
use crate::seal::encode;
use crate::seed::Seed;
use http::StatusCode;
use serde_json::{Value, json};

pub(super) fn whole(spec: &PictureSpec, context: &CallContext<'_>) -> Reply {
    let mut seed = context.seed.clone();
    let failing = context.script.text.content_filter;
    let good = spec.count - u64::from(failing && spec.count > 0);
    let mut data: Vec<Value> = (0..good)
        .map(|index| item(spec, index, &mut seed))
        .collect();
    if failing {
        data.push(json!({ "error": failure() }));
    }
    let mut answer = json!({ "data": data });
    match spec.family {
        Family::Gpt => {
            answer["created"] = context.created.into();
            answer["background"] = if spec.transparent {
                "transparent"
            } else {
                "opaque"
            }
            .into();
            answer["output_format"] = spec.format.name().into();
            answer["quality"] = spec.quality.clone().into();
            answer["size"] = spec.size_text().into();
        }
        Family::VideoA => answer["model"] = context.reported_model().into(),
        Family::Content => {
            answer["model"] = context.reported_model().into();
            answer["created"] = context.created.into();
        }
    }
    if let Some(usage) = usage::reported(spec, good, context) {
        answer["usage"] = usage;
    }
    Reply::json(StatusCode::OK, answer.to_string())
}

fn item(spec: &PictureSpec, index: u64, seed: &mut Seed) -> Value {
    let mut item = picture(spec, index, seed);
    let description = spec.scene(index).description();
    match spec.family {
        Family::Gpt => {}
        Family::VideoA => {
            item["mime_type"] = format!("image/{}", spec.format.name()).into();
            item["revised_prompt"] = description.into();
        }
        Family::Content => {
            item["size"] = spec.size_text().into();
            if spec.layers {
                item["z_index"] = index.into();
                item["name"] = description.into();
            }
        }
    }
    item
}

/// A picture or its URL.
pub(super) fn picture(spec: &PictureSpec, index: u64, seed: &mut Seed) -> Value {
    if spec.as_url {
        let name = seed.letters(24);
        let format = spec.format.name();
        return json!({ "url": format!("https://files.sim-upstream.example/{name}.{format}") });
    }
    json!({ "b64_json": encode(&spec.picture(index)) })
}

/// The error that replaces one of several pictures.
pub(super) fn failure() -> Value {
    json!({
        "code": "OutputImageSensitiveContentDetected",
        "message": "The output of https://api.sim-upstream.example/ was blocked. Request id: req_sim4711",
    })
}
