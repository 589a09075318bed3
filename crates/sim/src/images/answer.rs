//! The unstreamed answer.

use super::family::Family;
use super::order::Order;
use super::usage;
use crate::ask::Ask;
use crate::reply::Reply;
use crate::seal::encode;
use crate::seed::Seed;
use http::StatusCode;
use serde_json::{Value, json};

pub(super) fn whole(order: &Order, ask: &Ask<'_>) -> Reply {
    let mut seed = ask.seed.clone();
    let failing = ask.script.text.content_filter;
    let good = order.count - u64::from(failing && order.count > 0);
    let mut data: Vec<Value> = (0..good)
        .map(|index| item(order, index, &mut seed))
        .collect();
    if failing {
        data.push(json!({ "error": failure() }));
    }
    let mut answer = json!({ "data": data });
    match order.family {
        Family::Gpt => {
            answer["created"] = ask.created.into();
            answer["background"] = if order.transparent {
                "transparent"
            } else {
                "opaque"
            }
            .into();
            answer["output_format"] = order.format.name().into();
            answer["quality"] = order.quality.clone().into();
            answer["size"] = order.size_text().into();
        }
        Family::VideoA => answer["model"] = ask.reported_model().into(),
        Family::Content => {
            answer["model"] = ask.reported_model().into();
            answer["created"] = ask.created.into();
        }
    }
    if let Some(usage) = usage::told(order, good, ask) {
        answer["usage"] = usage;
    }
    Reply::json(StatusCode::OK, answer.to_string())
}

fn item(order: &Order, index: u64, seed: &mut Seed) -> Value {
    let mut item = picture(order, index, seed);
    let claim = order.scene(index).claim();
    match order.family {
        Family::Gpt => {}
        Family::VideoA => {
            item["mime_type"] = format!("image/{}", order.format.name()).into();
            item["revised_prompt"] = claim.into();
        }
        Family::Content => {
            item["size"] = order.size_text().into();
            if order.layers {
                item["z_index"] = index.into();
                item["name"] = claim.into();
            }
        }
    }
    item
}

/// A picture, or where it can be had.
pub(super) fn picture(order: &Order, index: u64, seed: &mut Seed) -> Value {
    if order.as_url {
        let name = seed.letters(24);
        let format = order.format.name();
        return json!({ "url": format!("https://files.sim-upstream.example/{name}.{format}") });
    }
    json!({ "b64_json": encode(&order.picture(index)) })
}

/// Why one picture of several is not there.
pub(super) fn failure() -> Value {
    json!({
        "code": "OutputImageSensitiveContentDetected",
        "message": "The output of https://api.sim-upstream.example/ was blocked. Request id: req_sim4711",
    })
}
