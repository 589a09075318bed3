//! Writes the usage of pictures in the format of each family.

use super::family::Family;
use super::picture_spec::PictureSpec;
use crate::call_context::CallContext;
use crate::fault::UsageFault;
use crate::tokens::count_tokens;
use crate::usage_number::UsageNumber;
use serde_json::{Value, json};

const SOURCE_TOKENS: u64 = 323;
/// The price of one picture in ticks: two US cents.
const TICKS: u64 = 200_000_000;

/// The usage of this many pictures; `None` if it is not reported.
pub(super) fn reported(
    spec: &PictureSpec,
    pictures: u64,
    context: &CallContext<'_>,
) -> Option<Value> {
    let fault = context.script.usage;
    if fault == UsageFault::Missing {
        return None;
    }
    let with_fault = |number: u64| {
        serde_json::to_value(UsageNumber::with_fault(number, fault)).unwrap_or_default()
    };
    Some(match spec.family {
        Family::Gpt => {
            let text = count_tokens(&spec.prompt);
            let given = spec.sources.len() as u64 + u64::from(spec.mask.is_some());
            let images = given * SOURCE_TOKENS;
            let output = tokens(spec) * pictures;
            json!({
                "input_tokens": with_fault(text + images),
                "output_tokens": with_fault(output),
                "total_tokens": with_fault(text + images + output),
                "input_tokens_details": {"text_tokens": with_fault(text), "image_tokens": with_fault(images)},
                "output_tokens_details": {"text_tokens": with_fault(0), "image_tokens": with_fault(output)},
            })
        }
        Family::VideoA => json!({ "cost_in_usd_ticks": with_fault(TICKS * pictures) }),
        Family::Content => {
            let output = tokens(spec) * pictures;
            json!({
                "generated_images": with_fault(pictures),
                "output_tokens": with_fault(output),
                "total_tokens": with_fault(output),
            })
        }
    })
}

/// The tokens of one picture, which depend on quality and area.
fn tokens(spec: &PictureSpec) -> u64 {
    let square = match spec.quality.as_str() {
        "low" => 272,
        "high" => 4160,
        "xhigh" | "max" => 8320,
        _ => 1056,
    };
    let area = u64::from(spec.size.0) * u64::from(spec.size.1);
    (square * area).div_ceil(1024 * 1024)
}
