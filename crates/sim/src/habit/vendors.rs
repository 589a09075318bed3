//! Refusals with the bodies that real vendors and servers send. Ids and addresses in them are invented.
//!
//! The model's name replaces `{model}` in a body.

use crate::reply::Reply;
use http::StatusCode;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct VendorRefusal {
    vendor: &'static str,
    status: u16,
    body: &'static str,
}

impl VendorRefusal {
    /// The refusal of an unknown model; `None` for an unknown vendor.
    pub(crate) fn no_such_model(vendor: &str) -> Option<&'static Self> {
        find(NO_SUCH_MODEL, vendor)
    }

    /// The refusal of a prompt that exceeds the context window; `None` for an unknown vendor.
    pub(crate) fn context_overflow(vendor: &str) -> Option<&'static Self> {
        find(CONTEXT_OVERFLOW, vendor)
    }

    pub(crate) fn reply(&self, model: &str) -> Reply {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::BAD_REQUEST);
        // Removes quotation marks and backslashes, because the name is inserted into the JSON body without escaping.
        let model = model.replace(['"', '\\'], "");
        Reply::json(status, self.body.replace("{model}", &model))
    }
}

/// The vendors whose refusal of an unknown model is known.
pub fn no_such_model_vendors() -> impl Iterator<Item = &'static str> {
    NO_SUCH_MODEL.iter().map(|row| row.vendor)
}

/// The vendors whose refusal of a prompt that exceeds the context window is known.
pub fn context_overflow_vendors() -> impl Iterator<Item = &'static str> {
    CONTEXT_OVERFLOW.iter().map(|row| row.vendor)
}

fn find(table: &'static [VendorRefusal], vendor: &str) -> Option<&'static VendorRefusal> {
    table.iter().find(|row| row.vendor == vendor)
}

const fn row(vendor: &'static str, status: u16, body: &'static str) -> VendorRefusal {
    VendorRefusal {
        vendor,
        status,
        body,
    }
}

const NO_SUCH_MODEL: &[VendorRefusal] = &[
    row(
        "openai",
        404,
        r#"{"error":{"message":"The model `{model}` does not exist or you do not have access to it.","type":"invalid_request_error","param":null,"code":"model_not_found"}}"#,
    ),
    row(
        "openai-responses",
        400,
        r#"{"error":{"message":"The requested model '{model}' does not exist.","type":"invalid_request_error","param":"model","code":"model_not_found"}}"#,
    ),
    row(
        "azure",
        404,
        r#"{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist. If you created the deployment within the last 5 minutes, please wait a moment and try again."}}"#,
    ),
    row(
        "anthropic",
        404,
        r#"{"type":"error","error":{"type":"not_found_error","message":"model: {model}"},"request_id":"req_sim4711"}"#,
    ),
    row(
        "google",
        404,
        r#"{"error":{"code":404,"message":"models/{model} is not found for API version v1beta, or is not supported for generateContent. Call ListModels to see the list of available models and their supported methods.","status":"NOT_FOUND"}}"#,
    ),
    row(
        "vertex",
        404,
        r#"{"error":{"code":404,"message":"Publisher Model `projects/sim-4711/locations/us-central1/publishers/google/models/{model}` was not found or your project does not have access to it. Please ensure you are using a valid model version.","status":"NOT_FOUND"}}"#,
    ),
    row(
        "ollama",
        404,
        r#"{"error":{"message":"model '{model}' not found","type":"not_found_error","param":null,"code":null}}"#,
    ),
    row(
        "litellm",
        400,
        r#"{"error":{"message":"{'error': '/chat/completions: Invalid model name passed in model={model}. Call `/v1/models` to view available models for your key.'}","type":"None","param":"None","code":"400"}}"#,
    ),
    row(
        "vllm",
        404,
        r#"{"object":"error","message":"The model `{model}` does not exist.","type":"NotFoundError","param":null,"code":404}"#,
    ),
    row(
        "llama-cpp",
        400,
        r#"{"error":{"code":400,"message":"model '{model}' not found","type":"invalid_request_error"}}"#,
    ),
    row(
        "bedrock",
        400,
        r#"{"message":"The provided model identifier is invalid."}"#,
    ),
    row(
        "openrouter",
        400,
        r#"{"error":{"message":"{model} is not a valid model ID","code":400},"user_id":"user_sim4711"}"#,
    ),
    row(
        "mistral",
        400,
        r#"{"object":"error","message":"Invalid model: {model}","type":"invalid_model","param":null,"code":"1500"}"#,
    ),
    row(
        "groq",
        400,
        r#"{"error":{"message":"The model `{model}` has been decommissioned and is no longer supported. Please refer to https://console.sim-upstream.example/docs/deprecations for a recommendation on which model to use instead.","type":"invalid_request_error","code":"model_decommissioned"}}"#,
    ),
    row(
        "deepseek",
        400,
        r#"{"error":{"message":"Model Not Exist","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}"#,
    ),
    row(
        "xai",
        404,
        r#"{"code":"Some requested entity was not found","error":"The model {model} does not exist or your team sim-4711 does not have access to it."}"#,
    ),
    row(
        "ark",
        404,
        r#"{"error":{"code":"InvalidEndpointOrModel.NotFound","message":"The model or endpoint {model} does not exist or you do not have access to it. Request id: 02sim4711","param":"","type":"NotFound"}}"#,
    ),
];

const CONTEXT_OVERFLOW: &[VendorRefusal] = &[
    row(
        "openai",
        400,
        r#"{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
    ),
    row(
        "openai-responses",
        400,
        r#"{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}"#,
    ),
    row(
        "anthropic",
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 209001 tokens > 200000 maximum"},"request_id":"req_sim4711"}"#,
    ),
    row(
        "anthropic-output",
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again"},"request_id":"req_sim4711"}"#,
    ),
    row(
        "google",
        400,
        r#"{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#,
    ),
    row(
        "vertex",
        400,
        r#"{"error":{"code":400,"message":"Unable to submit request because the input token count is 33034 but model only supports up to 32768. Reduce the input token count and try again.","status":"INVALID_ARGUMENT"}}"#,
    ),
    row(
        "ollama",
        400,
        r#"{"error":{"message":"prompt too long; exceeded max context length by 809 tokens","type":"invalid_request_error","param":null,"code":null}}"#,
    ),
    row(
        "litellm",
        400,
        r#"{"error":{"message":"litellm.ContextWindowExceededError: litellm.BadRequestError: ContextWindowExceededError: OpenAIException - This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.","type":null,"param":null,"code":"400"}}"#,
    ),
    row(
        "vllm",
        400,
        r#"{"object":"error","message":"This model's maximum context length is 8192 tokens. However, you requested 9101 tokens (9001 in the messages, 100 in the completion). Please reduce the length of the messages or completion.","type":"BadRequestError","param":null,"code":400}"#,
    ),
    row(
        "llama-cpp",
        400,
        r#"{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9001,"n_ctx":8192}}"#,
    ),
    row(
        "bedrock",
        400,
        r#"{"message":"Input is too long for requested model."}"#,
    ),
    row(
        "openrouter",
        400,
        r#"{"error":{"message":"This endpoint's maximum context length is 8192 tokens. However, you requested about 9001 tokens (9001 of text input). Please reduce the length of either one, or use the \"middle-out\" transform to compress your prompt automatically.","code":400},"user_id":"user_sim4711"}"#,
    ),
    row(
        "mistral",
        400,
        r#"{"object":"error","message":"Prompt contains 33001 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_prompt","param":null,"code":"3051"}"#,
    ),
    row(
        "xai",
        400,
        r#"{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 140001 tokens."}"#,
    ),
    row(
        "sglang",
        400,
        r#"{"object":"error","message":"The input (9001 tokens) is longer than the model's context length (8192 tokens).","type":"BadRequestError","param":null,"code":400}"#,
    ),
];
