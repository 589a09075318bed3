//! What pictures cost, as each family tells it.

use super::family::Family;
use super::order::Order;
use crate::ask::Ask;
use crate::fault::UsageFault;
use crate::figure::Figure;
use crate::tokens::count_tokens;
use serde_json::{Value, json};

const SOURCE_TOKENS: u64 = 323;
/// Two hundredths of a US dollar.
const TICKS: u64 = 200_000_000;

/// Usage of so many pictures; `None`: it is not told.
pub(super) fn told(order: &Order, pictures: u64, ask: &Ask<'_>) -> Option<Value> {
    let fault = ask.script.usage;
    if fault == UsageFault::Missing {
        return None;
    }
    let bent = |figure: u64| serde_json::to_value(Figure::bent(figure, fault)).unwrap_or_default();
    Some(match order.family {
        Family::Gpt => {
            let text = count_tokens(&order.prompt);
            let given = order.sources.len() as u64 + u64::from(order.mask.is_some());
            let images = given * SOURCE_TOKENS;
            let output = tokens(order) * pictures;
            json!({
                "input_tokens": bent(text + images),
                "output_tokens": bent(output),
                "total_tokens": bent(text + images + output),
                "input_tokens_details": {"text_tokens": bent(text), "image_tokens": bent(images)},
                "output_tokens_details": {"text_tokens": bent(0), "image_tokens": bent(output)},
            })
        }
        Family::VideoA => json!({ "cost_in_usd_ticks": bent(TICKS * pictures) }),
        Family::Content => {
            let output = tokens(order) * pictures;
            json!({
                "generated_images": bent(pictures),
                "output_tokens": bent(output),
                "total_tokens": bent(output),
            })
        }
    })
}

/// Tokens of one picture, by its quality and area.
fn tokens(order: &Order) -> u64 {
    let square = match order.quality.as_str() {
        "low" => 272,
        "high" => 4160,
        "xhigh" | "max" => 8320,
        _ => 1056,
    };
    let area = u64::from(order.size.0) * u64::from(order.size.1);
    (square * area).div_ceil(1024 * 1024)
}
