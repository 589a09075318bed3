//! Tests of upstreams' error bodies and their meanings.

use super::*;
use crate::failure::Code;

const NAMES: Names<'_> = Names::of_model("gpt-x", "maker/x");

#[test]
fn the_status_decides_unless_the_words_know_better() {
    let plain = br#"{"error":{"message":"gpt-x says no","type":"t","param":"n","code":null}}"#;
    for (status, code, expected_status) in [
        (400, Code::UpstreamRejected, 400),
        (409, Code::UpstreamRejected, 409),
        (413, Code::UpstreamRejected, 413),
        (422, Code::UpstreamRejected, 422),
        (401, Code::UpstreamError, 502),
        (402, Code::UpstreamError, 502),
        (403, Code::UpstreamError, 502),
        (404, Code::UpstreamError, 502),
        (408, Code::UpstreamTimeout, 504),
        (429, Code::UpstreamOverloaded, 503),
        (529, Code::UpstreamOverloaded, 503),
        (499, Code::UpstreamError, 502),
        (500, Code::UpstreamError, 502),
        (503, Code::UpstreamError, 502),
        (504, Code::UpstreamError, 502),
        (302, Code::UpstreamError, 502),
        (204, Code::UpstreamError, 502),
    ] {
        let failure = read_failure(status, plain, NAMES);
        assert_eq!(
            (failure.code, failure.status()),
            (code, expected_status),
            "{status}"
        );
        let shown = failure.message.contains("says no");
        assert_eq!(shown, code == Code::UpstreamRejected, "{status}");
        assert!(!failure.message.contains("gpt-x"));
    }
    for word in ["overloaded_error", "overloaded"] {
        let body = format!(r#"{{"error":{{"type":"{word}"}}}}"#);
        let failure = read_failure(503, body.as_bytes(), NAMES);
        assert_eq!(failure.code, Code::UpstreamOverloaded);
    }
    for words in [
        r#"{"error":{"code":"insufficient_quota"}}"#,
        r#"{"error":{"type":"authentication_error"}}"#,
        r#"[{"error":{"details":[{"reason":"API_KEY_INVALID"}]}}]"#,
        r#"{"error":{"code":"model_not_found","message":"no gpt-x"}}"#,
        r#"{"error":{"message":"The model `gpt-x` does not exist"}}"#,
    ] {
        for status in [400, 429] {
            let failure = read_failure(status, words.as_bytes(), NAMES);
            assert_eq!(failure.code, Code::UpstreamError, "{words}");
        }
    }
}

#[test]
fn an_exceeded_quota_is_a_rate_limit_by_its_status() {
    for (status, error, code) in [
        (
            429,
            r#"{"code":"quota_exceeded"}"#,
            Code::UpstreamOverloaded,
        ),
        (
            429,
            r#"{"code":429,"status":"QUOTA_EXCEEDED"}"#,
            Code::UpstreamOverloaded,
        ),
        (400, r#"{"code":"quota_exceeded"}"#, Code::UpstreamError),
        (403, r#"{"code":"quota_exceeded"}"#, Code::UpstreamError),
        (
            429,
            r#"{"code":"quota_exceeded","type":"insufficient_quota"}"#,
            Code::UpstreamError,
        ),
        (
            429,
            r#"{"code":"quota_exceeded","message":"The model `gpt-x` does not exist"}"#,
            Code::UpstreamError,
        ),
    ] {
        let body = format!(r#"{{"error":{error}}}"#);
        let failure = read_failure(status, body.as_bytes(), NAMES);
        assert_eq!(failure.code, code, "{status} {error}");
    }
}

#[test]
fn the_name_of_an_error_may_be_in_its_head_alone() {
    let named = |status: u16, name: &str| {
        let body = with_error_name(br#"{"message":"no"}"#, name);
        read_failure(status, &body, NAMES).code
    };
    let address = "ServiceQuotaExceededException:http://internal.example/coral/";
    for (status, name, code) in [
        (400, "ValidationException", Code::UpstreamRejected),
        (400, address, Code::UpstreamError),
        (
            400,
            "com.example#IncompleteSignatureException",
            Code::UpstreamError,
        ),
        (403, "InvalidSignatureException", Code::UpstreamError),
        (408, "ModelTimeoutException", Code::UpstreamTimeout),
        (424, "ModelErrorException", Code::UpstreamError),
        (429, "ModelNotReadyException", Code::UpstreamOverloaded),
        (503, "ServiceUnavailableException", Code::UpstreamOverloaded),
    ] {
        assert_eq!(named(status, name), code, "{status} {name}");
    }
    // A name in the body has the same meaning.
    let body = br#"{"__type":"com.example#ServiceQuotaExceededException"}"#;
    assert_eq!(read_failure(400, body, NAMES).code, Code::UpstreamError);
    assert_eq!(with_error_name(b"<html>", "A"), br#"{"__type":"A"}"#);
}

#[test]
fn a_wrong_clock_is_told_from_a_wrong_key() {
    for (message, is_clock) in [
        (
            "Signature expired: 20261117T120000Z is now earlier than 20261117T121000Z (20261117T121500Z - 5 min.)",
            true,
        ),
        (
            "Signature not yet current: 20261117T130000Z is still later than 20261117T121500Z",
            true,
        ),
        (
            "The request signature we calculated does not match the signature you provided.",
            false,
        ),
        (
            "The security token included in the request is expired",
            false,
        ),
    ] {
        let body = serde_json::json!({ "message": message }).to_string();
        assert_eq!(blames_clock(body.as_bytes()), is_clock, "{message}");
    }
}

#[test]
fn a_refusal_keeps_its_cleaned_message_and_param() {
    for (body, message, param) in [
        (
            r#"{"error":{"message":"`gpt-x` wants n < 5, see https://v.com/n","param":"n"}}"#,
            "`maker/x` wants n < 5, see [url]",
            Some("n"),
        ),
        (r#"{"error":"plain"}"#, "plain", None),
        (r#"{"detail":"other"}"#, "other", None),
        (r#"{"message":"short"}"#, "short", None),
        (
            "event: error\ndata: {\"error\":{\"message\":\"late\"}}\n\n",
            "late",
            None,
        ),
        (
            "<html>502</html>",
            "The model's upstream refused this request.",
            None,
        ),
        ("", "The model's upstream refused this request.", None),
        (
            r#"{"error":{"message":""}}"#,
            "The model's upstream refused this request.",
            None,
        ),
        ("[]", "The model's upstream refused this request.", None),
    ] {
        let failure = read_failure(400, body.as_bytes(), NAMES);
        assert_eq!(failure.message, message);
        assert_eq!(failure.param.as_deref(), param);
    }
}

#[test]
fn an_error_in_a_200_is_classified_by_its_words() {
    for (error, code) in [
        (
            r#"{"message":"x","type":"server_error"}"#,
            Code::UpstreamError,
        ),
        (
            r#"{"message":"x","type":"rate_limit_error"}"#,
            Code::UpstreamOverloaded,
        ),
        (r#"{"message":"x","code":429}"#, Code::UpstreamOverloaded),
        (r#"{"message":"x","code":"503"}"#, Code::UpstreamOverloaded),
        (
            r#"{"message":"x","type":"invalid_request_error"}"#,
            Code::UpstreamRejected,
        ),
        (r#"{"message":"x","code":400}"#, Code::UpstreamRejected),
        (
            r#"{"message":"The model `x` does not exist","code":400}"#,
            Code::UpstreamError,
        ),
        (
            r#"{"message":"x","code":"context_length_exceeded"}"#,
            Code::ContextLengthExceeded,
        ),
        (
            r#"{"message":"prompt is too long","type":"invalid_request_error"}"#,
            Code::ContextLengthExceeded,
        ),
        (r#"{"message":"x","code":401}"#, Code::UpstreamError),
        (
            r#"{"message":"x","code":"insufficient_quota"}"#,
            Code::UpstreamError,
        ),
        (r#"{"message":"x","code":504}"#, Code::UpstreamTimeout),
        (
            r#"{"message":"x","code":"too_many_requests"}"#,
            Code::UpstreamOverloaded,
        ),
        (
            r#"{"message":"x","code":"gateway_timeout"}"#,
            Code::UpstreamTimeout,
        ),
        (
            r#"{"message":"x","status":"DEADLINE_EXCEEDED"}"#,
            Code::UpstreamTimeout,
        ),
        (
            r#"{"message":"x","type":"modelTimeoutException"}"#,
            Code::UpstreamTimeout,
        ),
        (
            r#"{"message":"x","type":"throttlingException"}"#,
            Code::UpstreamOverloaded,
        ),
        (
            r#"{"message":"x","type":"validationException"}"#,
            Code::UpstreamRejected,
        ),
        (
            r#"{"message":"x","type":"modelStreamErrorException"}"#,
            Code::UpstreamError,
        ),
        (r#""text""#, Code::UpstreamError),
        ("true", Code::UpstreamError),
    ] {
        let failure = read_event(error.as_bytes(), "maker/x");
        assert_eq!(failure.code, code, "{error}");
    }
    for error in [
        r#"{"message":"x","type":"image_generation_user_error","code":"moderation_blocked"}"#,
        r#"{"message":"x","type":"server_error","code":"content_policy_violation"}"#,
        r#"{"message":"x","status":403,"code":"content_filter"}"#,
        r#"{"message":"x","code":"OutputImageSensitiveContentDetected"}"#,
        r#"{"message":"x","code":"InputTextSensitiveContentDetected.PolicyViolation"}"#,
        r#"{"message":"Rejected by our safety system, host api.v.com","code":400}"#,
    ] {
        let failure = read_event(error.as_bytes(), "maker/x");
        assert_eq!(
            (failure.code, failure.status()),
            (Code::UpstreamRejected, 400)
        );
        let expected = "The model's content policy refused this request.";
        assert_eq!(failure.message, expected, "{error}");
    }
    let failure = read_event(br#"{"message":"host api.v.com broke"}"#, "maker/x");
    assert_eq!(
        failure.cause.as_deref(),
        Some("error in a 200: host api.v.com broke []")
    );
    assert!(!failure.message.contains("broke"));
}
