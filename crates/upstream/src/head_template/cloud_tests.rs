use bytes::Bytes;

use super::*;
use crate::secret::Secret;

fn cloud_head(preset: &str, settings: &[(&str, &str)], call: &UpstreamRequest) -> String {
    let preset: Preset = preset.parse().unwrap();
    let account: Account = settings
        .iter()
        .map(|(name, value)| ((*name).to_owned(), Secret::new(value)))
        .collect();
    let base_url = preset.base_url_of(&account).unwrap().unwrap();
    let address = Address::parse(&base_url).unwrap();
    let template = HeadTemplate::new(preset, &account, &address, b"").unwrap();
    let mut head = Vec::new();
    template.write_head(call, &RequestAuth::Fixed, &mut head);
    String::from_utf8(head).unwrap()
}

type Settings = &'static [(&'static str, &'static str)];

const RESOURCE: Settings = &[("resource", "contoso-eu")];
const PROJECT: Settings = &[("project", "p-1"), ("location", "us-east5")];
const REGION: Settings = &[("region", "eu-west-1")];
const GLOBAL: Settings = &[("project", "p-1")];
const EUROPE: Settings = &[("project", "p-1"), ("location", "eu")];
const COUNT: Endpoint = Endpoint::TokenCount(Dialect::Messages);

const fn text(dialect: Dialect, stream: bool) -> Endpoint {
    Endpoint::Text { dialect, stream }
}

/// Each case: preset, account, endpoint, model, and the expected host and target.
const CASES: [(&str, Settings, Endpoint, &str, &str, &str); 16] = [
    (
        "bedrock-converse",
        REGION,
        Endpoint::Converse { stream: false },
        "us.amazon.nova-pro-v1:0",
        "bedrock-runtime.eu-west-1.amazonaws.com",
        "/model/us.amazon.nova-pro-v1%3A0/converse",
    ),
    (
        "bedrock-converse",
        REGION,
        Endpoint::Converse { stream: true },
        "m",
        "bedrock-runtime.eu-west-1.amazonaws.com",
        "/model/m/converse-stream",
    ),
    (
        "vertex",
        PROJECT,
        Endpoint::FetchOperation,
        "veo-3.1-generate-001",
        "us-east5-aiplatform.googleapis.com",
        "/v1/projects/p-1/locations/us-east5/publishers/google/models/veo-3.1-generate-001:fetchPredictOperation",
    ),
    (
        "azure",
        RESOURCE,
        text(Dialect::Chat, true),
        "dep",
        "contoso-eu.openai.azure.com",
        "/openai/v1/chat/completions",
    ),
    (
        "azure",
        RESOURCE,
        text(Dialect::Responses, false),
        "dep",
        "contoso-eu.openai.azure.com",
        "/openai/v1/responses",
    ),
    (
        "azure-dated",
        RESOURCE,
        text(Dialect::Chat, false),
        "my dep/1",
        "contoso-eu.openai.azure.com",
        "/openai/deployments/my%20dep%2F1/chat/completions?api-version=2024-10-21",
    ),
    (
        "azure-dated",
        RESOURCE,
        Endpoint::Embeddings,
        "e",
        "contoso-eu.openai.azure.com",
        "/openai/deployments/e/embeddings?api-version=2024-10-21",
    ),
    (
        "azure-anthropic",
        RESOURCE,
        text(Dialect::Messages, true),
        "dep",
        "contoso-eu.services.ai.azure.com",
        "/anthropic/v1/messages",
    ),
    (
        "azure-anthropic",
        RESOURCE,
        COUNT,
        "dep",
        "contoso-eu.services.ai.azure.com",
        "/anthropic/v1/messages/count_tokens",
    ),
    (
        "vertex",
        PROJECT,
        text(Dialect::Generate, true),
        "m",
        "us-east5-aiplatform.googleapis.com",
        "/v1/projects/p-1/locations/us-east5/publishers/google/models/m:streamGenerateContent?alt=sse",
    ),
    (
        "vertex",
        GLOBAL,
        text(Dialect::Generate, false),
        "m",
        "aiplatform.googleapis.com",
        "/v1/projects/p-1/locations/global/publishers/google/models/m:generateContent",
    ),
    (
        "vertex",
        EUROPE,
        Endpoint::EmbedInstances,
        "m",
        "aiplatform.eu.rep.googleapis.com",
        "/v1/projects/p-1/locations/eu/publishers/google/models/m:predict",
    ),
    (
        "vertex-express",
        &[],
        text(Dialect::Generate, false),
        "m",
        "aiplatform.googleapis.com",
        "/v1/publishers/google/models/m:generateContent",
    ),
    (
        "vertex-anthropic",
        PROJECT,
        text(Dialect::Messages, false),
        "claude@2025?&..",
        "us-east5-aiplatform.googleapis.com",
        "/v1/projects/p-1/locations/us-east5/publishers/anthropic/models/claude@2025%3F%26..:rawPredict",
    ),
    (
        "vertex-anthropic",
        PROJECT,
        text(Dialect::Messages, true),
        "c",
        "us-east5-aiplatform.googleapis.com",
        "/v1/projects/p-1/locations/us-east5/publishers/anthropic/models/c:streamRawPredict",
    ),
    (
        "vertex-anthropic",
        PROJECT,
        COUNT,
        "c",
        "us-east5-aiplatform.googleapis.com",
        "/v1/projects/p-1/locations/us-east5/publishers/anthropic/models/count-tokens:rawPredict",
    ),
];

#[test]
fn clouds_have_their_own_addresses_and_paths() {
    for (preset, account, endpoint, model, host, target) in CASES {
        let call = UpstreamRequest::json(endpoint, model, vec![Bytes::from_static(b"{}")]);
        let head = cloud_head(preset, account, &call);
        let start = format!("POST {target} HTTP/1.1\r\nhost: {host}\r\n");
        assert!(head.starts_with(&start), "{preset}: {head}");
        let has_version = head.contains("anthropic-version");
        assert_eq!(has_version, preset == "azure-anthropic", "{preset}: {head}");
    }
}

#[test]
fn only_betas_that_the_cloud_knows_are_forwarded() {
    let endpoint = Endpoint::Text {
        dialect: Dialect::Messages,
        stream: false,
    };
    let mut call = UpstreamRequest::json(endpoint, "m", vec![Bytes::from_static(b"{}")]);
    for value in [
        "interleaved-thinking-2025-05-14, other-1",
        "other-2",
        "context-1m-2025-08-07",
    ] {
        call.extra
            .append("anthropic-beta", HeaderValue::from_static(value));
    }
    let head = cloud_head("vertex-anthropic", &[("project", "p-1")], &call);
    assert!(head.contains(
        "anthropic-beta: interleaved-thinking-2025-05-14\r\nanthropic-beta: context-1m-2025-08-07\r\n"
    ));
    assert!(!head.contains("other"), "{head}");
}
