//! Properties of chat requests on the native path, for any body.

use bytes::Bytes;
use proptest::prelude::*;
use protocol::Dialect;
use protocol::native::{read_head, write_request};

use crate::requests::{head, sent, with};

/// Random JSON values without special meaning, as text.
fn any_value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        "-?[1-9][0-9]{0,30}(\\.[0-9]{1,5})?",
        any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
        Just(r#""\ud800\/""#.to_owned()),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4)
                .prop_map(|items| format!("[ {} ]", items.join(" ,\n"))),
            prop::collection::vec((any::<String>(), inner), 0..4).prop_map(|members| {
                let members: Vec<String> = members
                    .iter()
                    .map(|(name, value)| {
                        format!("{} : {value}", serde_json::to_string(name).unwrap())
                    })
                    .collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

/// Requests with known members at random positions among unknown ones.
fn any_request() -> impl Strategy<Value = String> {
    let unknown = prop::collection::vec(("x[a-z]{6}", any_value()), 0..5).prop_map(|members| {
        let mut members: Vec<(String, String)> = members;
        members.sort();
        members.dedup_by(|a, b| a.0 == b.0);
        members
            .into_iter()
            .map(|(name, value)| format!("\"{name}\" : {value}"))
            .collect::<Vec<_>>()
    });
    let options = prop::sample::select(vec![
        "",
        r#""stream_options":null"#,
        r#""stream_options":{}"#,
        r#""stream_options":{"include_usage":true}"#,
        r#""stream_options":{"a":[1,"}"],"include_usage":false}"#,
    ]);
    (unknown, options, any::<bool>(), any_value())
        .prop_map(|(mut members, options, stream, message)| {
            members.push(r#""model" : "maker/m""#.to_owned());
            members.push(format!("\"messages\":[{message}]"));
            members.push(format!("\"stream\":{stream}"));
            if !options.is_empty() {
                members.push(options.to_owned());
            }
            members
        })
        .prop_shuffle()
        .prop_map(|members| format!(" {{\n{} }}\t", members.join(" , ")))
}

proptest! {
    #[test]
    fn a_rewrite_changes_only_its_spans(body in any_request()) {
        let sent = sent(&body);
        let head = head(&body).unwrap();
        // Undoing the changes by hand must yield the client's own bytes.
        let mut back = sent.replacen(r#""model" : "up""#, r#""model" : "maker/m""#, 1);
        if head.stream {
            for (changed, original) in [
                (r#""stream_options":{"include_usage":true},"#, ""),
                (r#""stream_options":{"include_usage":true}"#, r#""stream_options":null"#),
                (r#""stream_options":{"include_usage":true}"#, r#""stream_options":{}"#),
                (r#""include_usage":true}"#, r#""include_usage":false}"#),
            ] {
                let candidate = back.replacen(changed, original, 1);
                if candidate == body {
                    back = candidate;
                    break;
                }
            }
            let value: serde_json::Value = serde_json::from_str(&lossless(&sent)).unwrap();
            prop_assert_eq!(&value["stream_options"]["include_usage"], true);
        }
        prop_assert_eq!(back, body);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read_head(Dialect::Chat, &Bytes::from(bytes));
    }

    #[test]
    fn no_text_like_json_makes_it_panic(
        text in "[{}\\[\\]:,\"\\\\ 0-9a-z]{0,40}",
        at in 0_usize..120,
    ) {
        let mut body = with(r#","stream":true,"stream_options":{"include_usage":null}"#);
        body.insert_str(at.min(body.len()), &text);
        let body = Bytes::from(body);
        if let Ok(head) = read_head(Dialect::Chat, &body) {
            write_request(&body, &head, "up");
        }
    }
}

/// The parser of this test refuses lone surrogates. The gateway relays them.
fn lossless(text: &str) -> String {
    text.replace(r"\ud800", "?")
}
