//! Reads `generationConfig`.

use crate::call_context::CallContext;
use crate::catalog;
use crate::google::{
    Field, Picture, Refusal, Spelling, effort_of_level, read_picture, to_json_schema,
};
use crate::model::{Effort, TextFormat};
use serde_json::{Value, json};

const CONFIG: &[&str] = &[
    "audio_timestamp",
    "audio_transcription_config",
    "candidate_count",
    "enable_affective_dialog",
    "enable_enhanced_civic_answers",
    "frequency_penalty",
    "image_config",
    "logprobs",
    "max_output_tokens",
    "media_resolution",
    "model_selection_config",
    "presence_penalty",
    "response_format",
    "response_json_schema",
    "response_logprobs",
    "response_mime_type",
    "response_modalities",
    "response_schema",
    "routing_config",
    "seed",
    "speech_config",
    "stop_sequences",
    "temperature",
    "thinking_config",
    "top_k",
    "top_p",
    "translation_config",
];
const IMAGE_CONFIG: &[&str] = &[
    "aspect_ratio",
    "image_output_options",
    "image_size",
    "output_compression_quality",
    "output_mime_type",
    "person_generation",
    "prominent_people",
];
const THINKING: &[&str] = &["include_thoughts", "thinking_budget", "thinking_level"];
const LEVELS: &[&str] = &["MINIMAL", "LOW", "MEDIUM", "HIGH"];
const STOPS_MAX: usize = 5;
const CANDIDATES_MAX: i64 = 8;
const LOGPROBS_MAX: i64 = 20;
const BUDGET_MAX: i64 = 32_768;
/// Thinking budgets up to these limits count as low and medium effort.
const LOW_BUDGET_MAX: i64 = 1024;
const MEDIUM_BUDGET_MAX: i64 = 8192;

#[derive(Debug)]
pub(super) struct Config {
    pub(super) text_format: TextFormat,
    pub(super) bare_word: bool,
    pub(super) effort: Effort,
    pub(super) thoughts: bool,
    pub(super) tokens_max: Option<u64>,
    pub(super) stops: Vec<String>,
    pub(super) seed: i64,
    pub(super) candidates: usize,
    pub(super) logprobs: Option<usize>,
    pub(super) modalities: Modalities,
}

/// The kinds of output that the answer contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Modalities {
    pub(super) text: bool,
    pub(super) picture: Option<Picture>,
}

pub(super) fn read(body: &Field<'_>, context: &CallContext<'_>) -> Result<Config, Refusal> {
    let empty = json!({});
    let config = match body.child("generation_config", CONFIG)? {
        Some(config) => config,
        None => Field::object(&empty, "generation_config", Spelling::Both, CONFIG)?,
    };
    config.decimal("temperature", 0, 2)?;
    config.decimal("top_p", 0, 1)?;
    config.decimal("presence_penalty", -2, 2)?;
    config.decimal("frequency_penalty", -2, 2)?;
    config.integer("top_k", 1, i64::from(i32::MAX))?;
    let stops: Vec<_> = config.texts("stop_sequences")?;
    if stops.len() > STOPS_MAX {
        let path = config.path("stop_sequences");
        return Err(Refusal::invalid(format!(
            "* GenerateContentRequest.{path}: the number of stop sequences must be at most \
             {STOPS_MAX}."
        ))
        .field(&path));
    }
    let (effort, thoughts) = thinking(&config, context.name)?;
    let (text_format, bare_word) = text_format(&config)?;
    let candidates = config.integer("candidate_count", 1, CANDIDATES_MAX)?;
    let tokens_max = config.integer("max_output_tokens", 1, i64::from(i32::MAX))?;
    Ok(Config {
        text_format,
        bare_word,
        effort,
        thoughts,
        tokens_max: tokens_max.and_then(|max| u64::try_from(max).ok()),
        stops: stops.into_iter().map(str::to_owned).collect(),
        seed: config
            .integer("seed", i64::from(i32::MIN), i64::from(i32::MAX))?
            .unwrap_or(0),
        candidates: usize::try_from(candidates.unwrap_or(1)).unwrap_or(1),
        logprobs: logprobs(&config)?,
        modalities: modalities(&config, context.name)?,
    })
}

/// Reads the thinking effort, and whether the model shows its thoughts.
fn thinking(config: &Field<'_>, model: &str) -> Result<(Effort, bool), Refusal> {
    let usual = if catalog::reasons(model) {
        Effort::Medium
    } else {
        Effort::None
    };
    let Some(thinking) = config.child("thinking_config", THINKING)? else {
        return Ok((usual, false));
    };
    let thoughts = thinking.flag("include_thoughts")?.unwrap_or(false);
    let level = thinking.word("thinking_level", LEVELS)?;
    let budget = thinking.integer("thinking_budget", -1, BUDGET_MAX)?;
    let effort = match (level, budget) {
        (Some(_), Some(_)) => {
            return Err(Refusal::invalid(
                "You can only set only one of thinking budget and thinking level.",
            )
            .field(&thinking.path("thinking_level")));
        }
        (Some(level), None) => effort_of_level(level, model, &thinking.path("thinking_level"))?,
        (None, Some(0)) if catalog::reasons(model) => {
            return Err(Refusal::invalid(
                "Budget 0 is invalid. This model only works in thinking mode.",
            )
            .field(&thinking.path("thinking_budget")));
        }
        (None, Some(0)) => Effort::None,
        (None, Some(-1)) => Effort::Medium,
        (None, Some(..=LOW_BUDGET_MAX)) => Effort::Low,
        (None, Some(..=MEDIUM_BUDGET_MAX)) => Effort::Medium,
        (None, Some(_)) => Effort::High,
        (None, None) => usual,
    };
    Ok((effort, thoughts))
}

/// Reads the format of the text. The second value is true if the text is one word of an enumeration, without quotes.
fn text_format(config: &Field<'_>) -> Result<(TextFormat, bool), Refusal> {
    let mime_type = config.text("response_mime_type")?.unwrap_or("text/plain");
    let own = config.get("response_schema");
    let json_schema = config.get("response_json_schema");
    if own.is_some() && json_schema.is_some() {
        return Err(Refusal::invalid(
            "response_schema and response_json_schema are mutually exclusive.",
        )
        .field(&config.path("response_schema")));
    }
    let schema = match (own, json_schema) {
        (Some(own), _) => Some(to_json_schema(own, &config.path("response_schema"))?),
        (None, Some(schema)) => Some(schema.clone()),
        (None, None) => None,
    };
    match (mime_type, schema) {
        ("text/plain" | "", None) => Ok((TextFormat::Text, false)),
        ("application/json", None) => Ok((TextFormat::Json, false)),
        ("application/json", Some(schema)) => Ok((TextFormat::Schema(schema), false)),
        ("text/x.enum", Some(schema)) if schema.get("enum").is_some_and(Value::is_array) => {
            Ok((TextFormat::Schema(schema), true))
        }
        ("text/plain" | "", Some(_)) => Err(Refusal::invalid(
            "Setting response_schema requires response_mime_type: application/json.",
        )
        .field(&config.path("response_mime_type"))),
        _ => {
            let path = config.path("response_mime_type");
            Err(Refusal::invalid(format!(
                "* GenerateContentRequest.{path}: allowed mimetypes are `text/plain`, \
                 `application/json`, `application/xml`, `application/yaml` and `text/x.enum`."
            ))
            .field(&path))
        }
    }
}

fn logprobs(config: &Field<'_>) -> Result<Option<usize>, Refusal> {
    let wanted = config.flag("response_logprobs")?.unwrap_or(false);
    let alternatives = config.integer("logprobs", 0, LOGPROBS_MAX)?;
    if !wanted && alternatives.is_some() {
        return Err(Refusal::invalid(
            "logprobs is only allowed when response_logprobs is enabled.",
        )
        .field(&config.path("logprobs")));
    }
    let alternatives = alternatives.and_then(|count| usize::try_from(count).ok());
    Ok(wanted.then(|| alternatives.unwrap_or(0)))
}

fn modalities(config: &Field<'_>, model: &str) -> Result<Modalities, Refusal> {
    let image = config.child("image_config", IMAGE_CONFIG)?;
    let picture = image.as_ref().map(read_picture).transpose()?;
    let words = config.texts("response_modalities")?;
    let asked = |word: &str| words.iter().any(|given| given.eq_ignore_ascii_case(word));
    if let Some(odd) = words.iter().find(|word| {
        !["TEXT", "IMAGE"]
            .iter()
            .any(|known| known.eq_ignore_ascii_case(word))
    }) {
        return Err(Refusal::invalid(format!(
            "The requested combination of response modalities ({odd}) is not supported by the \
             model."
        ))
        .field(&config.path("response_modalities")));
    }
    // Image models answer with a picture unless the request names other modalities.
    let paints = asked("IMAGE") || (words.is_empty() && catalog::makes_pictures(model));
    Ok(Modalities {
        text: words.is_empty() || asked("TEXT"),
        picture: paints.then(|| picture.unwrap_or_default()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Script;
    use crate::seed::Seed;

    fn read_as(model: &str, config: &Value) -> Result<Config, Refusal> {
        let body = json!({"generationConfig": config});
        let field = Field::object(&body, "", Spelling::Both, &["generation_config"]).unwrap();
        let script = Script::default();
        let context = CallContext {
            name: model,
            script: &script,
            seed: Seed::new(1),
            created: 0,
            true_usage: &std::cell::Cell::new(None),
        };
        read(&field, &context)
    }

    #[test]
    fn what_the_vendor_refuses_is_refused() {
        for (config, part) in [
            (json!({"temperature": 2.1}), "temperature"),
            (json!({"topP": -1}), "top_p"),
            (json!({"maxOutputTokens": 0}), "max_output_tokens"),
            (json!({"maxTokens": 5}), "Unknown name \"maxTokens\""),
            (
                json!({"stopSequences": ["a", "b", "c", "d", "e", "f"]}),
                "stop sequences",
            ),
            (json!({"candidateCount": 9}), "candidate_count"),
            (json!({"logprobs": 2}), "response_logprobs"),
            (
                json!({"responseMimeType": "text/html"}),
                "allowed mimetypes",
            ),
            (
                json!({"responseSchema": {"type": "OBJECT"}}),
                "application/json",
            ),
            (
                json!({"responseSchema": {}, "responseJsonSchema": {}}),
                "mutually exclusive",
            ),
            (
                json!({"thinkingConfig": {"thinkingBudget": 1, "thinkingLevel": "LOW"}}),
                "only one of",
            ),
            (
                json!({"thinkingConfig": {"thinkingLevel": "huge"}}),
                "TYPE_ENUM",
            ),
            (json!({"responseModalities": ["VIDEO"]}), "VIDEO"),
            (json!({"imageConfig": {"imageSize": "9K"}}), "image_size"),
            (
                json!({"imageConfig": {"aspectRatio": "7:7"}}),
                "aspect_ratio",
            ),
        ] {
            let refusal = read_as("m", &config).unwrap_err();
            assert!(refusal.message.contains(part), "{}", refusal.message);
        }
        for thinking in [
            json!({"thinkingBudget": 0}),
            json!({"thinkingLevel": "minimal"}),
        ] {
            let config = json!({"thinkingConfig": thinking});
            assert!(read_as("sim-reason", &config).is_err(), "{config}");
            assert!(read_as("m", &config).is_ok(), "{config}");
        }
    }

    #[test]
    fn thinking_is_read_from_levels_and_budgets() {
        for (thinking, effort) in [
            (json!({}), Effort::None),
            (json!({"thinking_level": "low"}), Effort::Low),
            (json!({"thinkingLevel": "HIGH"}), Effort::High),
            (json!({"thinking_budget": 0}), Effort::None),
            (json!({"thinkingBudget": -1}), Effort::Medium),
            (json!({"thinkingBudget": 512}), Effort::Low),
            (json!({"thinkingBudget": 30000}), Effort::High),
        ] {
            let config = json!({"thinking_config": thinking});
            assert_eq!(read_as("m", &config).unwrap().effort, effort, "{config}");
        }
        assert_eq!(
            read_as("sim-reason", &json!({})).unwrap().effort,
            Effort::Medium
        );
    }

    #[test]
    fn pictures_are_asked_for_by_modality_or_by_model() {
        let paints = |model: &str, config: Value| {
            let modalities = read_as(model, &config).unwrap().modalities;
            (modalities.text, modalities.picture.is_some())
        };
        assert_eq!(paints("m", json!({})), (true, false));
        assert_eq!(paints("sim-image", json!({})), (true, true));
        assert_eq!(
            paints("m", json!({"responseModalities": ["Image"]})),
            (false, true)
        );
        assert_eq!(
            paints("sim-image", json!({"responseModalities": ["TEXT"]})),
            (true, false)
        );
    }
}
