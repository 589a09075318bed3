//! Harmless words: plain English, members of the public protocols, formats and units.

use std::collections::HashSet;
use std::sync::LazyLock;

/// Plain English words in their base form, as in error messages. Names of vendors and products that
/// are also English words are left out on purpose.
static WORDS: LazyLock<HashSet<&str>> =
    LazyLock::new(|| include_str!("words.txt").split_whitespace().collect());

/// Parts of member names of the public protocols.
static MEMBERS: LazyLock<HashSet<&str>> =
    LazyLock::new(|| include_str!("members.txt").split_whitespace().collect());

/// Formats and terms that contain characters other than letters, or are not words.
const TERMS: [&str; 52] = [
    "3d", "aac", "api", "ascii", "avif", "base64", "bmp", "cors", "css", "csv", "flac", "gif",
    "h264", "h265", "heic", "html", "http", "https", "i.e", "e.g", "iso", "jpeg", "jpg", "json",
    "json5", "jsonl", "latin1", "m4a", "max", "min", "mov", "mp3", "mp4", "mpeg", "mpga", "ogg",
    "pcm", "pdf", "png", "pptx", "sha256", "sse", "svg", "txt", "uri", "url", "utf-8", "utf8",
    "uuid", "wav", "webm", "webp",
];

/// Units that may directly follow a number.
const UNITS: [&str; 26] = [
    "b", "bit", "bits", "bytes", "d", "fps", "gb", "gib", "h", "hz", "k", "kb", "kbps", "khz",
    "kib", "m", "mb", "mib", "min", "ms", "p", "px", "s", "sec", "st", "th",
];

/// Whether this is a plain English word or a term, in any inflection.
pub(super) fn is_plain(word: &str) -> bool {
    let mut chars = word.chars();
    if let (Some(only), None) = (chars.next(), chars.next()) {
        return only.is_ascii_alphabetic();
    }
    // In lower case this is an audio format, but capitalized it is a product.
    if word == "opus" {
        return true;
    }
    let lower = word.to_ascii_lowercase();
    let lower = lower.strip_suffix("'s").unwrap_or(&lower);
    is_known(lower) || is_inflected(lower)
}

/// Whether this is a part of a member name.
pub(super) fn is_member(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    MEMBERS.contains(lower.as_str()) || matches!(lower.as_str(), "k" | "n" | "p" | "b64" | "base64")
}

/// Whether this may directly follow the digits of a number.
pub(super) fn is_unit(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    UNITS.contains(&lower.as_str())
}

fn is_known(word: &str) -> bool {
    WORDS.contains(word) || MEMBERS.contains(word) || TERMS.contains(&word)
}

fn is_inflected(word: &str) -> bool {
    const ENDINGS: [(&str, &[&str]); 10] = [
        ("s", &[""]),
        ("es", &["", "e"]),
        ("ies", &["y"]),
        ("ed", &["", "e"]),
        ("ied", &["y"]),
        ("ing", &["", "e"]),
        ("ly", &["", "le"]),
        ("er", &["", "e"]),
        ("ion", &["", "e"]),
        ("n't", &[""]),
    ];
    let bases = ENDINGS.iter().any(|(ending, bases)| {
        let Some(stem) = word.strip_suffix(ending) else {
            return false;
        };
        let doubled = stem.len() > 3 && ends_doubled(stem) && is_known(&stem[..stem.len() - 1]);
        doubled || bases.iter().any(|base| is_known(&format!("{stem}{base}")))
    });
    let negated = ["un", "non", "re", "mis", "dis"]
        .iter()
        .any(|prefix| word.strip_prefix(prefix).is_some_and(is_known));
    bases || negated
}

/// Whether an ASCII stem ends with a doubled letter, as in `omitt-ed`.
fn ends_doubled(stem: &str) -> bool {
    matches!(stem.as_bytes(), [.., a, b] if a == b && a.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inflections_of_plain_words_are_plain() {
        for word in [
            "Invalid",
            "messages",
            "omitted",
            "exceeding",
            "required",
            "specified",
            "properties",
            "isn't",
            "user's",
            "JSON",
            "unsupported",
            "correctly",
            "encoding",
            "using",
            "a",
        ] {
            assert!(is_plain(word), "{word}");
        }
    }

    #[test]
    fn names_of_vendors_are_not_plain() {
        for word in [
            "OpenAI",
            "Azure",
            "Anthropic",
            "Bedrock",
            "Vertex",
            "DeepSeek",
            "Mistral",
            "Groq",
            "Cohere",
            "Fireworks",
            "Replicate",
            "Modal",
            "Perplexity",
            "Nova",
            "Titan",
            "Llama",
            "Qwen",
            "Kimi",
            "Seedance",
            "Seedream",
            "Doubao",
            "Ark",
            "Grok",
            "Gemini",
            "Claude",
            "Sonnet",
            "Haiku",
            "Opus",
            "Flash",
            "Turbo",
            "Command",
            "Whisper",
            "Sora",
            "Veo",
            "Imagen",
            "Omni",
            "Runway",
            "Luma",
            "Kling",
            "Meta",
            "Amazon",
            "Google",
            "Microsoft",
            "Copilot",
            "Foundry",
            "LiteLLM",
            "vLLM",
            "Ollama",
            "Cerebras",
            "Sambanova",
            "Hyperbolic",
            "Baseten",
            "Lambda",
            "Cloudflare",
            "Workers",
            "xyz",
            "app",
            "com",
            "net",
            "io",
            "ai",
            "dev",
            "acct",
            "org",
            "arn",
            "aws",
        ] {
            assert!(!is_plain(word), "{word}");
        }
    }

    #[test]
    fn both_lists_are_words_in_lower_case_and_name_nothing_twice() {
        for list in [include_str!("words.txt"), include_str!("members.txt")] {
            let mut seen = HashSet::new();
            for word in list.split_whitespace() {
                assert!(
                    word.bytes().all(|b| b.is_ascii_lowercase() || b == b'\''),
                    "{word}"
                );
                assert!(seen.insert(word), "{word} stands twice");
            }
        }
    }
}
