//! Tests of requests on the native path: what is read, refused, and sent to the upstream.

use bytes::Bytes;
use proptest::prelude::*;
use protocol::canon::Opaque;
use protocol::canon::carrier::{self, IdPayload};
use protocol::native::{Head, read_head, write_request};
use protocol::{Code, Dialect, Failure, Tool};

fn head(body: &str) -> Result<Head, Failure> {
    read_head(Dialect::Responses, &Bytes::copy_from_slice(body.as_bytes()))
}

fn sent(body: &str) -> String {
    let body = Bytes::copy_from_slice(body.as_bytes());
    let head = read_head(Dialect::Responses, &body).unwrap();
    let sent = write_request(&body, &head, "up");
    String::from_utf8(sent.to_vec()).unwrap()
}

/// A request with these additional members.
fn with(members: &str) -> String {
    format!(r#"{{"model":"maker/m","input":"Hi there"{members}}}"#)
}

#[test]
fn a_plain_request_is_read() {
    let head = head(&with(r#","stream":true,"max_output_tokens":64"#)).unwrap();
    assert_eq!(head.model, "maker/m");
    assert!(head.stream && head.include_usage);
    assert_eq!(head.output_tokens_max, Some(64));
    assert_eq!(head.choices, 1);
    assert!((4..=10).contains(&head.input.tokens), "{head:?}");
}

/// Checks that each body is refused with this code and names this member.
fn assert_refused(code: Code, cases: &[(String, Option<&str>)]) {
    for (body, param) in cases {
        let failure = head(body).expect_err(body);
        let found = (failure.code, failure.param.as_deref());
        assert_eq!(found, (code, *param), "{body}");
        assert_eq!(failure.status(), 400);
    }
}

#[test]
fn bodies_that_are_not_requests_are_refused() {
    let own = str::to_owned;
    assert_refused(
        Code::InvalidRequest,
        &[
            (own(""), None),
            (own("[]"), None),
            (own(r#"{"input":"a"}"#), Some("model")),
            (own(r#"{"model":"m"}"#), Some("input")),
            (own(r#"{"model":"m","input":null}"#), Some("input")),
            (own(r#"{"model":"m","input":""}"#), Some("input")),
            (own(r#"{"model":"m","input":[ ]}"#), Some("input")),
            (own(r#"{"model":"m","input":{"a":1}}"#), Some("input")),
            (with(r#","model":"other""#), Some("model")),
            (with(r#","stream":"yes""#), Some("stream")),
            (
                with(r#","max_output_tokens":"9""#),
                Some("max_output_tokens"),
            ),
        ],
    );
}

#[test]
fn requests_to_store_something_are_refused() {
    let item =
        |item: &str| format!(r#"{{"model":"m","input":[{{"role":"user","content":"a"}},{item}]}}"#);
    let named = Some("input[1]");
    assert_refused(
        Code::StatefulNotSupported,
        &[
            (with(r#","store":true"#), Some("store")),
            (with(r#","background":true"#), Some("background")),
            (
                with(r#","previous_response_id":"resp_0""#),
                Some("previous_response_id"),
            ),
            (with(r#","conversation":"conv_1""#), Some("conversation")),
            (with(r#","conversation":{"id":"c"}"#), Some("conversation")),
            (item(r#"{"type":"item_reference","id":"rs_1"}"#), named),
            (item(r#"{"id":"rs_1","type":"item\u005freference"}"#), named),
            (item(r#"{"id":"rs_1"}"#), named),
            (item(r#"{"id":"rs_1","type":null}"#), named),
        ],
    );
}

#[test]
fn members_that_clients_may_not_set_are_refused() {
    assert_refused(
        Code::RoutingNotSupported,
        &[(with(r#","provider":{"order":[]}"#), Some("provider"))],
    );
    assert_refused(
        Code::ServiceTierNotSupported,
        &[
            (with(r#","service_tier":"flex""#), Some("service_tier")),
            (with(r#","service_tier":"ultrafast""#), Some("service_tier")),
        ],
    );
}

#[test]
fn harmless_values_of_refused_members_are_accepted() {
    for body in [
        with(
            r#","store":false,"background":false,"previous_response_id":null,"conversation":null"#,
        ),
        with(r#","service_tier":"auto","provider":null"#),
        with(r#","metadata":{"conversation":"x"}"#),
        with(r#","prompt":null"#),
        r#"{"model":"m","input":[{"role":"user","content":"item_reference","id":"msg_1"}]}"#
            .to_owned(),
        r#"{"model":"m","input":[{"id":"rs_1","type":"reasoning","summary":[]}]}"#.to_owned(),
        r#"{"model":"m","input":["a",1]}"#.to_owned(),
    ] {
        assert!(head(&body).is_ok(), "{body}: {:?}", head(&body));
    }
}

#[test]
fn an_id_with_a_payload_may_be_in_what_is_removed() {
    let body = |model: &str, items: &[&str]| {
        let items = items.join(",");
        format!(r#"{{"store":false,"model":"{model}","input":[{items}]}}"#)
    };
    let opaque = Opaque {
        origin: Dialect::Generate,
        model: "maker/other".into(),
        text: "AAAA".into(),
    };
    let carried = IdPayload {
        opaque: Some(opaque),
        ..IdPayload::default()
    };
    let id = carrier::encode("x_1", &carried);
    let hi = r#"{"role":"user","content":"hi"}"#;
    let lost = format!(r#"{{"type":"reasoning","id":"{id}","summary":[]}}"#);
    let call = |ids: &str| format!(r#"{{{ids}"type":"function_call","call_id":"c"}}"#);
    let two_ids = call(&format!(r#""id":"{id}","id":"fc_1","#));
    for (items, expected) in [
        (vec![hi, &lost], vec![hi]),
        (vec![&*lost, &lost, hi], vec![hi]),
        (vec![&*lost, &two_ids], vec![&*call("")]),
    ] {
        let asked = body("maker/m", &items);
        assert_eq!(sent(&asked), body("up", &expected), "{asked}");
    }
}

#[test]
fn the_upstream_is_asked_to_store_nothing() {
    for (body, expected) in [
        (
            r#"{"model":"maker/m","input":"a"}"#,
            r#"{"store":false,"model":"up","input":"a"}"#,
        ),
        (
            r#"{ "model" : "maker/m", "store": null,"input":"a" }"#,
            r#"{ "model" : "up", "store": false,"input":"a" }"#,
        ),
        (
            r#"{"store":false,"model":"maker/m","input":"a","x":[1.0,"\u00e9"]}"#,
            r#"{"store":false,"model":"up","input":"a","x":[1.0,"\u00e9"]}"#,
        ),
    ] {
        assert_eq!(sent(body), expected);
    }
}

proptest! {
    #[test]
    fn only_model_and_store_change(
        text in any::<String>(), encrypted in "[A-Za-z0-9+/=]{1,2000}", number in any::<i64>(),
    ) {
        let input = serde_json::json!([
            {"role": "user", "content": [{"type": "input_text", "text": text, "x": number}]},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": encrypted},
        ]);
        let body = format!(r#"{{"input": {input:#}, "model":"maker/m","odd":{number} }}"#);
        let expected = format!(
            r#"{{"store":false,"input": {input:#}, "model":"up","odd":{number} }}"#
        );
        prop_assert_eq!(sent(&body), expected);
    }
}

/// Tools that come in the conversation are offered, priced and refused like those in `tools`.
#[test]
fn items_of_the_input_can_offer_tools() {
    for (item, expected) in [
        (
            r#"{"type":"additional_tools","role":"developer","tools":[{"type":"web_search"},{"type":"function","name":"f"}]}"#,
            &[Tool::WebSearch][..],
        ),
        (
            r#"{"t\u006fols":[{"type":"mcp","server_url":"https://a.example"}],"type":"tool_search_output","call_id":"c"}"#,
            &[Tool::Mcp],
        ),
        (
            r#"{"type":"tool_search_output","tools":[{"type":"shell","environment":{"type":"container_auto"}}]}"#,
            &[Tool::CodeExecution],
        ),
        (r#"{"type":"tool_search_output","tools":[]}"#, &[]),
        (r#"{"role":"user","content":"tools: web_search"}"#, &[]),
    ] {
        let body = format!(r#"{{"model":"maker/m","input":["x",{item}]}}"#);
        let tools: Vec<_> = head(&body).unwrap().tools.iter().collect();
        assert_eq!(tools, expected, "{item}");
    }
    let body = r#"{"model":"maker/m","tools":[{"type":"image_generation"}],"input":[{"type":"additional_tools","tools":[{"type":"web_search"}]}]}"#;
    let tools: Vec<_> = head(body).unwrap().tools.iter().collect();
    assert_eq!(tools, [Tool::WebSearch, Tool::ImageGeneration]);
}
