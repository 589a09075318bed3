//! Writes the HTML of the page for callers.

use std::fmt::Write as _;

use engine::Model;
use ledger::PriceKey;
use protocol::Kind;
use serde_json::{Map, Value, json};

use crate::model_facts::abilities;

/// The placeholder in examples if there is no model to name.
const ANY_MODEL: &str = "maker/model";
/// Shown in place of the list of models if visitors need a key to see it.
const LOCKED: &str = r#"<p class="empty">Enter a key above to see the models that it may call, or ask
<code>GET /v1/models</code> with it.</p>"#;

/// Fills in the template of the page. `files` is the path of its files. `models` are the models to list, if visitors
/// may see them.
pub(super) fn write(template: &str, files: &str, url: &str, models: Option<&[&Model]>) -> String {
    let example = models.and_then(|models| models.iter().find(|model| model.kind == Kind::Text));
    let values = [
        ("files", escaped(files)),
        ("url", escaped(url)),
        (
            "model",
            escaped(example.map_or(ANY_MODEL, |model| &model.id)),
        ),
        (
            "models",
            models.map_or_else(|| LOCKED.to_owned(), model_table),
        ),
        ("units", escaped(&units().to_string())),
    ];
    fill(template, &values)
}

/// Replaces each `{{name}}` with its value. Placeholders within values are not replaced.
fn fill(template: &str, values: &[(&str, String)]) -> String {
    let mut text = String::with_capacity(template.len() * 2);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((name, after)) = after.split_once("}}") else {
            break;
        };
        text.push_str(before);
        let value = values.iter().find(|(known, _)| *known == name);
        text.push_str(value.map_or("", |(_, value)| value));
        rest = after;
    }
    text.push_str(rest);
    text
}

fn model_table(models: &[&Model]) -> String {
    if models.is_empty() {
        return r#"<p class="empty">No model can be called now.</p>"#.to_owned();
    }
    let mut table = r#"<div class="table-box"><table class="cards"><thead><tr><th>Model</th><th class="number">Context</th><th class="number">Price in credits</th></tr></thead><tbody>"#.to_owned();
    for model in models {
        write_row(&mut table, model);
    }
    table.push_str("</tbody></table></div>");
    table
}

/// One model, with the same markup as `models.js` produces.
fn write_row(table: &mut String, model: &Model) {
    let _ = write!(
        table,
        r#"<tr class="model-row"><td><span class="model-id">{}</span><br><span class="chip">{}</span>"#,
        escaped(&model.id),
        model.kind.as_str()
    );
    for ability in abilities(&model.profile) {
        let _ = write!(
            table,
            r#"<span class="chip">{}</span>"#,
            ability_text(ability)
        );
    }
    table.push_str(r#"</td><td class="number">"#);
    if let Some(tokens) = model.profile.context_tokens {
        table.push_str(&short_count(tokens));
    }
    if let Some(tokens) = model.profile.max_output_tokens {
        let _ = write!(
            table,
            r#"<span class="sub">{} out</span>"#,
            short_count(tokens)
        );
    }
    table.push_str(r#"</td><td class="number">"#);
    let card = serde_json::to_value(&model.price).unwrap_or_default();
    for key in PriceKey::ALL {
        let Some(price) = card.get(key.as_str()) else {
            continue;
        };
        let (name, unit) = unit_of(key);
        let _ = write!(
            table,
            r#"<span class="price">{} <span class="unit">{name} / {unit}</span></span>"#,
            escaped(&price_text(price))
        );
    }
    table.push_str("</td></tr>");
}

/// One price, or the range of its tiers.
fn price_text(price: &Value) -> String {
    let text = |price: &Value| price.as_str().unwrap_or_default().to_owned();
    let Some(tiers) = price.as_object() else {
        return text(price);
    };
    let mut prices: Vec<(ledger::Price, String)> = tiers
        .values()
        .filter_map(|price| Some((price.as_str()?.parse().ok()?, text(price))))
        .collect();
    prices.sort();
    match (prices.first(), prices.last()) {
        (Some((low, from)), Some((high, up_to))) if low != high => format!("{from} to {up_to}"),
        (Some((_, only)), _) => only.clone(),
        _ => String::new(),
    }
}

fn ability_text(ability: &str) -> &str {
    match ability {
        "image_input" => "reads images",
        "reasoning" => "reasons",
        "image_output" => "makes images",
        other => other,
    }
}

/// A count rounded to three digits: 400000 as `400K`, 1048576 as `1.05M`.
fn short_count(count: u64) -> String {
    let (unit, digits, sign) = match count {
        0..1_000 => return count.to_string(),
        1_000..1_000_000 => (1_000, 3, 'K'),
        _ => (1_000_000, 6, 'M'),
    };
    let step = match count / unit {
        0..10 => unit / 100,
        10..100 => unit / 10,
        _ => unit,
    };
    let rounded = (count + step / 2) / step * step;
    let fraction = format!("{:0>digits$}", rounded % unit);
    match fraction.trim_end_matches('0') {
        "" => format!("{}{sign}", rounded / unit),
        fraction => format!("{}.{fraction}{sign}", rounded / unit),
    }
}

/// The label and the unit of each price, for `format.js`.
fn units() -> Value {
    let entry = |key: PriceKey| {
        let (name, unit) = unit_of(key);
        (key.as_str().to_owned(), json!([name, unit]))
    };
    Value::Object(PriceKey::ALL.into_iter().map(entry).collect::<Map<_, _>>())
}

fn unit_of(key: PriceKey) -> (&'static str, &'static str) {
    match key {
        PriceKey::Input => ("input", "M tokens"),
        PriceKey::CachedInput => ("cached input", "M tokens"),
        PriceKey::CacheWrite => ("cache write", "M tokens"),
        PriceKey::CacheWrite1h => ("cache write for 1 h", "M tokens"),
        PriceKey::Output => ("output", "M tokens"),
        PriceKey::ImageInput => ("image input", "M tokens"),
        PriceKey::ImageOutput => ("image output", "M tokens"),
        PriceKey::AudioInput => ("audio input", "M tokens"),
        PriceKey::AudioOutput => ("audio output", "M tokens"),
        PriceKey::Image => ("image", "image"),
        PriceKey::VideoSecond => ("video", "second"),
        PriceKey::VideoTokens => ("video", "M tokens"),
        PriceKey::Usd => ("cost of the upstream", "US dollar"),
        PriceKey::TtsCharacters => ("speech", "M characters"),
        PriceKey::TtsStreamCharacters => ("streamed speech", "M characters"),
        PriceKey::SttSecond => ("transcript", "second"),
        PriceKey::SttStreamSecond => ("streamed transcript", "second"),
        PriceKey::RealtimeMinute => ("realtime", "minute"),
        PriceKey::RealtimeTextInput => ("realtime text", "input"),
    }
}

/// Escapes a text for HTML content and quoted attributes.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            sign => escaped.push(sign),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_three_digits() {
        for (count, shown) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1K"),
            (8_192, "8.19K"),
            (16_384, "16.4K"),
            (128_000, "128K"),
            (400_000, "400K"),
            (1_048_576, "1.05M"),
            (2_000_000, "2M"),
        ] {
            assert_eq!(short_count(count), shown);
        }
    }

    #[test]
    fn tiers_are_shown_as_a_range() {
        for (price, shown) in [
            (json!("1.25"), "1.25"),
            (
                json!({ "default": "0.4", "4k": "0.6", "720p": "0.1" }),
                "0.1 to 0.6",
            ),
            (json!({ "default": "9", "high": "10" }), "9 to 10"),
            (json!({ "default": "0.4", "720p": "0.40" }), "0.4"),
        ] {
            assert_eq!(price_text(&price), shown);
        }
    }

    #[test]
    fn values_are_filled_in_once() {
        let values = [("a", "{{b}}".to_owned()), ("b", "2".to_owned())];
        assert_eq!(fill("<{{a}}-{{b}}-{{none}}> {{", &values), "<{{b}}-2-> {{");
    }

    #[test]
    fn an_address_cannot_leave_its_place() {
        let page = write("<a href=\"{{url}}\">{{url}}</a>", "", "\"><script>&'", None);
        let text = "&quot;&gt;&lt;script&gt;&amp;&#39;";
        assert_eq!(page, format!("<a href=\"{text}\">{text}</a>"));
    }
}
