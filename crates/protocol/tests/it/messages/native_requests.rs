//! Tests of Messages requests on the native path: what is read, refused, and sent to the upstream.

use bytes::Bytes;
use proptest::prelude::*;
use protocol::canon::Opaque;
use protocol::canon::carrier::{self, IdPayload};
use protocol::native::{Head, read_head, write_request};
use protocol::{Code, Dialect, Failure, Family};

fn head(body: &str) -> Result<Head, Failure> {
    read_head(Dialect::Messages, &Bytes::copy_from_slice(body.as_bytes()))
}

/// A request with these additional members.
fn with(members: &str) -> String {
    format!(
        r#"{{"model":"maker/m","max_tokens":64,"messages":[{{"role":"user","content":"Hi"}}]{members}}}"#
    )
}

#[test]
fn a_plain_request_is_read() {
    let head = head(&with("")).unwrap();
    assert_eq!(head.model, "maker/m");
    assert!(!head.stream);
    assert_eq!(head.output_tokens_max, Some(64));
    assert_eq!(head.choices, 1);
    assert!(head.sampling.is_empty());
    assert!((4..=10).contains(&head.input.tokens));
}

#[test]
fn the_system_prompt_and_the_tools_are_counted() {
    let plain = head(&with("")).unwrap().input.tokens;
    for member in [
        r#","system":"You are a very terse assistant indeed.""#,
        r#","system":[{"type":"text","text":"You are a very terse assistant indeed."}]"#,
        r#","tools":[{"name":"get_weather","description":"The weather of a city.","input_schema":{}}]"#,
    ] {
        assert!(
            head(&with(member)).unwrap().input.tokens > plain + 4,
            "{member}"
        );
    }
}

#[test]
fn what_the_contract_refuses_is_refused() {
    use Code::{
        InvalidRequest, RoutingNotSupported, ServiceTierNotSupported, StatefulNotSupported,
    };
    for (body, code, param) in [
        ("", InvalidRequest, None),
        ("[]", InvalidRequest, None),
        ("{", InvalidRequest, None),
        (
            r#"{"max_tokens":1,"messages":[1]}"#,
            InvalidRequest,
            Some("model"),
        ),
        (
            r#"{"model":"","max_tokens":1,"messages":[1]}"#,
            InvalidRequest,
            Some("model"),
        ),
        (
            r#"{"model":"m/x","max_tokens":1}"#,
            InvalidRequest,
            Some("messages"),
        ),
        (
            r#"{"model":"m/x","max_tokens":1,"messages":[]}"#,
            InvalidRequest,
            Some("messages"),
        ),
        (
            r#"{"model":"m/x","max_tokens":1,"messages":"Hi"}"#,
            InvalidRequest,
            Some("messages"),
        ),
        (
            r#"{"model":"m/x","messages":[1]}"#,
            InvalidRequest,
            Some("max_tokens"),
        ),
        (
            r#"{"model":"m/x","max_tokens":null,"messages":[1]}"#,
            InvalidRequest,
            Some("max_tokens"),
        ),
        (
            r#"{"model":"m/x","max_tokens":"9","messages":[1]}"#,
            InvalidRequest,
            Some("max_tokens"),
        ),
        (
            r#"{"model":"m/x","max_tokens":1.5,"messages":[1]}"#,
            InvalidRequest,
            Some("max_tokens"),
        ),
        (
            r#"{"model":"m/x","max_tokens":-1,"messages":[1]}"#,
            InvalidRequest,
            Some("max_tokens"),
        ),
        (&with(r#","model":"m/y""#), InvalidRequest, Some("model")),
        (&with(r#","stream":"yes""#), InvalidRequest, Some("stream")),
        (
            &with(r#","temperature":"hot""#),
            InvalidRequest,
            Some("temperature"),
        ),
        (
            &with(r#","provider":{}"#),
            RoutingNotSupported,
            Some("provider"),
        ),
        (
            &with(r#","service_tier":"priority""#),
            ServiceTierNotSupported,
            Some("service_tier"),
        ),
        (
            &with(r#","speed":"fast""#),
            ServiceTierNotSupported,
            Some("speed"),
        ),
        (
            &with(r#","thread":{"type":"create"}"#),
            StatefulNotSupported,
            Some("thread"),
        ),
    ] {
        let failure = head(body).expect_err(body);
        assert_eq!(failure.code, code, "{body}");
        assert_eq!(failure.status(), 400, "{body}");
        assert_eq!(failure.param.as_deref(), param, "{body}");
    }
}

/// Neither has a price on the model's price card, and a key may be limited to certain models.
#[test]
fn only_the_service_chooses_regions_and_other_models() {
    use Code::{RoutingNotSupported, UnsupportedParameter};
    for (body, code, param) in [
        (
            with(r#","inference_geo":"us""#),
            RoutingNotSupported,
            Some("inference_geo"),
        ),
        (
            with(r#","inference_geo":["global"]"#),
            RoutingNotSupported,
            Some("inference_geo"),
        ),
        (
            with(r#","tools":[{"type":"advisor_20260301","name":"advisor","model":"big"}]"#),
            UnsupportedParameter,
            Some("tools"),
        ),
        (
            with(r#","tools":[{"type":"\u0061dvisor_20270101"}]"#),
            UnsupportedParameter,
            Some("tools"),
        ),
        (
            with(r#","tools":[{"name":"f","input_schema":{}},{"type":"x","mod\u0065l":"big"}]"#),
            UnsupportedParameter,
            Some("tools"),
        ),
    ] {
        let failure = head(&body).expect_err(&body);
        assert_eq!(failure.code, code, "{body}");
        assert_eq!(failure.status(), 400, "{body}");
        assert_eq!(failure.param.as_deref(), param, "{body}");
    }
}

#[test]
fn a_thread_is_refused_in_the_words_that_the_tool_runner_recovers_from() {
    for thread in [
        r#","thread":{"type":"create"}"#,
        r#","thread":{"type":"continue","previous_message_id":"msg_1"}"#,
    ] {
        let failure = head(&with(thread)).unwrap_err();
        let body = failure.write(Family::Messages, "req_1");
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["type"], "error");
        assert_eq!(body["error"]["type"], "invalid_request_error");
        assert_eq!(body["error"]["code"], "stateful_not_supported");
        let details = r#"{"error_code":"thread_unsupported_request","unsupported":["thread"]}"#;
        assert_eq!(body["error"]["details"].to_string(), details);
    }
}

#[test]
fn nulls_and_free_tiers_pass() {
    for member in [
        r#","thread":null,"service_tier":null,"speed":null,"provider":null,"temperature":null"#,
        r#","service_tier":"auto""#,
        r#","service_tier":"standard_only","speed":"standard""#,
        r#","container":"c_1","mcp_servers":[],"cache_control":{"type":"ephemeral"}"#,
        r#","inference_geo":null"#,
        r#","inference_geo":"global","tools":[{"name":"f","model":null,"input_schema":{"properties":{"model":{"type":"string"}}}}]"#,
    ] {
        assert_eq!(
            head(&with(member)).map(|head| head.sampling),
            Ok(vec![]),
            "{member}"
        );
    }
    assert_eq!(
        head(r#"{"model":"m/x","max_tokens":0,"messages":[1]}"#)
            .unwrap()
            .output_tokens_max,
        None
    );
}

#[test]
fn sampling_that_is_not_the_default_is_recorded() {
    for (members, sampling) in [
        (r#","temperature":1,"top_p":1.0"#, vec![]),
        (r#","temperature":1.0,"top_k":null"#, vec![]),
        (r#","temperature":0.5"#, vec!["temperature"]),
        (
            r#","top_k":5,"top_p":0.9,"temperature":0"#,
            vec!["temperature", "top_p", "top_k"],
        ),
    ] {
        assert_eq!(
            head(&with(members)).unwrap().sampling,
            sampling,
            "{members}"
        );
    }
}

#[test]
fn the_upstream_receives_the_same_bytes_except_for_the_model() {
    let body = Bytes::from(
        r#"{ "stream":true, "mod\u0065l" : "maker/m","max_tokens":64 ,"thinking":{"type":"adaptive"},
        "messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"a+/="}]}]}"#,
    );
    let head = read_head(Dialect::Messages, &body).unwrap();
    let sent = write_request(&body, &head, "up");
    let expected = String::from_utf8(body.to_vec())
        .unwrap()
        .replace("maker/m", "up");
    assert_eq!(sent, expected.as_bytes());
}

#[test]
fn thoughts_of_other_vendors_are_not_sent_to_this_one() {
    let foreign = Opaque {
        origin: Dialect::Responses,
        model: "maker/other".into(),
        text: "gAAAA".into(),
    };
    let thought = |signature: &str| {
        format!(r#"{{"type":"thinking", "signature":"{signature}","thinking":"Hm."}}"#)
    };
    let (theirs, own) = (thought(&foreign.wrap()), thought("Z3cxfAAA"));
    let text = r#"{"type":"text","text":"\"Z3cxf"}"#;
    let body = |first: &str, second: &str| {
        format!(
            r#"{{"messages":[ {{"role":"user","content":"\"Z3cxf"}},{{"content":[{first}],"role":"assistant"}} ,{{"content": [{second}]}}],"model":"m/x","max_tokens":1}}"#
        )
    };
    let sent = |body: &str| {
        let body = Bytes::copy_from_slice(body.as_bytes());
        let head = read_head(Dialect::Messages, &body).unwrap();
        let sent = write_request(&body, &head, "m/x");
        String::from_utf8(sent.to_vec()).unwrap()
    };
    let with = body(
        &format!("{theirs} , {text}"),
        &format!("{own}, {text} ,{theirs}"),
    );
    let without = body(text, &format!("{own}, {text}"));
    assert_eq!(sent(&with), without);
    let untouched = body(&format!("{own} , {text}"), text);
    assert_eq!(sent(&untouched), untouched);
    // Upstreams refuse an empty message.
    let lone = body(&format!("{theirs},{theirs}"), text);
    let gone = body(text, text).replace(
        &format!(r#",{{"content":[{text}],"role":"assistant"}} ,"#),
        ",",
    );
    assert_eq!(sent(&lone), gone);
    // An id next to a thought may carry data, too.
    let carried = IdPayload {
        opaque: Some(foreign),
        ..IdPayload::default()
    };
    let call = |id: &str| format!(r#"{{"type":"tool_use","id":"{id}","name":"f","input":{{}}}}"#);
    let id = carrier::encode("call_1", &carried);
    let loaded = call(&id);
    let with = body(&format!("{theirs},{loaded}"), text);
    assert_eq!(sent(&with), body(&call("call_1"), text));
    // The id of a thought may carry data as well.
    let named = theirs.replacen('{', &format!(r#"{{"id":"{id}","#), 1);
    let with = body(&format!("{named},{loaded}"), text);
    assert_eq!(sent(&with), body(&call("call_1"), text));
}

#[test]
fn thoughts_without_a_signature_are_not_sent() {
    let text = r#"{"type":"text","text":"\"thinking\""}"#;
    let call = r#"{"type":"tool_use","id":"call_1","name":"f","input":{"signature":""}}"#;
    let body = |role: &str, blocks: &[&str]| {
        format!(
            r#"{{"messages":[{{"role":"user","content":"Hi"}},{{"role":"{role}","content":[{}]}},{{"role":"user","content":"So?"}}],"model":"m/x","max_tokens":1}}"#,
            blocks.join(",")
        )
    };
    let sent = |body: &str| {
        let body = Bytes::copy_from_slice(body.as_bytes());
        let head = read_head(Dialect::Messages, &body).unwrap();
        let sent = write_request(&body, &head, "m/x");
        String::from_utf8(sent.to_vec()).unwrap()
    };
    for (signature, is_sent) in [
        ("", false),
        (r#","signature":"""#, false),
        (r#", "signature" : """#, false),
        (r#","signature":null"#, false),
        (r#","signature":"EqQB""#, true),
        // A value of a wrong type is passed on to the upstream.
        (r#","signature":7"#, true),
    ] {
        let thought = &*format!(r#"{{"type":"thinking","thinking":"Hm."{signature}}}"#);
        let with = body("assistant", &[thought, text, thought, call]);
        let without = if is_sent {
            with.clone()
        } else {
            body("assistant", &[text, call])
        };
        assert_eq!(sent(&with), without, "{signature}");
        // Upstreams refuse an empty message.
        let lone = body("assistant", &[thought]);
        let gone = r#"{"messages":[{"role":"user","content":"Hi"},{"role":"user","content":"So?"}],"model":"m/x","max_tokens":1}"#;
        assert_eq!(
            sent(&lone),
            if is_sent { &*lone } else { gone },
            "{signature}"
        );
        // An engine that signs nothing may need the thoughts of the answer that it has not finished.
        let results = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1"},{"type":"text","text":"Go on."}]}"#;
        let unfinished = |blocks: &[&str], thinking: &str| {
            let whole = body("assistant", blocks);
            let whole = whole.replace(r#"{"role":"user","content":"So?"}"#, results);
            whole.replace(r#""max_tokens":1"#, &format!(r#""max_tokens":1{thinking}"#))
        };
        for thinking in [
            r#","thinking":{"type":"enabled","budget_tokens":2000}"#,
            r#","thinking":{"type":"adaptive"}"#,
        ] {
            let open = unfinished(&[thought, call], thinking);
            assert_eq!(sent(&open), open, "{signature}");
        }
        // A request without thinking needs no thoughts, and a vendor refuses those without a signature.
        for thinking in [
            "",
            r#","thinking":null"#,
            r#","thinking":{"type":"disabled"}"#,
        ] {
            let expected = if is_sent {
                unfinished(&[thought, call], thinking)
            } else {
                unfinished(&[call], thinking)
            };
            let open = unfinished(&[thought, call], thinking);
            assert_eq!(sent(&open), expected, "{signature} {thinking}");
        }
        // Thoughts of users are mistakes, which the upstream explains.
        let of_user = body("user", &[thought, text]);
        assert_eq!(sent(&of_user), of_user, "{signature}");
    }
    let redacted = r#"{"type":"redacted_thinking","data":"EqQB"}"#;
    let whole = body("assistant", &[redacted, text, call]);
    assert_eq!(sent(&whole), whole);
}

proptest! {
    #[test]
    fn no_text_like_json_makes_it_panic(
        text in "[{}\\[\\]:,\"\\\\ 0-9a-z]{0,40}",
        at in 0_usize..120,
    ) {
        let mut body = with(r#","stream":true,"thread":null"#);
        body.insert_str(at.min(body.len()), &text);
        let body = Bytes::from(body);
        if let Ok(head) = read_head(Dialect::Messages, &body) {
            write_request(&body, &head, "up");
        }
    }
}
