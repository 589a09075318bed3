use super::*;
use http::Request;

/// The time at which the vendor's own library made the signatures in these tests.
const NOW: u64 = 1_767_323_045;
const BODY: &[u8] = br#"{"messages":[{"role":"user","content":[{"text":"Hi"}]}]}"#;
const RUNTIME: &str = "bedrock-runtime.us-east-1.amazonaws.com";
const MANTLE: &str = "bedrock-mantle.us-east-1.api.aws";
const COLON: &str = "/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse";

fn settings(session_token: Option<&str>) -> Settings {
    Settings {
        access_keys: vec![AccessKey {
            id: "AKIDEXAMPLE".to_owned(),
            secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".to_owned(),
            session_token: session_token.map(str::to_owned),
            region: "us-east-1".to_owned(),
        }],
        ..Settings::default()
    }
}

fn parts(host: &str, path: &str, service: &str, token: Option<&str>, signature: &str) -> Parts {
    let scope = format!("AKIDEXAMPLE/20260102/us-east-1/{service}/aws4_request");
    let more = if token.is_some() {
        ";x-amz-security-token"
    } else {
        ""
    };
    let signed = format!("content-type;host;x-amz-date{more}");
    let mut request = Request::post(path)
        .header("host", host)
        .header("content-type", "application/json")
        .header("x-amz-date", "20260102T030405Z")
        .header(
            "authorization",
            format!(
                "{ALGORITHM} Credential={scope}, SignedHeaders={signed}, Signature={signature}"
            ),
        );
    if let Some(token) = token {
        request = request.header("x-amz-security-token", token);
    }
    request.body(()).unwrap().into_parts().0
}

const ARN: &str = "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Aapplication-inference-profile\
                   %2Fabcdef123456/converse";
const RAW_COLON: &str = "/model/us.anthropic.claude-sonnet-4-5-20250929-v1:0/converse";

#[test]
fn signatures_of_the_vendors_library_are_accepted() {
    for (host, path, service, token, signature) in [
        (
            RUNTIME,
            COLON,
            "bedrock",
            None,
            "65844f67b96ec065771499b63133c081f5aa3e77ae7b477abc8e5c1f1f8bd3ff",
        ),
        (
            RUNTIME,
            RAW_COLON,
            "bedrock",
            None,
            "6eb8f78325c23894efd83bdbc50ee74ed2f980b145bb4c53d785d819cea86e23",
        ),
        (
            RUNTIME,
            ARN,
            "bedrock",
            Some("SESSIONTOKEN"),
            "1f858dd7394d35da4ef13430e13e96ade0eba6f4906745b89608b4003eeb1d31",
        ),
        (
            MANTLE,
            "/anthropic/v1/messages",
            "bedrock-mantle",
            None,
            "bbdf3338432aca61347bccbcd3ee2330877efe732aa0c5937d3b784b79375ae0",
        ),
    ] {
        let parts = parts(host, path, service, token, signature);
        let checked = check_signature(&parts, BODY, &settings(token), NOW).unwrap();
        let headers = checked.expect("it was signed").headers;
        assert_eq!(headers["authorization"], "Bearer AKIDEXAMPLE", "{path}");
    }
}

#[test]
fn a_change_of_what_was_signed_is_noticed() {
    let signature = "65844f67b96ec065771499b63133c081f5aa3e77ae7b477abc8e5c1f1f8bd3ff";
    let good = || parts(RUNTIME, COLON, "bedrock", None, signature);
    let refusal_of = |parts: &Parts, body: &[u8], now: u64, token: Option<&str>| {
        let refused = check_signature(parts, body, &settings(token), now).unwrap_err();
        let (_, name) = refused.headers.first().unwrap();
        let name = name.to_str().unwrap().split(':').next().unwrap().to_owned();
        (refused.status.as_u16(), name)
    };
    let invalid = (403, "InvalidSignatureException".to_owned());
    assert_eq!(refusal_of(&good(), b"{}", NOW, None), invalid);
    assert_eq!(refusal_of(&good(), BODY, NOW + 400, None), invalid);
    assert_eq!(refusal_of(&good(), BODY, NOW - 400, None), invalid);
    let other = parts(RUNTIME, RAW_COLON, "bedrock", None, signature);
    assert_eq!(refusal_of(&other, BODY, NOW, None), invalid);
    let mut other = good();
    other.headers.insert("host", HeaderValue::from_static("x"));
    assert_eq!(refusal_of(&other, BODY, NOW, None), invalid);
    let other = parts(RUNTIME, COLON, "s3", None, signature);
    assert_eq!(refusal_of(&other, BODY, NOW, None), invalid);
    let expired = (403, "ExpiredTokenException".to_owned());
    assert_eq!(
        refusal_of(&good(), BODY, NOW, Some("SESSIONTOKEN")),
        expired
    );
    let mut other = good();
    let half = HeaderValue::from_static("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260102");
    other.headers.insert("authorization", half);
    let incomplete = (400, "IncompleteSignatureException".to_owned());
    assert_eq!(refusal_of(&other, BODY, NOW, None), incomplete);
    let mut unsigned = good();
    unsigned
        .headers
        .insert("authorization", HeaderValue::from_static("Bearer k"));
    assert!(matches!(
        check_signature(&unsigned, BODY, &settings(None), NOW),
        Ok(None)
    ));
}
