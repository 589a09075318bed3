use proptest::prelude::*;

use super::super::media::{IMAGE_TOKENS, RESULT_MEDIA_MAX};
use super::*;
use crate::json::{Shape, SyntaxError};

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

/// A tool's result with these items.
fn result(items: &str) -> String {
    format!(r#"[{{"type":"function_result","call_id":"c","result":[{items}]}}]"#)
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
        format!(r#"{{"type":"image_generation_call","result":"{data}"}}"#),
        format!(
            r#"{{"type":"function_result","result":[{{"type":"text","text":"a"}},{{"text":"b"}},{{"type":"image","data":"{data}","mime_type":"image/png"}}]}}"#
        ),
        format!(
            r#"{{"type":"computer_call_output","output":{{"type":"computer_screenshot","image_url":"data:image/png;base64,{data}"}}}}"#
        ),
        format!(
            r#"{{"type":"model_output","content":{{"type":"image","data":"{data}","mime_type":"image/png"}}}}"#
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

/// The number of media that are kept until the end of a result is bounded.
#[test]
fn a_result_with_very_many_media_is_text() {
    let data = "iVBORw0KGgo".repeat(20);
    let items = |count: usize, of_last: &str| {
        let inline = format!(r#"{{"type":"image","data":"{data}"}},"#);
        let more = format!(r#"{{"type":"image",{of_last}}}"#);
        result(&(inline.repeat(count) + &more))
    };
    let kept = RESULT_MEDIA_MAX - 1;
    let linked = r#""uri":"https://a/b.png""#;
    for last in [&*format!(r#""data":"{data}""#), linked] {
        let few = count(&items(kept, last));
        assert!(few.tokens >= kept as u64 * IMAGE_TOKENS, "{few:?}");
        assert!(few.media_bytes >= (kept * data.len()) as u64, "{few:?}");
        let body = items(kept + 1, last);
        let many = count(&body);
        assert_eq!(many.media_bytes, 0, "{many:?}");
        assert!(many.tokens >= body.len() as u64 / BYTES_PER_TOKEN_MAX);
        let text = count(&body.replace("image", "thing"));
        let of_link = if last == linked { IMAGE_TOKENS } else { 0 };
        let close = (text.tokens * 9 / 10)..(text.tokens * 11 / 10 + of_link);
        assert!(close.contains(&many.tokens), "{many:?} {text:?}");
    }
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
    // Nothing declares the URL or the file as media.
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
        // The result of a tool is text, whatever is declared beside it.
        message(&format!(
            r#"{{"type":"function_result","call_id":"c","name":"f","mime_type":"image/png","result":"{data}"}}"#
        )),
        message(&format!(r#"{{"result":"{data}","mime_type":"image/png"}}"#)),
        message(&format!(
            r#"{{"type":"function_result","type":"image_generation_call","result":"{data}"}}"#
        )),
        message(&format!(
            r#"{{"data":"{data}","mime_type":"image/png","type":"function_result"}}"#
        )),
        message(&format!(
            r#"{{"type":"redacted_thinking","mime_type":"image/png","data":"{data}"}}"#
        )),
        message(&format!(
            r#"{{"type":"function_call_output","output":{{"mime_type":"image/png","data":"{data}"}}}}"#
        )),
        message(&format!(
            r#"{{"type":"function_call_output","mime_type":"image/png","output":"{data}"}}"#
        )),
        message(&format!(
            r#"{{"type":"tool_result","media_type":"image/png","content":"{data}"}}"#
        )),
        message(&format!(
            r#"{{"functionResponse":{{"mimeType":"image/png","response":{{"data":"{data}"}}}}}}"#
        )),
        // Upstreams get a list that has other data as text, including its images.
        result(&format!(r#"{{"type":"image","data":"{data}"}},7"#)),
        result(&format!(r#""a",{{"type":"image","data":"{data}"}}"#)),
        result(&format!(r#"[],{{"type":"image","data":"{data}"}}"#)),
        result(&format!(r#"{{"type":"image","data":"{data}"}},{{"x":1}}"#)),
        result(&format!(r#"{{"mime_type":"image/png","data":"{data}"}}"#)),
        result(&format!(
            r#"{{"type":"image","type":null,"data":"{data}"}}"#
        )),
        result(&format!(
            r#"{{"type":"image","type":{{}},"data":"{data}"}}"#
        )),
        result(&format!(r#"{{"type":"image_url","image_url":"{url}"}}"#)),
        result(&format!(
            r#"{{"type":"x","content":[{{"type":"image","data":"{data}"}}]}}"#
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

/// An upper bound for the bytes of media in a value: the bytes of all strings in places for media. The result
/// of a tool is a place for media only if it is an image that the model generated, or a list.
fn media_bytes_max(value: Raw<'_>, is_in_tool_result: bool) -> u64 {
    const LINKS: [&str; 2] = ["image_url", "url"];
    let mut total = 0;
    let mut cursor = Cursor::new(value.text());
    match value.shape() {
        Shape::Array => cursor.array(|cursor| {
            total += media_bytes_max(cursor.value()?, false);
            Ok::<(), SyntaxError>(())
        }),
        Shape::Object => {
            let mut members = Vec::new();
            let read = cursor.object(|cursor, name| {
                members.push((name.decode_lossy().into_owned(), cursor.value()?));
                Ok::<(), SyntaxError>(())
            });
            let types = members.iter().filter(|(name, _)| name == "type");
            let types: Vec<String> = types
                .filter_map(|(_, value)| Some(value.string()?.decode_lossy().into_owned()))
                .collect();
            let is_result = |word: &String| word.ends_with("_result") || word.ends_with("_output");
            let is_in_tool_result = is_in_tool_result || types.iter().any(is_result);
            for (name, value) in members {
                let length = value.string().map_or(0, |text| text.raw().len() as u64);
                let is_place = LINKS.contains(&name.as_str())
                    || name == "data" && !is_in_tool_result
                    || name == "result" && types == ["image_generation_call"];
                total += if is_place { length } else { 0 };
                total += media_bytes_max(value, is_in_tool_result);
            }
            read
        }
        _ => Ok(()),
    }
    .unwrap();
    total
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
        "output",
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
            "function_result",
            "function_call_output",
            "image_generation_call",
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
        let types = [
            "function_result",
            "tool_result",
            "image",
            "image_generation_call",
        ];
        let declared = (
            prop::sample::select(types.to_vec()),
            name.clone(),
            inner.clone(),
        )
            .prop_map(|(kind, name, value)| {
                format!(r#"{{"type":"{kind}","mime_type":"image/png","{name}":{value}}}"#)
            });
        prop_oneof![
            declared,
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
            let most = media_bytes_max(Cursor::new(&json).value().unwrap(), false);
            prop_assert!(count.media_bytes <= most, "{most} {count:?} {json}");
            // A medium costs at least one image.
            prop_assert!(count.media_bytes == 0 || count.tokens >= IMAGE_TOKENS);
        }
    }
}
