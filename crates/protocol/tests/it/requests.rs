//! Tests of chat requests: what is read, refused, and sent to the upstream.

use bytes::Bytes;
use protocol::canon::carrier::{self, IdPayload};
use protocol::canon::{Dropped, Opaque};
use protocol::native::{Head, read_head, without_stream_options, write_request};
use protocol::{Code, Dialect, Failure, Tool};

pub(crate) fn head(body: &str) -> Result<Head, Failure> {
    read_head(Dialect::Chat, &Bytes::copy_from_slice(body.as_bytes()))
}

/// The request that the upstream `up` receives for `body`.
pub(crate) fn sent(body: &str) -> String {
    let body = Bytes::copy_from_slice(body.as_bytes());
    let head = read_head(Dialect::Chat, &body).unwrap();
    let sent = write_request(&body, &head, "up");
    String::from_utf8(sent.to_vec()).unwrap()
}

/// A request with these additional members.
pub(crate) fn with(members: &str) -> String {
    format!(r#"{{"model":"maker/m","messages":[{{"role":"user","content":"Hi"}}]{members}}}"#)
}

#[test]
fn a_plain_request_is_read() {
    let head = head(&with("")).unwrap();
    assert_eq!(head.model, "maker/m");
    assert!(!head.stream);
    assert!(!head.include_usage);
    assert_eq!(head.output_tokens_max, None);
    assert_eq!(head.choices, 1);
    assert!(
        (4..=10).contains(&head.input.tokens),
        "{}",
        head.input.tokens
    );
}

#[test]
fn loads_of_other_models_stay_here() {
    let foreign = Opaque {
        origin: Dialect::Messages,
        model: "maker/other".into(),
        text: "x".into(),
    };
    let own = Opaque {
        origin: Dialect::Chat,
        model: "maker/m".into(),
        text: "sig".into(),
    };
    let carried = IdPayload {
        opaque: Some(foreign),
        ..IdPayload::default()
    };
    let body = |id: &str, signature: &str| {
        format!(
            r#"{{"model":"maker/m","messages":[{{"role":"assistant","tool_calls":[{{"id":"{id}","extra_content":{{"google":{{"thought_signature":"{signature}"}}}}}}]}},{{"role":"tool","tool_call_id":"{id}","content":"1"}}]}}"#
        )
    };
    let written = sent(&body(&carrier::encode("call_1", &carried), &own.wrap()));
    let expected = body("call_1", "sig").replace("\"maker/m\"", "\"up\"");
    assert_eq!(written, expected);
}

/// Checks that each body is refused with this code and names this member.
fn assert_refused(cases: &[(&str, Code, Option<&str>)]) {
    for (body, code, param) in cases {
        let failure = head(body).expect_err(body);
        assert_eq!(failure.code, *code, "{body}");
        assert_eq!(failure.status(), 400, "{body}");
        assert_eq!(failure.param.as_deref(), *param, "{body}");
        assert!(failure.message.len() < 400, "{}", failure.message);
    }
}

#[test]
fn bodies_that_are_not_requests_are_refused() {
    use Code::InvalidRequest;
    let long = format!(r#"{{"model":"m/{}","messages":[1]}}"#, "x".repeat(255));
    assert_refused(&[
        ("", InvalidRequest, None),
        (" \n", InvalidRequest, None),
        ("[]", InvalidRequest, None),
        ("null", InvalidRequest, None),
        ("{", InvalidRequest, None),
        ("{}", InvalidRequest, Some("model")),
        (
            r#"{"model":null,"messages":[1]}"#,
            InvalidRequest,
            Some("model"),
        ),
        (
            r#"{"model":1,"messages":[1]}"#,
            InvalidRequest,
            Some("model"),
        ),
        (
            r#"{"model":"","messages":[1]}"#,
            InvalidRequest,
            Some("model"),
        ),
        (
            r#"{"model":"m/../x","messages":[1]}"#,
            InvalidRequest,
            Some("model"),
        ),
        (
            r#"{"model":"m//x","messages":[1]}"#,
            InvalidRequest,
            Some("model"),
        ),
        (
            r#"{"model":"\ud800","messages":[1]}"#,
            InvalidRequest,
            Some("model"),
        ),
        (&long, InvalidRequest, Some("model")),
        (
            r#"{"Model":"m/x","messages":[1]}"#,
            InvalidRequest,
            Some("model"),
        ),
        (r#"{"model":"m/x"}"#, InvalidRequest, Some("messages")),
        (
            r#"{"model":"m/x","messages":null}"#,
            InvalidRequest,
            Some("messages"),
        ),
        (
            r#"{"model":"m/x","messages":[ ]}"#,
            InvalidRequest,
            Some("messages"),
        ),
        (
            r#"{"model":"m/x","messages":{}}"#,
            InvalidRequest,
            Some("messages"),
        ),
        (
            r#"{"model":"m/x","messages":"Hi"}"#,
            InvalidRequest,
            Some("messages"),
        ),
        (&format!("\u{feff}{}", with("")), InvalidRequest, None),
        (&format!("{} x", with("")), InvalidRequest, None),
        (&with(r#","\ud800":1"#), InvalidRequest, None),
    ]);
}

#[test]
fn ambiguous_bodies_are_refused() {
    use Code::InvalidRequest;
    assert_refused(&[
        (
            &with(r#","model":"maker/other""#),
            InvalidRequest,
            Some("model"),
        ),
        (
            &with(r#","mod\u0065l":"maker/other""#),
            InvalidRequest,
            Some("model"),
        ),
        (
            &with(r#","MODEL":"maker/other""#),
            InvalidRequest,
            Some("MODEL"),
        ),
        (&with(r#","x":1,"X":2"#), InvalidRequest, Some("X")),
        (&with(r#","Stream":true"#), InvalidRequest, Some("stream")),
        (&with(r#","Provider":{}"#), InvalidRequest, Some("provider")),
        (
            &with(
                r#","stream":true,"stream_options":{"include_usage":true,"include_usage":false}"#,
            ),
            InvalidRequest,
            Some("stream_options"),
        ),
    ]);
}

#[test]
fn depth_and_width_are_bounded() {
    let keys: Vec<String> = (0..10_001).map(|key| format!("\"k{key}\":1")).collect();
    let bomb = |depth: usize| {
        with(&format!(
            r#","x":{}{}"#,
            "[".repeat(depth),
            "]".repeat(depth)
        ))
    };
    assert_refused(&[
        (&bomb(128), Code::InvalidRequest, None),
        (&bomb(1_000_000), Code::InvalidRequest, None),
        (
            &with(&format!(r#","x":{{{}}}"#, keys.join(","))),
            Code::InvalidRequest,
            None,
        ),
        (
            &with(&format!(",{}", keys.join(","))),
            Code::InvalidRequest,
            None,
        ),
    ]);
    assert!(head(&bomb(127)).is_ok());
    assert!(head(&with(&format!(",{}", keys[3..].join(",")))).is_ok());
}

#[test]
fn routes_tiers_and_state_are_refused() {
    use Code::{
        InvalidRequest, RoutingNotSupported, ServiceTierNotSupported, StatefulNotSupported,
    };
    assert_refused(&[
        (
            &with(r#","deferred":true"#),
            StatefulNotSupported,
            Some("deferred"),
        ),
        (
            &with(r#","deferred":"yes""#),
            InvalidRequest,
            Some("deferred"),
        ),
        (
            &with(r#","store":true"#),
            StatefulNotSupported,
            Some("store"),
        ),
        (
            &with(r#","provider":{"only":["a"]}"#),
            RoutingNotSupported,
            Some("provider"),
        ),
        (
            &with(r#","routing":1"#),
            RoutingNotSupported,
            Some("routing"),
        ),
        (&with(r#","route":"x""#), RoutingNotSupported, Some("route")),
        (
            &with(r#","routes":[]"#),
            RoutingNotSupported,
            Some("routes"),
        ),
        (
            &with(r#","models":["a"]"#),
            RoutingNotSupported,
            Some("models"),
        ),
        (
            &with(r#","fallbacks":[]"#),
            RoutingNotSupported,
            Some("fallbacks"),
        ),
        (
            &with(r#","service_tier":"priority""#),
            ServiceTierNotSupported,
            Some("service_tier"),
        ),
        (
            &with(r#","service_tier":{}"#),
            ServiceTierNotSupported,
            Some("service_tier"),
        ),
    ]);
}

#[test]
fn members_that_are_read_must_have_the_right_type() {
    use Code::InvalidRequest;
    assert_refused(&[
        (&with(r#","stream":"true""#), InvalidRequest, Some("stream")),
        (&with(r#","stream":1"#), InvalidRequest, Some("stream")),
        (&with(r#","n":"2""#), InvalidRequest, Some("n")),
        (&with(r#","n":1.5"#), InvalidRequest, Some("n")),
        (
            &with(r#","max_tokens":"9""#),
            InvalidRequest,
            Some("max_tokens"),
        ),
        (
            &with(r#","max_tokens":1e3"#),
            InvalidRequest,
            Some("max_tokens"),
        ),
        (
            &with(r#","max_completion_tokens":[]"#),
            InvalidRequest,
            Some("max_completion_tokens"),
        ),
        (
            &with(r#","stream":true,"stream_options":7"#),
            InvalidRequest,
            Some("stream_options"),
        ),
        (
            &with(r#","stream":true,"stream_options":{"include_usage":"yes"}"#),
            InvalidRequest,
            Some("stream_options.include_usage"),
        ),
    ]);
}

#[test]
fn bytes_that_are_not_text_are_refused() {
    for body in [
        &b"{\"model\":\"m/x\",\"messages\":[1],\"x\":\"\xff\"}"[..],
        b"{\"model\":\"m/x\",\"messages\":[1],\"x\":\"\xed\xa0\x80\"}",
        b"\xff\xfe{\0}\0",
        b"{\"model\":\"m/x\",\"messages\":[1]}\xc3",
    ] {
        let failure = read_head(Dialect::Chat, &Bytes::from_static(body)).unwrap_err();
        assert_eq!(failure.code, Code::InvalidRequest);
    }
}

#[test]
fn an_explicit_null_is_absent() {
    let nulls = with(
        r#","stream":null,"stream_options":null,"n":null,"max_tokens":null,"store":null,
        "max_completion_tokens":null,"deferred":null,"provider":null,"routing":null,"route":null,
        "routes":null,"models":null,"fallbacks":null,"service_tier":null,"tools":null"#,
    );
    let head = head(&nulls).unwrap();
    assert!(!head.stream);
    assert_eq!(head.choices, 1);
    assert_eq!(head.output_tokens_max, None);
    // Names that only gateways know are not sent to upstreams, which may refuse them.
    let kept = with(
        r#","stream":null,"stream_options":null,"n":null,"max_tokens":null,"store":null,
        "max_completion_tokens":null,"service_tier":null,"tools":null"#,
    );
    assert_eq!(sent(&nulls), kept.replace("\"maker/m\"", "\"up\""));
}

#[test]
fn values_that_the_upstream_checks_are_accepted() {
    for members in [
        r#","service_tier":"auto""#,
        r#","service_tier":"default""#,
        r#","service_tier":"standard""#,
        r#","service_tier":"standard_only""#,
        r#","deferred":false,"store":false"#,
        r#","temperature":1e999,"seed":-12345678901234567890123"#,
        r#","user":"\ud800 alone""#,
        r#","stream":false,"stream_options":{"include_usage":"?"}"#,
        r#","stream_options":7"#,
        r#","metadata":{"model":"x","model":"y","provider":1}"#,
    ] {
        let body = with(members);
        assert_eq!(sent(&body), body.replacen("maker/m", "up", 1), "{members}");
    }
    let odd = r#"{"model":"maker/m","messages":[null,1,{"role":7}]}"#;
    assert!(head(odd).is_ok());
}

#[test]
fn numbers_out_of_range_are_bounds_not_errors() {
    for (members, output_tokens_max, choices) in [
        (r#","n":0"#, None, 1),
        (r#","n":-1"#, None, 1),
        (r#","n":3"#, None, 3),
        (r#","n":99999999999999999999999"#, None, u32::MAX),
        (r#","max_tokens":-5"#, None, 1),
        (r#","max_tokens":0"#, None, 1),
        (r#","max_tokens":100"#, Some(100), 1),
        (r#","max_tokens":100.0"#, Some(100), 1),
        (
            r#","max_tokens":100,"max_completion_tokens":200"#,
            Some(200),
            1,
        ),
        (
            r#","max_tokens":300,"max_completion_tokens":200"#,
            Some(300),
            1,
        ),
        (
            r#","max_tokens":-1,"max_completion_tokens":200"#,
            Some(200),
            1,
        ),
        (
            r#","max_completion_tokens":99999999999999999999"#,
            Some(u64::MAX),
            1,
        ),
    ] {
        let head = head(&with(members)).unwrap();
        assert_eq!(head.output_tokens_max, output_tokens_max, "{members}");
        assert_eq!(head.choices, choices, "{members}");
    }
}

#[test]
fn usage_is_always_asked_for_and_the_callers_wish_remembered() {
    for (options, changed, asked) in [
        (
            r#","stream_options":null"#,
            r#","stream_options":{"include_usage":true}"#,
            false,
        ),
        (
            r#","stream_options":{}"#,
            r#","stream_options":{"include_usage":true}"#,
            false,
        ),
        (
            r#","stream_options": { }"#,
            r#","stream_options": {"include_usage":true }"#,
            false,
        ),
        (
            r#","stream_options":{"include_usage":true}"#,
            r#","stream_options":{"include_usage":true}"#,
            true,
        ),
        (
            r#","stream_options":{"include_usage": false}"#,
            r#","stream_options":{"include_usage": true}"#,
            false,
        ),
        (
            r#","stream_options":{"include_usage":null,"x":1}"#,
            r#","stream_options":{"include_usage":true,"x":1}"#,
            false,
        ),
        (
            r#","stream_options":{"include_obfuscation":false}"#,
            r#","stream_options":{"include_usage":true,"include_obfuscation":false}"#,
            false,
        ),
        (
            r#","stream_options":{"includ\u0065_usage":false}"#,
            r#","stream_options":{"includ\u0065_usage":true}"#,
            false,
        ),
    ] {
        let body = with(&format!(r#","stream":true{options}"#));
        let expected = with(&format!(r#","stream":true{changed}"#)).replace("maker/m", "up");
        assert_eq!(sent(&body), expected);
        assert_eq!(head(&body).unwrap().include_usage, asked, "{options}");
    }
    let body = with(r#","stream":true"#);
    let expected = body.replace("maker/m", "up").replacen(
        '{',
        r#"{"stream_options":{"include_usage":true},"#,
        1,
    );
    assert_eq!(sent(&body), expected);
}

/// The upstream receives neither our own `stream_options` nor the client's, at any position in the
/// request and with any other members removed.
#[test]
fn an_upstream_that_refuses_it_is_not_asked_for_usage() {
    let plain = r#""model":"maker/m","messages":[1],"stream":true"#;
    for (before, behind, names) in [
        ("", "", None),
        ("", r#","stream_options":{}"#, None),
        ("", r#","stream_options":null"#, None),
        ("", r#","stream_options":{"include_usage":true}"#, None),
        (r#""stream_options":{"include_usage":false},"#, "", None),
        (
            r#""stream_options":{"include_obfuscation":false},"provider":null,"#,
            "",
            None,
        ),
        (
            r#""provider":null,"stream_options":{"include_usage":true},"#,
            r#","models":null"#,
            None,
        ),
        (
            "",
            r#","stream_options":{"every":5,"include_usage":true} "#,
            Some("stream_options.every"),
        ),
    ] {
        let text = format!("{{{before}{plain}{behind}}}");
        let body = Bytes::copy_from_slice(text.as_bytes());
        let head = read_head(Dialect::Chat, &body).unwrap();
        let mut dropped = Dropped::new(Dialect::Chat);
        let (body, head) = without_stream_options(&body, &head, &mut dropped).unwrap();
        let sent = write_request(&body, &head, "up");
        let sent = str::from_utf8(&sent).unwrap();
        let expected = format!("{{{plain}}}").replace("maker/m", "up");
        assert_eq!(sent.replace(' ', ""), expected, "{text}");
        assert_eq!(dropped.header().as_deref(), names, "{text}");
    }
}

#[test]
fn the_model_is_replaced_however_it_is_written() {
    for model in [r#""maker/m""#, r#""mak\u0065r\/m""#] {
        let body = format!(r#"{{ "messages" : [1] , "model" : {model} }}"#);
        assert_eq!(head(&body).unwrap().model, "maker/m");
        assert_eq!(sent(&body), r#"{ "messages" : [1] , "model" : "up" }"#);
    }
    let body = Bytes::from(with(""));
    let head = read_head(Dialect::Chat, &body).unwrap();
    let sent = write_request(&body, &head, "a\"b");
    assert!(sent.starts_with(br#"{"model":"a\"b","messages""#));
}

#[test]
fn a_generate_call_is_not_read_without_its_path() {
    let body = Bytes::from(with(""));
    let failure = read_head(Dialect::Generate, &body).unwrap_err();
    assert_eq!(failure.code, Code::NotFound);
}

/// Vendors that are routers choose models and tools by these members. Nothing in the members has a price
/// here.
#[test]
fn the_options_of_other_routers_choose_nothing() {
    for (members, param) in [
        (r#","preset":"high""#, "preset"),
        (
            r#","providerOptions":{"gateway":{"order":["x"]}}"#,
            "providerOptions",
        ),
    ] {
        let failure = head(&with(members)).unwrap_err();
        assert_eq!(failure.code, Code::RoutingNotSupported, "{members}");
        assert_eq!(failure.param.as_deref(), Some(param), "{members}");
    }
    assert!(head(&with(r#","preset":null,"providerOptions":null"#)).is_ok());
    for (members, searches, is_unknown) in [
        (r#","plugins":[{"id":"web"}]"#, false, true),
        (r#","plugins":[]"#, false, false),
        (r#","compound_custom":{}"#, false, true),
        (r#","enable_search":true"#, true, false),
        (r#","enable_search":false"#, false, false),
    ] {
        let tools = head(&with(members)).unwrap().tools;
        assert_eq!(tools.has_unknown(), is_unknown, "{members}");
        let found = tools.iter().any(|tool| tool == Tool::WebSearch);
        assert_eq!(found, searches, "{members}");
    }
}
