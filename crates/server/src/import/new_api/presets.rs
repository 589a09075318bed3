//! Maps the numbers of channel types to presets.

use upstream::Preset;

use super::tables::Project;

/// The preset for a channel type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// The name of a preset, and the suffix that it needs after an address that the operator entered.
    Preset(&'static str, &'static str),
    /// An `OpenAI` account, or a compatible host.
    OpenAi,
    /// Not supported, with the reason.
    None(&'static str),
}

const SPLIT_KEY: &str = "its key has several parts, and there is no preset for it";

/// The preset for a channel type. Types that both projects number alike come first, then those of each project.
pub(super) fn target(project: Project, number: i64) -> Target {
    use Target::{None, OpenAi, Preset};
    let compatible = Preset("openai-compatible", "/v1");
    let common = match number {
        1 => Some(OpenAi),
        3 => Some(Preset("azure", "")),
        8 => Some(Preset("openai-compatible", "")),
        14 => Some(Preset("anthropic", "")),
        16 => Some(Preset("zai", "")),
        17 => Some(Preset("qwen", "")),
        20 => Some(Preset("openrouter", "/v1")),
        24 => Some(Preset("gemini", "")),
        25 => Some(Preset("moonshot", "/v1")),
        15 | 18 | 23 => Some(None(SPLIT_KEY)),
        33 => Some(Preset("bedrock", "")),
        _ => Option::None,
    };
    if let Some(target) = common {
        return target;
    }
    match (project, number) {
        (Project::NewApi, 4) | (Project::OneApi, 30) => Preset("ollama", "/v1"),
        (Project::NewApi, 26) => Preset("zai", ""),
        (Project::NewApi, 27) => Preset("perplexity", ""),
        (Project::NewApi, 34) | (Project::OneApi, 35) => Preset("cohere", ""),
        (Project::NewApi, 35) | (Project::OneApi, 27) => Preset("minimax", "/v1"),
        (Project::NewApi, 40) | (Project::OneApi, 44) => Preset("siliconflow", "/v1"),
        (Project::NewApi, 42) | (Project::OneApi, 28) => Preset("mistral", "/v1"),
        (Project::NewApi, 43) | (Project::OneApi, 36) => Preset("deepseek", "/v1"),
        (Project::NewApi, 45 | 54) | (Project::OneApi, 40) => Preset("ark", ""),
        (Project::NewApi, 48) | (Project::OneApi, 45) => Preset("xai", "/v1"),
        (Project::NewApi, 41) | (Project::OneApi, 42) => Preset("vertex", ""),
        (Project::OneApi, 29) => Preset("groq", "/v1"),
        (Project::OneApi, 39) => Preset("together", "/v1"),
        (Project::OneApi, 41) => Preset("novita", ""),
        (Project::OneApi, 49) => Preset("qwen", ""),
        (Project::OneApi, 51) => Preset("gemini", ""),
        (Project::NewApi, 47 | 59 | 60) | (Project::OneApi, 50) => compatible,
        (Project::NewApi, 57) => None("a subscription is not an API account"),
        (Project::NewApi, 46) | (Project::OneApi, 47 | 48) => None(SPLIT_KEY),
        _ => None("this type of channel has no preset"),
    }
}

pub(super) fn find_preset(name: &str) -> Option<Preset> {
    name.parse().ok()
}
