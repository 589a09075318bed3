//! Words and phrases by which vendors and servers report two errors that their status does not show. The
//! upstream does not have the model, or the prompt exceeds the model's context window.
//!
//! `fixtures/refusals/meanings.json` has an error body of each vendor that is named here.

/// The words and phrases that identify an error.
pub(super) struct ErrorPatterns {
    /// Values of `type`, `code`, `status` or `reason`, in lower case.
    pub(super) words: &'static [&'static str],
    /// Parts of the message, in lower case. `{}` matches a run of bytes without spaces, such as a
    /// quoted model name.
    phrases: &'static [&'static str],
}

/// This route's upstream does not have the model, or no longer has it.
pub(super) const NO_SUCH_MODEL: ErrorPatterns = ErrorPatterns {
    words: &[
        "model_not_found",                 // OpenAI, Groq, DashScope, LM Studio
        "deploymentnotfound",              // Azure
        "unknown_model",                   // GitHub Models
        "invalid_model",                   // Mistral, Perplexity
        "model_decommissioned",            // Groq
        "model_not_available",             // Together
        "model_not_supported",             // Hugging Face
        "invalidendpointormodel.notfound", // Ark
        "modelnotopen",                    // Ark
    ],
    phrases: &[
        "model {} does not exist",             // OpenAI, vLLM, Groq, xAI, DashScope
        "endpoint {} does not exist",          // Ark
        "model {} not found",                  // Ollama, llama.cpp, LM Studio, Cohere
        "model {} was not found",              // Vertex AI
        "not allowed to use publisher model",  // Vertex AI
        "models/{} is not found",              // Gemini API
        "unexpected model name format",        // Gemini API
        "model not found",                     // Fireworks, xAI
        "model not exist",                     // DeepSeek, DashScope
        "model does not exist",                // SiliconFlow
        "not found the model",                 // Moonshot
        "invalid model: ",                     // Mistral
        "invalid model name passed in model=", // LiteLLM
        "llm provider not provided",           // LiteLLM
        "is not a valid model id",             // OpenRouter
        "no endpoints found for {}",           // OpenRouter
        "unable to access model",              // Together
        "provided model identifier is invalid", // Bedrock
        "could not resolve the foundation model", // Bedrock
        "with on-demand throughput isn",       // Bedrock
    ],
};

/// Prompt and requested output exceed the model's context window.
pub(super) const CONTEXT_OVERFLOW: ErrorPatterns = ErrorPatterns {
    words: &[
        "context_length_exceeded",   // OpenAI, Azure, Groq
        "exceed_context_size_error", // llama.cpp
    ],
    phrases: &[
        "maximum context length", // OpenAI, vLLM, DeepSeek, OpenRouter, Mistral, Fireworks
        "exceeds the context window", // OpenAI
        "tokens exceed the configured limit", // Azure
        "prompt is too long",     // Anthropic, Fireworks
        "exceed context limit",   // Anthropic
        "exceeds the maximum number of tokens allowed", // Gemini API
        "input token count is {} but model only supports", // Vertex AI
        "input is too long for requested model", // Bedrock
        "exceeds the available context size", // llama.cpp
        "prompt too long; exceeded", // Ollama
        "input length exceeds the context length", // Ollama
        "greater than the context length", // LM Studio
        "model's context length", // vLLM, SGLang
        "maximum prompt length is", // xAI
        "exceeded model token limit", // Moonshot
        "context window exceeds limit", // MiniMax
        "tokens + `max_new_tokens` must be", // Text Generation Inference
        "range of input length should be", // DashScope
        "too many tokens: size limit exceeded", // Cohere
        "exceed max message tokens", // Ark
    ],
};

impl ErrorPatterns {
    /// Whether a message, in lower case, contains one of the phrases.
    pub(super) fn are_in(&self, message: &str) -> bool {
        self.phrases.iter().any(|phrase| is_in(message, phrase))
    }
}

fn is_in(message: &str, phrase: &str) -> bool {
    let Some((before, after)) = phrase.split_once("{}") else {
        return message.contains(phrase);
    };
    message.match_indices(before).any(|(at, found)| {
        let rest = message.get(at + found.len()..).unwrap_or_default();
        let name_end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        name_end > 0
            && rest
                .get(name_end..)
                .is_some_and(|rest| rest.starts_with(after))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_in_a_phrase_is_one_word() {
        let phrase = "model {} not found";
        for (message, found) in [
            ("the model 'a/b:7b' not found, try pulling it", true),
            ("model of no name; model x not found", true),
            ("the model used a tool that was not found", false),
            ("model  not found", false),
            ("model x not fou", false),
            ("model", false),
            ("", false),
        ] {
            assert_eq!(is_in(message, phrase), found, "{message}");
        }
        assert!(is_in(
            "no endpoints found for x.",
            "no endpoints found for {}"
        ));
    }

    #[test]
    fn signs_are_in_lower_case() {
        for patterns in [NO_SUCH_MODEL, CONTEXT_OVERFLOW] {
            for sign in patterns.words.iter().chain(patterns.phrases) {
                assert_eq!(*sign, sign.to_ascii_lowercase());
            }
        }
    }
}
