//! Tests of requests that are designed to be costly, and of random requests.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use protocol::Dialect;
use protocol::convert::read_request;

/// Far longer than any of these tests takes, so that a slow machine fails none of them.
const LONG: Duration = Duration::from_secs(60);
const MANY: usize = 40_000;

fn list(item: impl Fn(&mut String, usize)) -> String {
    let mut text = String::new();
    for number in 0..MANY {
        if number > 0 {
            text.push(',');
        }
        item(&mut text, number);
    }
    text
}

#[test]
fn many_calls_and_results_are_read_in_time() {
    let calls = list(|out, _| out.push_str(r#"{"functionCall":{"name":"f"}}"#));
    let results = list(|out, _| out.push_str(r#"{"functionResponse":{"name":"f"}}"#));
    let names = list(|out, number| {
        write!(
            out,
            r#"{{"name":"{}"}}"#,
            char::from_u32(0x3400 + u32::try_from(number % 0x4000).unwrap()).unwrap()
        )
        .unwrap();
    });
    let generate = format!(
        r#"{{"contents":[{{"role":"model","parts":[{calls}]}},{{"parts":[{results}]}}],"tools":[{{"functionDeclarations":[{names}]}}]}}"#
    );
    let steps = list(|out, number| {
        write!(
            out,
            r#"{{"type":"function_call","id":"c{number}","name":"f"}}"#
        )
        .unwrap();
    });
    let answers = list(|out, number| {
        write!(
            out,
            r#"{{"type":"function_result","call_id":"c{number}","result":""}}"#
        )
        .unwrap();
    });
    let interactions = format!(r#"{{"model":"maker/m","input":[{steps},{answers}]}}"#);
    for (dialect, body) in [
        (Dialect::Generate, generate),
        (Dialect::Interactions, interactions),
    ] {
        let begin = Instant::now();
        let request = read_request(dialect, body.as_bytes(), false).unwrap();
        assert_eq!(request.turns.len(), 2);
        assert_eq!(request.turns[1].parts.len(), MANY);
        assert!(begin.elapsed() < LONG, "{dialect}: {:?}", begin.elapsed());
    }
}

#[test]
fn deep_schemas_are_read_in_time() {
    let filler = "x".repeat(4 << 20);
    let depth = 55;
    let schema = format!(
        r#"{}{{"type":"STRING","description":"{filler}"}}{}"#,
        r#"{"items":"#.repeat(depth),
        "}".repeat(depth)
    );
    let body = format!(
        r#"{{"contents":[{{"parts":[{{"text":"x"}}]}}],"tools":[{{"functionDeclarations":[{{"name":"f","parameters":{schema}}}]}}]}}"#
    );
    let begin = Instant::now();
    let request = read_request(Dialect::Generate, body.as_bytes(), false).unwrap();
    let schema = request.tools[0].parameters.as_ref().unwrap().get();
    assert!(schema.contains(r#""type":"string""#));
    assert!(begin.elapsed() < LONG, "{:?}", begin.elapsed());
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(body in prop::collection::vec(any::<u8>(), 0..200)) {
        for dialect in [Dialect::Generate, Dialect::Interactions] {
            let _ = read_request(dialect, &body, false);
        }
    }

    #[test]
    fn any_words_are_read_or_refused(body in any_body()) {
        for dialect in [Dialect::Generate, Dialect::Interactions] {
            let _ = read_request(dialect, body.as_bytes(), false);
        }
    }
}

/// Objects with the names of both dialects in any place.
fn any_body() -> impl Strategy<Value = String> {
    use serde_json::Value;
    let word = prop::sample::select(vec![
        "contents",
        "parts",
        "role",
        "user",
        "model",
        "text",
        "thought",
        "thoughtSignature",
        "functionCall",
        "function_response",
        "response",
        "name",
        "args",
        "id",
        "inline_data",
        "mimeType",
        "data",
        "fileData",
        "fileUri",
        "tools",
        "functionDeclarations",
        "parameters",
        "type",
        "OBJECT",
        "nullable",
        "properties",
        "generationConfig",
        "thinkingConfig",
        "toolConfig",
        "systemInstruction",
        "input",
        "user_input",
        "content",
        "function_call",
        "function_result",
        "call_id",
        "result",
        "generation_config",
        "tool_choice",
        "allowed_tools",
        "response_format",
        "schema",
        "signature",
        "summary",
        "arguments",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i8>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
    ];
    let tree = leaf.prop_recursive(6, 48, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(word.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(Value::from_iter),
        ]
    });
    tree.prop_map(|tree| match tree {
        Value::Object(_) => tree.to_string(),
        other => format!(r#"{{"contents":[{other}],"input":{other}}}"#),
    })
}
