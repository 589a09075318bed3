use proptest::prelude::*;

use super::super::media::IMAGE_TOKENS;
use super::*;

fn count(json: &str) -> InputCount {
    count_value(Cursor::new(json).value().unwrap())
}

fn tokens(json: &str) -> u64 {
    count(json).tokens
}

#[test]
fn json_is_counted_by_its_strings() {
    let estimate = tokens(r#"[{"role":"user","content":"Tell me about the sea."}]"#);
    assert!((7..=14).contains(&estimate), "{estimate}");
    // Escapes count as the characters that they encode.
    let (escaped, meant) = (r#"["\u4f60\u597d\n"]"#, "[\"你好\\n\"]");
    assert_eq!(tokens(escaped), tokens(meant));
    // Models read numbers as text.
    let numbers = format!("[{}1]", "31415926,".repeat(1000));
    assert!(tokens(&numbers) > 3000);
}

const BYTES: usize = 1 << 20;

fn message(part: &str) -> String {
    format!(r#"[{{"role":"user","content":[{part}]}}]"#)
}

#[test]
fn inline_media_count_by_kind_and_size() {
    let data = "iVBORw0KGgo".repeat(BYTES / 11);
    let image_max = IMAGE_TOKENS + BYTES as u64 / 512 + 100;
    for part in [
        format!(r#"{{"type":"image_url","image_url":{{"url":"data:image/png;base64,{data}"}}}}"#),
        format!(r#"{{"type":"input_image","image_url":"data:image\/png;base64,{data}"}}"#),
        format!(
            r#"{{"source":{{"data":"{data}","media_type":"image/png","type":"base64"}},"type":"image"}}"#
        ),
        format!(r#"{{"inline\u0044ata":{{"mimeType":"image/webp","data":"{data}"}}}}"#),
        format!(r#"{{"data":"{data}","mime_type":"image/png","t\u0079pe":"image"}}"#),
        format!(
            r#"{{"type":"tool_result","content":[{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{data}"}}}}]}}"#
        ),
    ] {
        let count = count(&message(&part));
        assert!(
            (IMAGE_TOKENS..image_max).contains(&count.tokens),
            "{count:?}"
        );
        assert!(count.tokens_max.unwrap() < 20_000, "{count:?}");
        assert!(!count.fills_context);
    }
    let audio = |start: &str| {
        let data = format!("{start}{data}");
        let part =
            format!(r#"{{"type":"input_audio","input_audio":{{"data":"{data}","format":"x"}}}}"#);
        count(&message(&part))
    };
    let (waveform, packed) = (audio("UklGR"), audio("SUQz"));
    assert!(waveform.tokens > 3_000 && packed.tokens > 3 * waveform.tokens);
    assert!(packed.tokens_max.unwrap() > BYTES as u64);
}

#[test]
fn media_of_unknown_length_may_fill_the_context() {
    for part in [
        r#"{"type":"file","file":{"file_id":"file-1"}}"#,
        r#"{"type":"file","file":{"file_data":"data:application/pdf;base64,JVBERi0="}}"#,
        r#"{"type":"input_file","file_url":"https://a.example/x.pdf"}"#,
        r#"{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0="}}"#,
        r#"{"type":"document","source":{"type":"url","url":"https://a.example/x.pdf"}}"#,
        r#"{"type":"docum\u0065nt","source":{"type":"file","file_\u0069d":"f"}}"#,
        r#"{"fileData":{"mimeType":"video/mp4","fileUri":"https://a.example/x"}}"#,
        r#"{"fileData":{"fileUri":"https://a.example/x"}}"#,
        r#"{"inlineData":{"mimeType":"video/mp4","data":"AAAA"}}"#,
        r#"{"type":"audio","uri":"https://a.example/x.mp3"}"#,
        r#"{"type":"video_url","video_url":{"url":"https://a.example/x"}}"#,
    ] {
        let count = count(&message(part));
        assert!(count.fills_context, "{part}");
        assert_eq!(count.tokens_max, None, "{part}");
        // The estimate is for rate limits, so it is far below the whole context.
        assert!((IMAGE_TOKENS..2_000).contains(&count.tokens), "{count:?}");
    }
    for part in [
        r#"{"type":"image_url","image_url":{"url":"https://a.example/cat.png"}}"#,
        r#"{"type":"input_image","file_id":"file-1"}"#,
        r#"{"type":"image","source":{"type":"file","file_id":"f"}}"#,
        r#"{"fileData":{"mimeType":"image/png","fileUri":"https://a.example/x"}}"#,
    ] {
        let count = count(&message(part));
        assert!(!count.fills_context, "{part}");
        assert!((IMAGE_TOKENS..2_000).contains(&count.tokens), "{count:?}");
    }
    // Nothing declares these as media.
    let result = r#"{"type":"web_search_result","url":"https://a.example","file_id":"f"}"#;
    assert!(tokens(&message(result)) < 100);
}

#[test]
fn base64_that_a_model_reads_as_text_is_not_a_medium() {
    let data = "iVBORw0KGgo".repeat(BYTES / 11);
    let url = format!("data:image/png;base64,{data}");
    for json in [
        message(&format!(r#"{{"type":"text","text":"{url}"}}"#)),
        message(&format!(
            r#"{{"type":"tool_use","input":{{"image_url":{{"url":"{url}"}}}}}}"#
        )),
        message(&format!(
            r#"{{"type":"tool_use","input":[{{"type":"image_url","image_url":{{"url":"{url}"}}}}]}}"#
        )),
        message(&format!(
            r#"{{"type":"document","source":{{"type":"text","media_type":"text/plain","data":"{data}"}}}}"#
        )),
        message(&format!(
            r#"{{"functionResponse":{{"response":{{"inlineData":{{"mimeType":"image/png","data":"{data}"}}}}}}}}"#
        )),
        message(&format!(
            r#"{{"type":"redacted_thinking","data":"{data}"}}"#
        )),
        message(&format!(
            r#"{{"type":"image","image_url":"https://{data}"}}"#
        )),
        message(&format!(
            r#"{{"type":"image","data":"AA","data":"{data}"}}"#
        )),
        format!(r#"[[{{"type":"image","image_url":"{url}"}}]]"#),
        format!(r#""{url}""#),
    ] {
        let tokens = tokens(&json);
        assert!(tokens > 200_000, "{tokens}: {}", &json[..120]);
    }
}

#[test]
fn a_conversation_alone_has_media() {
    let url = format!("data:image/png;base64,{}", "A".repeat(BYTES));
    let value = message(&format!(
        r#"{{"type":"image_url","image_url":{{"url":"{url}"}}}}"#
    ));
    for (member_use, is_medium) in [
        (MemberUse::Conversation, true),
        (MemberUse::Text, false),
        (MemberUse::Unread, false),
    ] {
        let mut counter = JsonCounter::default();
        counter.begin(member_use);
        Cursor::new(&value).value_shown_to(&mut counter).unwrap();
        let count = counter.finish(value.len());
        assert_eq!(count.tokens < 10_000, is_medium, "{member_use:?} {count:?}");
    }
}

/// JSON texts as an attacker who knows this code might write them: media names on anything,
/// escapes, white space between tokens, numbers, and nesting.
fn any_json() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec![
        "type",
        "t\\u0079pe",
        "content",
        "parts",
        "image_url",
        "url",
        "data",
        "source",
        "inlineData",
        "mimeType",
        "text",
        "file_id",
        "result",
        "input",
        "x",
    ]);
    let string = prop_oneof![
        prop::sample::select(vec![
            "image",
            "text",
            "document",
            "image/png",
            "text/plain",
            "application/pdf",
        ])
        .prop_map(str::to_owned),
        "[a-z ]{0,60}",
        "(\\\\u0020|\\\\n|\\\\ud83d\\\\ude00){0,30}",
        "data:image/png;base64,[A-Za-z0-9+/]{0,80}",
        "https://[a-z ]{0,80}",
        " {0,200}",
    ];
    let leaf = prop_oneof![
        string.prop_map(|it| format!("\"{it}\"")),
        "-?[1-9][0-9]{0,50}",
        Just("null".to_owned()),
        Just("[]".to_owned()),
    ];
    let space = "[ \n\t]{0,30}";
    leaf.prop_recursive(6, 64, 6, move |inner| {
        let member = (space, name.clone(), inner.clone())
            .prop_map(|(space, name, value)| format!("{space}\"{name}\":{space}{value}"));
        prop_oneof![
            prop::collection::vec(member, 0..6).prop_map(|it| format!("{{{}}}", it.join(","))),
            prop::collection::vec(inner, 0..6).prop_map(|it| format!("[{}]", it.join(" , "))),
        ]
    })
}

proptest! {
    /// No JSON text of n bytes counts as less than n/12 tokens, in any form and with any escapes.
    /// Only declared media in places for media are excluded from n.
    #[test]
    fn no_json_counts_below_its_floor(json in any_json(), times in 1_usize..6) {
        let json = format!("[{}]", vec![json; times].join(","));
        for member_use in [MemberUse::Conversation, MemberUse::Text, MemberUse::Unread] {
            let mut counter = JsonCounter::default();
            counter.begin(member_use);
            Cursor::new(&json).value_shown_to(&mut counter).unwrap();
            let count = counter.finish(json.len());
            let text_bytes = json.len() as u64 - count.media_bytes;
            prop_assert!(count.tokens * BYTES_PER_TOKEN_MAX >= text_bytes, "{count:?} {json}");
            prop_assert!(count.tokens_max.is_none_or(|most| most >= count.tokens), "{count:?} {json}");
            prop_assert!(member_use == MemberUse::Conversation || count.media_bytes == 0);
            // A medium costs at least one image.
            prop_assert!(count.media_bytes == 0 || count.tokens >= IMAGE_TOKENS);
        }
    }
}
