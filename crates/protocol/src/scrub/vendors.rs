//! Names of vendors, model families and platforms.

/// Names that an error message never shows, even if the client's request contains them. A test
/// requires the presets and the makers of the catalog.
const VENDORS: &[&str] = &[
    "ai21",
    "alibaba",
    "aliyun",
    "aliyuncs",
    "amazon",
    "amazonaws",
    "anthropic",
    "anyscale",
    "ark",
    "aws",
    "azure",
    "azureml",
    "baidu",
    "baseten",
    "bedrock",
    "bigmodel",
    "bytedance",
    "byteplus",
    "bytepluses",
    "cerebras",
    "chatgpt",
    "claude",
    "cloudflare",
    "cohere",
    "coreweave",
    "crusoe",
    "dashscope",
    "databricks",
    "deepinfra",
    "deepmind",
    "deepseek",
    "digitalocean",
    "doubao",
    "elevenlabs",
    "fal",
    "featherless",
    "fireworks",
    "friendli",
    "friendliai",
    "gcp",
    "gemini",
    "google",
    "googleapis",
    "gpt",
    "grok",
    "groq",
    "huggingface",
    "hunyuan",
    "hyperbolic",
    "ibm",
    "inceptionlabs",
    "kimi",
    "kling",
    "klusterai",
    "litellm",
    "llama",
    "llamacpp",
    "lmstudio",
    "microsoft",
    "minimax",
    "mistral",
    "moonshot",
    "moonshotai",
    "nebius",
    "novita",
    "nscale",
    "nvidia",
    "octoai",
    "ollama",
    "openai",
    "openrouter",
    "oraclecloud",
    "ovh",
    "ovhcloud",
    "parasail",
    "perplexity",
    "portkey",
    "predibase",
    "qwen",
    "replicate",
    "runpod",
    "runware",
    "sagemaker",
    "sambanova",
    "scaleway",
    "seedance",
    "seedream",
    "sglang",
    "siliconflow",
    "snowflake",
    "stepfun",
    "targon",
    "tencent",
    "tensorrt",
    "upstage",
    "vercel",
    "vertex",
    "vertexai",
    "vllm",
    "volcano",
    "volcengine",
    "volces",
    "voyageai",
    "vultr",
    "watsonx",
    "wavespeed",
    "xai",
    "zai",
    "zhipu",
    "zhipuai",
];

/// Vendors whose names are words of their own in lower case. They count as names if they are capitalized.
const CAPITALIZED: [&str; 6] = ["Lambda", "Meta", "Modal", "Replicate", "Together", "Writer"];

/// Whether this is the name of a vendor, of a model family or of a platform.
pub(super) fn is_vendor(word: &str) -> bool {
    let word = bare(word);
    VENDORS.iter().any(|name| word.eq_ignore_ascii_case(name))
}

/// Whether this is the name of a vendor in an error message, where capitals tell names from other
/// words.
pub(super) fn is_named_vendor(word: &str) -> bool {
    is_vendor(word) || CAPITALIZED.contains(&bare(word))
}

/// Whether this may be the name of a vendor in lower case. Such words are not plain English, but
/// clients may use them for other things.
pub(super) fn may_be_vendor(word: &str) -> bool {
    ["lambda", "modal", "replicate"].contains(&bare(word))
}

fn bare(word: &str) -> &str {
    word.strip_suffix("'s").unwrap_or(word)
}
