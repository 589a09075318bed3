//! Formats price cards on one line, for tables.

use ledger::PriceKey;
use serde_json::Value;

/// A price card on one line: `input 1.25 output 10 image(default 0.04 high 0.17)`.
pub(super) fn price_text(card: &Value) -> String {
    match card {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| price_rank(name));
            let members = members.into_iter().map(|(name, value)| match value {
                Value::Object(_) | Value::Array(_) => format!("{name}({})", price_text(value)),
                other => format!("{name} {}", price_text(other)),
            });
            members.collect::<Vec<_>>().join(" ")
        }
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(price_text).collect();
            items.join("; ")
        }
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The rank of a price key: bounds and defaults first, then the keys in the order of the ledger, then the rest.
fn price_rank(name: &str) -> usize {
    let known = PriceKey::ALL.iter().position(|key| key.as_str() == name);
    match name {
        "default" | "above_tokens" => 0,
        _ => known.map_or(usize::MAX, |place| place + 1),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_price_is_told_on_one_line() {
        let card = json!({
            "output": "10",
            "input": "1.25",
            "image": { "2k": "0.07", "default": "0.04", "high": "0.17" },
            "long_context": [{ "above_tokens": 200_000, "input": "2.5" }],
        });
        assert_eq!(
            price_text(&card),
            "input 1.25 output 10 image(default 0.04 2k 0.07 high 0.17) \
             long_context(above_tokens 200000 input 2.5)"
        );
    }
}
