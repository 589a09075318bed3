use bytes::Bytes;
use http::{HeaderMap, HeaderName};

use super::*;

fn head(preset: Preset, base_url: Option<&str>, call: &UpstreamRequest) -> String {
    let base_url = base_url.or(preset.base_url()).unwrap();
    let address = Address::parse(base_url).unwrap();
    let secret = Secret::new("sk-secret");
    let template = HeadTemplate::new(preset, &address, Some(&secret)).unwrap();
    let mut head = Vec::new();
    template.write_head(call, &mut head);
    String::from_utf8(head).unwrap()
}

fn call(dialect: Dialect, upstream_model: &str, stream: bool) -> UpstreamRequest {
    let endpoint = Endpoint::Text { dialect, stream };
    UpstreamRequest::json(endpoint, upstream_model, vec![Bytes::from_static(b"{}")])
}

#[test]
fn a_request_is_written_as_the_vendors_sdk_would_write_it() {
    assert_eq!(
        head(Preset::Openai, None, &call(Dialect::Chat, "m", true)),
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
fn tokens_are_counted_beside_the_endpoint_that_answers() {
    for (preset, base_url, dialect, target) in [
        (
            Preset::Openai,
            None,
            Dialect::Responses,
            "/v1/responses/input_tokens",
        ),
        (
            Preset::Anthropic,
            None,
            Dialect::Messages,
            "/v1/messages/count_tokens",
        ),
        (
            Preset::Gemini,
            None,
            Dialect::Generate,
            "/v1beta/models/a%2Fb:countTokens",
        ),
        (
            Preset::Sim,
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
    use Preset::{Anthropic, Ark, Gemini, Openai, OpenaiCompatible, Sim, Xai};
    let sim = Some("http://127.0.0.1:9/v1");
    for (preset, base_url, dialect, stream, target) in [
        (Openai, None, Chat, false, "/v1/chat/completions"),
        (Openai, None, Responses, true, "/v1/responses"),
        (Xai, None, Chat, false, "/v1/chat/completions"),
        (Ark, None, Chat, false, "/api/v3/chat/completions"),
        (Ark, None, Responses, false, "/api/v3/responses"),
        (
            OpenaiCompatible,
            Some("http://h:1/x/v1/"),
            Chat,
            false,
            "/x/v1/chat/completions",
        ),
        (
            OpenaiCompatible,
            Some("http://h:1/x/v1/"),
            Messages,
            false,
            "/x/v1/messages",
        ),
        (Anthropic, None, Messages, true, "/v1/messages"),
        (
            Anthropic,
            Some("http://h/proxy"),
            Messages,
            true,
            "/proxy/v1/messages",
        ),
        (Anthropic, None, Chat, true, "/v1/chat/completions"),
        (
            Gemini,
            None,
            Generate,
            false,
            "/v1beta/models/m-1.5:generateContent",
        ),
        (
            Gemini,
            None,
            Generate,
            true,
            "/v1beta/models/m-1.5:streamGenerateContent?alt=sse",
        ),
        (Gemini, None, Interactions, true, "/v1beta/interactions"),
        (Gemini, None, Chat, true, "/v1beta/openai/chat/completions"),
        (Sim, sim, Chat, false, "/v1/chat/completions"),
        (Sim, sim, Responses, false, "/v1/responses"),
        (Sim, sim, Messages, false, "/v1/messages"),
        (
            Sim,
            sim,
            Generate,
            false,
            "/v1beta/models/m-1.5:generateContent",
        ),
        (Sim, sim, Interactions, false, "/v1beta/interactions"),
    ] {
        let head = head(preset, base_url, &call(dialect, "m-1.5", stream));
        let line = format!("POST {target} HTTP/1.1\r\n");
        assert!(head.starts_with(&line), "{preset} {dialect}: {head}");
    }
}

#[test]
fn vectors_and_pictures_have_their_paths() {
    use Preset::{Ark, Gemini, Openai, Sim, Xai};
    let sim = Some("http://127.0.0.1:9/v1");
    for (preset, base_url, endpoint, target) in [
        (Openai, None, Endpoint::Embeddings, "/v1/embeddings"),
        (
            Gemini,
            None,
            Endpoint::Embeddings,
            "/v1beta/openai/embeddings",
        ),
        (
            Gemini,
            None,
            Endpoint::EmbedContent { batch: false },
            "/v1beta/models/m-1.5:embedContent",
        ),
        (
            Sim,
            sim,
            Endpoint::EmbedContent { batch: true },
            "/v1beta/models/m-1.5:batchEmbedContents",
        ),
        (
            Ark,
            None,
            Endpoint::ImageGenerations,
            "/api/v3/images/generations",
        ),
        (Openai, None, Endpoint::ImageEdits, "/v1/images/edits"),
        (Xai, None, Endpoint::VideoEdits, "/v1/videos/edits"),
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
    let create = head(Preset::Gemini, None, &create);
    let target = "POST /v1beta/models/film-3:predictLongRunning HTTP/1.1\r\n";
    assert!(create.starts_with(target), "{create}");
    let ask = UpstreamRequest {
        item: Some("models/film-3/operations/a b".into()),
        ..UpstreamRequest::json(Endpoint::Operation, "film-3", Vec::new())
    };
    let ask = head(Preset::Gemini, None, &ask);
    let target = "GET /v1beta/models/film-3/operations/a%20b HTTP/1.1\r\n";
    assert!(ask.starts_with(target), "{ask}");
}

#[test]
fn a_task_is_asked_about_without_a_body() {
    let call = UpstreamRequest {
        item: Some("a/b?c".into()),
        ..UpstreamRequest::json(Endpoint::Video, "m-1.5", Vec::new())
    };
    let head = head(Preset::Xai, None, &call);
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
        let head = head(Preset::Ark, None, &call);
        assert!(head.starts_with(&format!("{line} HTTP/1.1\r\n")), "{head}");
    }
}

#[test]
fn the_credential_goes_out_in_the_vendors_header_alone() {
    for (preset, base_url, line) in [
        (Preset::Openai, None, "authorization: Bearer sk-secret"),
        (Preset::Xai, None, "authorization: Bearer sk-secret"),
        (Preset::Ark, None, "authorization: Bearer sk-secret"),
        (
            Preset::Sim,
            Some("http://h/v1"),
            "authorization: Bearer sk-secret",
        ),
        (Preset::Anthropic, None, "x-api-key: sk-secret"),
        (Preset::Gemini, None, "x-goog-api-key: sk-secret"),
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
        Preset::Gemini,
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
    let head = head(Preset::Anthropic, None, &call);
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
fn messages_upstreams_are_told_a_version() {
    for (dialect, told) in [(Dialect::Messages, 1), (Dialect::Chat, 0)] {
        let head = head(Preset::Sim, Some("http://h/v1"), &call(dialect, "m", false));
        assert_eq!(
            head.matches("anthropic-version: 2023-06-01\r\n").count(),
            told
        );
    }
}

#[test]
fn a_credential_that_no_header_can_carry_is_refused_unshown() {
    let address = Address::parse("http://h/v1").unwrap();
    let secret = Secret::new("sk-line\nx-evil: 1");
    let error = HeadTemplate::new(Preset::Sim, &address, Some(&secret)).unwrap_err();
    assert_eq!(error, ChannelError::Credential);
    assert!(!error.to_string().contains("evil"));
}
