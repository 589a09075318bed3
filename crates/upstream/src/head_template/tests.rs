use bytes::Bytes;
use http::{HeaderMap, HeaderName};

use super::*;
use crate::credential::{Authorization, NetworkAccess};
use crate::secret::Secret;

fn template(preset: Preset, account: &Account, address: &Address) -> HeadTemplate {
    let secret = Secret::new("sk-secret");
    let access = NetworkAccess::Configured;
    let authorization = Authorization::new(preset, account, Some(&secret), &access).unwrap();
    HeadTemplate::new(preset, account, address, authorization.fixed_line()).unwrap()
}

fn head(preset: &str, base_url: Option<&str>, call: &UpstreamRequest) -> String {
    let preset: Preset = preset.parse().unwrap();
    let base_url = base_url.or(preset.base_url()).unwrap();
    let address = Address::parse(base_url).unwrap();
    let template = template(preset, &Account::default(), &address);
    let mut head = Vec::new();
    template.write_head(call, &RequestAuth::Fixed, &mut head);
    String::from_utf8(head).unwrap()
}

fn call(dialect: Dialect, upstream_model: &str, stream: bool) -> UpstreamRequest {
    let endpoint = Endpoint::Text { dialect, stream };
    UpstreamRequest::json(endpoint, upstream_model, vec![Bytes::from_static(b"{}")])
}

#[test]
fn a_request_is_written_as_the_vendors_sdk_would_write_it() {
    assert_eq!(
        head("openai", None, &call(Dialect::Chat, "m", true)),
        concat!(
            "POST /v1/chat/completions HTTP/1.1\r\n",
            "host: api.openai.com\r\n",
            "authorization: Bearer sk-secret\r\n",
            "user-agent: tollgate/",
            env!("CARGO_PKG_VERSION"),
            "\r\n",
            "accept: application/json\r\n",
            "accept-encoding: identity\r\n",
            "content-type: application/json\r\n",
            "content-length: 2\r\n\r\n"
        )
    );
}

#[test]
fn the_list_of_models_is_asked_for_where_the_vendor_has_it() {
    for (preset, base_url, target) in [
        ("openai", None, "/v1/models"),
        ("anthropic", None, "/v1/models?limit=1000"),
        ("gemini", None, "/v1beta/models?pageSize=1000"),
        ("ark", None, "/api/v3/models"),
        (
            "openai-compatible",
            Some("http://127.0.0.1:9/v1"),
            "/v1/models",
        ),
    ] {
        let call = UpstreamRequest::json(Endpoint::Models, "", Vec::new());
        let head = head(preset, base_url, &call);
        assert!(
            head.starts_with(&format!("GET {target} HTTP/1.1\r\n")),
            "{head}"
        );
        assert!(!head.contains("content-length"), "{head}");
        let tells_version = head.contains("anthropic-version: ");
        assert_eq!(tells_version, preset == "anthropic", "{head}");
    }
}

#[test]
fn tokens_are_counted_beside_the_endpoint_that_answers() {
    for (preset, base_url, dialect, target) in [
        (
            "openai",
            None,
            Dialect::Responses,
            "/v1/responses/input_tokens",
        ),
        (
            "anthropic",
            None,
            Dialect::Messages,
            "/v1/messages/count_tokens",
        ),
        (
            "gemini",
            None,
            Dialect::Generate,
            "/v1beta/models/a%2Fb:countTokens",
        ),
        (
            "sim",
            Some("http://127.0.0.1:9/v1"),
            Dialect::Messages,
            "/v1/messages/count_tokens",
        ),
    ] {
        let body = vec![Bytes::from_static(b"{}")];
        let call = UpstreamRequest::json(Endpoint::TokenCount(dialect), "a/b", body);
        let head = head(preset, base_url, &call);
        assert!(
            head.starts_with(&format!("POST {target} HTTP/1.1\r\n")),
            "{head}"
        );
        let tells_version = head.contains("anthropic-version: ");
        assert_eq!(tells_version, dialect == Dialect::Messages, "{head}");
    }
}

#[test]
fn each_dialect_has_its_path_at_each_kind_of_upstream() {
    use Dialect::{Chat, Generate, Interactions, Messages, Responses};
    let sim = Some("http://127.0.0.1:9/v1");
    for (preset, base_url, dialect, stream, target) in [
        ("openai", None, Chat, false, "/v1/chat/completions"),
        ("openai", None, Responses, true, "/v1/responses"),
        ("xai", None, Chat, false, "/v1/chat/completions"),
        ("ark", None, Chat, false, "/api/v3/chat/completions"),
        ("ark", None, Responses, false, "/api/v3/responses"),
        (
            "openai-compatible",
            Some("http://h:1/x/v1/"),
            Chat,
            false,
            "/x/v1/chat/completions",
        ),
        (
            "openai-compatible",
            Some("http://h:1/x/v1/"),
            Messages,
            false,
            "/x/v1/messages",
        ),
        ("anthropic", None, Messages, true, "/v1/messages"),
        ("deepseek", None, Messages, true, "/anthropic/v1/messages"),
        ("zai", None, Chat, true, "/api/paas/v4/chat/completions"),
        ("zai", None, Messages, true, "/api/anthropic/v1/messages"),
        ("fireworks", None, Messages, true, "/inference/v1/messages"),
        (
            "anthropic",
            Some("http://h/proxy"),
            Messages,
            true,
            "/proxy/v1/messages",
        ),
        ("anthropic", None, Chat, true, "/v1/chat/completions"),
        (
            "gemini",
            None,
            Generate,
            false,
            "/v1beta/models/m-1.5:generateContent",
        ),
        (
            "gemini",
            None,
            Generate,
            true,
            "/v1beta/models/m-1.5:streamGenerateContent?alt=sse",
        ),
        ("gemini", None, Interactions, true, "/v1beta/interactions"),
        (
            "gemini",
            None,
            Chat,
            true,
            "/v1beta/openai/chat/completions",
        ),
        ("sim", sim, Chat, false, "/v1/chat/completions"),
        ("sim", sim, Responses, false, "/v1/responses"),
        ("sim", sim, Messages, false, "/v1/messages"),
        (
            "sim",
            sim,
            Generate,
            false,
            "/v1beta/models/m-1.5:generateContent",
        ),
        ("sim", sim, Interactions, false, "/v1beta/interactions"),
    ] {
        let head = head(preset, base_url, &call(dialect, "m-1.5", stream));
        let line = format!("POST {target} HTTP/1.1\r\n");
        assert!(head.starts_with(&line), "{preset} {dialect}: {head}");
    }
}

#[test]
fn vectors_and_pictures_have_their_paths() {
    let sim = Some("http://127.0.0.1:9/v1");
    for (preset, base_url, endpoint, target) in [
        ("openai", None, Endpoint::Embeddings, "/v1/embeddings"),
        (
            "gemini",
            None,
            Endpoint::Embeddings,
            "/v1beta/openai/embeddings",
        ),
        (
            "gemini",
            None,
            Endpoint::EmbedContent { batch: false },
            "/v1beta/models/m-1.5:embedContent",
        ),
        (
            "sim",
            sim,
            Endpoint::EmbedContent { batch: true },
            "/v1beta/models/m-1.5:batchEmbedContents",
        ),
        (
            "ark",
            None,
            Endpoint::ImageGenerations,
            "/api/v3/images/generations",
        ),
        ("openai", None, Endpoint::ImageEdits, "/v1/images/edits"),
        ("xai", None, Endpoint::VideoEdits, "/v1/videos/edits"),
    ] {
        let call = UpstreamRequest::json(endpoint, "m-1.5", Vec::new());
        let head = head(preset, base_url, &call);
        let line = format!("POST {target} HTTP/1.1\r\n");
        assert!(head.starts_with(&line), "{preset}: {head}");
    }
}

#[test]
fn operations_are_made_at_a_model_and_asked_about_by_a_path() {
    let create = UpstreamRequest::json(Endpoint::PredictLongRunning, "film-3", Vec::new());
    let create = head("gemini", None, &create);
    let target = "POST /v1beta/models/film-3:predictLongRunning HTTP/1.1\r\n";
    assert!(create.starts_with(target), "{create}");
    let ask = UpstreamRequest {
        item: Some("models/film-3/operations/a b".into()),
        ..UpstreamRequest::json(Endpoint::Operation, "film-3", Vec::new())
    };
    let ask = head("gemini", None, &ask);
    let target = "GET /v1beta/models/film-3/operations/a%20b HTTP/1.1\r\n";
    assert!(ask.starts_with(target), "{ask}");
}

#[test]
fn a_task_is_asked_about_without_a_body() {
    let call = UpstreamRequest {
        item: Some("a/b?c".into()),
        ..UpstreamRequest::json(Endpoint::Video, "m-1.5", Vec::new())
    };
    let head = head("xai", None, &call);
    assert!(
        head.starts_with("GET /v1/videos/a%2Fb%3Fc HTTP/1.1\r\n"),
        "{head}"
    );
    assert!(
        head.ends_with("\r\n\r\n") && !head.contains("content-"),
        "{head}"
    );
}

#[test]
fn a_content_task_is_made_asked_about_and_deleted_under_one_path() {
    for (endpoint, item, line) in [
        (
            Endpoint::ContentTasks,
            None,
            "POST /api/v3/contents/generations/tasks",
        ),
        (
            Endpoint::ContentTask,
            Some("cgt-1"),
            "GET /api/v3/contents/generations/tasks/cgt-1",
        ),
        (
            Endpoint::ContentTaskDeletion,
            Some("cgt-1"),
            "DELETE /api/v3/contents/generations/tasks/cgt-1",
        ),
    ] {
        let call = UpstreamRequest {
            item: item.map(Into::into),
            ..UpstreamRequest::json(endpoint, "m-1.5", Vec::new())
        };
        let head = head("ark", None, &call);
        assert!(head.starts_with(&format!("{line} HTTP/1.1\r\n")), "{head}");
    }
}

#[test]
fn the_credential_goes_out_in_the_vendors_header_alone() {
    for (preset, base_url, line) in [
        ("openai", None, "authorization: Bearer sk-secret"),
        ("xai", None, "authorization: Bearer sk-secret"),
        ("ark", None, "authorization: Bearer sk-secret"),
        (
            "sim",
            Some("http://h/v1"),
            "authorization: Bearer sk-secret",
        ),
        ("anthropic", None, "x-api-key: sk-secret"),
        ("gemini", None, "x-goog-api-key: sk-secret"),
    ] {
        let head = head(preset, base_url, &call(Dialect::Messages, "m", false));
        assert!(
            head.contains(&format!("\r\n{line}\r\n")),
            "{preset}: {head}"
        );
        assert_eq!(head.matches("sk-secret").count(), 1, "{preset}: {head}");
    }
}

#[test]
fn a_model_name_cannot_leave_its_path_segment() {
    let head = head(
        "gemini",
        None,
        &call(Dialect::Generate, "../a b?key=1#\r\nx: y", false),
    );
    assert!(
        head.starts_with(
            "POST /v1beta/models/..%2Fa%20b%3Fkey%3D1%23%0D%0Ax%3A%20y:generateContent HTTP/1.1\r\n"
        ),
        "{head}"
    );
}

#[test]
fn only_listed_headers_of_the_caller_go_on() {
    let mut call = call(Dialect::Messages, "m", false);
    call.extra = HeaderMap::from_iter(
        [
            ("anthropic-version", "2099-01-01"),
            ("anthropic-beta", "one"),
            ("x-api-key", "the callers own"),
            ("cookie", "a=b"),
        ]
        .map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        }),
    );
    call.extra
        .append("anthropic-beta", HeaderValue::from_static("two"));
    let head = head("anthropic", None, &call);
    assert_eq!(head.matches("anthropic-version: 2023-06-01\r\n").count(), 1);
    assert_eq!(head.matches("anthropic-version").count(), 1);
    assert!(
        head.contains("anthropic-beta: one\r\nanthropic-beta: two\r\n"),
        "{head}"
    );
    assert!(
        !head.contains("cookie") && !head.contains("callers own"),
        "{head}"
    );
}

#[test]
fn messages_upstreams_receive_a_version() {
    for (dialect, expected) in [(Dialect::Messages, 1), (Dialect::Chat, 0)] {
        let head = head("sim", Some("http://h/v1"), &call(dialect, "m", false));
        assert_eq!(
            head.matches("anthropic-version: 2023-06-01\r\n").count(),
            expected
        );
    }
}

#[test]
fn a_credential_that_no_header_can_carry_is_refused_unshown() {
    let secret = Secret::new("sk-line\nx-evil: 1");
    let sim = "sim".parse().unwrap();
    let made = Authorization::new(
        sim,
        &Account::default(),
        Some(&secret),
        &NetworkAccess::Configured,
    );
    let error = made.unwrap_err();
    assert_eq!(error, ChannelError::Credential);
    assert!(!error.to_string().contains("evil"));
}
