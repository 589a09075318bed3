//! Reads `generation_config` and `response_format`.

use crate::catalog;
use crate::google::{Field, Picture, Refusal, Spelling, effort_of_level, read_picture};
use crate::model::{Effort, TextFormat};
use serde_json::{Value, json};

pub(super) const CONFIG: &[&str] = &[
    "image_config",
    "max_output_tokens",
    "seed",
    "speech_config",
    "stop_sequences",
    "temperature",
    "thinking_level",
    "thinking_summaries",
    "tool_choice",
    "top_p",
    "transcription_config",
    "video_config",
];
const IMAGE: &[&str] = &["aspect_ratio", "image_size"];
const TEXT_FORMAT: &[&str] = &["mime_type", "schema", "type"];
const IMAGE_FORMAT: &[&str] = &[
    "aspect_ratio",
    "delivery",
    "image_size",
    "mime_type",
    "type",
];
const LEVELS: &[&str] = &["minimal", "low", "medium", "high"];
const STOPS_MAX: usize = 5;

#[derive(Debug)]
pub(super) struct Parameters {
    pub(super) text_format: TextFormat,
    pub(super) picture: Option<Picture>,
    pub(super) effort: Effort,
    pub(super) summaries: bool,
    pub(super) tokens_max: Option<u64>,
    pub(super) stops: Vec<String>,
    pub(super) seed: i64,
}

pub(super) fn read(body: &Field<'_>, model: &str) -> Result<Parameters, Refusal> {
    let empty = json!({});
    let config = match body.child("generation_config", CONFIG)? {
        Some(config) => config,
        None => Field::object(&empty, "generation_config", Spelling::Snake, CONFIG)?,
    };
    config.decimal("temperature", 0, 2)?;
    config.decimal("top_p", 0, 1)?;
    let stops = config.texts("stop_sequences")?;
    if stops.len() > STOPS_MAX {
        return Err(Refusal::invalid(format!(
            "At most {STOPS_MAX} stop sequences are allowed."
        )));
    }
    let effort = match config.word("thinking_level", LEVELS)? {
        Some(level) => effort_of_level(level, model, &config.path("thinking_level"))?,
        None if catalog::reasons(model) => Effort::Medium,
        None => Effort::None,
    };
    let tokens_max = config.integer("max_output_tokens", 1, i64::from(i32::MAX))?;
    let (text_format, asked_picture) = format(body)?;
    let modalities = body.texts("response_modalities")?;
    let old_picture = config
        .child("image_config", IMAGE)?
        .as_ref()
        .map(read_picture)
        .transpose()?;
    let paints = modalities
        .iter()
        .any(|word| word.eq_ignore_ascii_case("image"))
        || (catalog::makes_pictures(model) && modalities.is_empty());
    Ok(Parameters {
        text_format,
        picture: asked_picture.or_else(|| paints.then(|| old_picture.unwrap_or_default())),
        effort,
        summaries: config.word("thinking_summaries", &["auto", "none"])? == Some("auto"),
        tokens_max: tokens_max.and_then(|max| u64::try_from(max).ok()),
        stops: stops.into_iter().map(str::to_owned).collect(),
        seed: config
            .integer("seed", i64::from(i32::MIN), i64::from(i32::MAX))?
            .unwrap_or(0),
    })
}

/// Reads the requested format of the text, and the requested picture.
fn format(body: &Field<'_>) -> Result<(TextFormat, Option<Picture>), Refusal> {
    let formats = match body.get("response_format") {
        Some(Value::Array(formats)) => formats.iter().collect(),
        Some(format) => vec![format],
        None => Vec::new(),
    };
    let mut text_format = match body.text("response_mime_type")? {
        Some("application/json") => TextFormat::Json,
        _ => TextFormat::Text,
    };
    let mut picture = None;
    for format in formats {
        let path = "response_format";
        match format.get("type").and_then(Value::as_str) {
            Some("text") => {
                let text = Field::object(format, path, Spelling::Snake, TEXT_FORMAT)?;
                let mime_type = text.word("mime_type", &["application/json", "text/plain"])?;
                text_format = match (mime_type, text.get("schema")) {
                    (Some("text/plain"), Some(_)) => {
                        return Err(Refusal::invalid(
                            "A schema needs the mime_type application/json.",
                        ));
                    }
                    (_, Some(schema @ Value::Object(_))) => TextFormat::Schema(schema.clone()),
                    (_, Some(_)) => {
                        return Err(Refusal::invalid("The schema must be an object."));
                    }
                    (Some("application/json"), None) => TextFormat::Json,
                    (_, None) => TextFormat::Text,
                };
            }
            Some("image") => {
                let image = Field::object(format, path, Spelling::Snake, IMAGE_FORMAT)?;
                picture = Some(read_picture(&image)?);
            }
            Some("audio" | "video") => {
                return Err(Refusal::invalid(
                    "The requested response format is not supported by the model.",
                ));
            }
            // In the older form of the request, `response_format` is the schema itself.
            _ if format.is_object() => text_format = TextFormat::Schema(format.clone()),
            _ => return Err(Refusal::invalid("response_format must be an object.")),
        }
    }
    Ok((text_format, picture))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[&str] = &[
        "generation_config",
        "response_format",
        "response_mime_type",
        "response_modalities",
    ];

    fn read_as(model: &str, body: &Value) -> Result<Parameters, Refusal> {
        read(&Field::object(body, "", Spelling::Snake, BODY)?, model)
    }

    #[test]
    fn what_the_vendor_refuses_is_refused() {
        for (body, part) in [
            (
                json!({"generation_config": {"top_k": 3}}),
                "'generation_config.top_k'",
            ),
            (
                json!({"generation_config": {"maxOutputTokens": 3}}),
                "'generation_config.maxOutputTokens'",
            ),
            (
                json!({"generation_config": {"thinking_level": "huge"}}),
                "huge",
            ),
            (
                json!({"generation_config": {"temperature": 3}}),
                "temperature",
            ),
            (
                json!({"response_format": {"type": "video"}}),
                "not supported",
            ),
            (
                json!({"response_format": {"type": "text", "mime_type": "text/plain", "schema": {}}}),
                "application/json",
            ),
            (
                json!({"response_format": {"type": "text", "json_schema": {}}}),
                "'response_format.json_schema'",
            ),
        ] {
            let refusal = read_as("m", &body).unwrap_err();
            assert!(refusal.message.contains(part), "{}", refusal.message);
        }
        let minimal = json!({"generation_config": {"thinking_level": "minimal"}});
        assert!(read_as("sim-reason", &minimal).is_err());
    }

    #[test]
    fn formats_come_alone_in_lists_and_bare() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        let text = json!({"type": "text", "mime_type": "application/json", "schema": schema});
        for (format, expected) in [
            (text.clone(), TextFormat::Schema(schema.clone())),
            (json!([text]), TextFormat::Schema(schema.clone())),
            (schema.clone(), TextFormat::Schema(schema)),
            (
                json!({"type": "text", "mime_type": "application/json"}),
                TextFormat::Json,
            ),
            (Value::Null, TextFormat::Text),
        ] {
            let read = read_as("m", &json!({"response_format": format})).unwrap();
            assert_eq!(read.text_format, expected, "{format}");
        }
        let image = json!({"response_format": [{"type": "image", "image_size": "2K"}]});
        assert!(read_as("m", &image).unwrap().picture.is_some());
    }
}
