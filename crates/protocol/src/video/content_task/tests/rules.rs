//! Tests of the rules for requests in `docs/api/content-tasks.md`.

use super::*;

#[test]
fn a_request_has_a_model_and_content() {
    for (body, param) in [
        (r#"{"content":[{"type":"text","text":"x"}]}"#, "model"),
        (
            r#"{"model":null,"content":[{"type":"text","text":"x"}]}"#,
            "model",
        ),
        (
            r#"{"model":7,"content":[{"type":"text","text":"x"}]}"#,
            "model",
        ),
        (
            r#"{"model":"a//b","content":[{"type":"text","text":"x"}]}"#,
            "model",
        ),
        (r#"{"model":"a/b"}"#, "content"),
        (r#"{"model":"a/b","content":null}"#, "content"),
        (r#"{"model":"a/b","content":[]}"#, "content"),
        (
            r#"{"model":"a/b","content":{"type":"text","text":"x"}}"#,
            "content",
        ),
        (r#"{"model":"a/b","content":"x"}"#, "content"),
    ] {
        let refused = refusal(V20, &Bytes::from_static(body.as_bytes()));
        let expected = Some(("invalid_request".to_owned(), param.to_owned()));
        assert_eq!(refused, expected, "{body}");
    }
}

#[test]
fn members_that_clients_may_not_set_are_refused() {
    holds(&[
        (
            V20,
            &[TEXT],
            r#","priority":5"#,
            "unsupported_parameter priority",
        ),
        (
            V20,
            &[TEXT],
            r#","priority":0"#,
            "unsupported_parameter priority",
        ),
        (V20, &[TEXT], r#","priority":null"#, ""),
        (
            V20,
            &[TEXT],
            r#","service_tier":"flex""#,
            "service_tier_not_supported service_tier",
        ),
        (V20, &[TEXT], r#","service_tier":"default""#, ""),
        (V20, &[TEXT], r#","service_tier":null"#, ""),
        (
            V20,
            &[TEXT],
            r#","provider":"p""#,
            "routing_not_supported provider",
        ),
        (
            V20,
            &[TEXT],
            r#","routing":{}"#,
            "routing_not_supported routing",
        ),
        (
            V20,
            &[TEXT],
            r#","route":"r""#,
            "routing_not_supported route",
        ),
        (
            V20,
            &[TEXT],
            r#","storage_options":{}"#,
            "stateful_not_supported storage_options",
        ),
        (
            V20,
            &[TEXT],
            r#","output":{}"#,
            "stateful_not_supported output",
        ),
        (
            V20,
            &[TEXT],
            r#","store":true"#,
            "stateful_not_supported store",
        ),
        (
            V20,
            &[TEXT],
            r#","background":true"#,
            "stateful_not_supported background",
        ),
        (
            V20,
            &[TEXT],
            r#","deferred":true"#,
            "stateful_not_supported deferred",
        ),
        (V20, &[TEXT], r#","store":false"#, ""),
        (V20, &[TEXT], r#","callback_url":7"#, "callback_url"),
    ]);
}

#[test]
fn items_have_the_shape_of_their_type() {
    let bad = |item: &'static str| [item];
    for (item, param) in [
        (r#"{"text":"x"}"#, "content.type"),
        (r#"{"type":"poem","text":"x"}"#, "content.type"),
        (r#"{"type":7}"#, "content.type"),
        ("7", "content"),
        (r#"{"type":"text"}"#, "content.text"),
        (r#"{"type":"text","text":" "}"#, "content.text"),
        (r#"{"type":"text","text":7}"#, "content.text"),
        (r#"{"type":"image_url"}"#, "content.image_url"),
        (
            r#"{"type":"image_url","image_url":"https://x.example"}"#,
            "content.image_url",
        ),
        (
            r#"{"type":"image_url","image_url":{}}"#,
            "content.image_url",
        ),
        (
            r#"{"type":"image_url","image_url":{"url":"ftp://x.example"}}"#,
            "content.image_url",
        ),
        (
            r#"{"type":"image_url","image_url":{"url":"https://"}}"#,
            "content.image_url",
        ),
        (
            r#"{"type":"image_url","image_url":{"url":"data:video/mp4;base64,AA"}}"#,
            "content.image_url",
        ),
        (
            r#"{"type":"image_url","image_url":{"url":"https://x.example"},"role":"middle_frame"}"#,
            "content.role",
        ),
        (
            r#"{"type":"image_url","image_url":{"url":"https://x.example"},"role":7}"#,
            "content.role",
        ),
        (
            r#"{"type":"video_url","video_url":{"url":"data:video/mp4;base64,AA"}}"#,
            "content.video_url",
        ),
        (
            r#"{"type":"video_url","video_url":{"url":"https://x.example"},"role":"first_frame"}"#,
            "content.role",
        ),
        (
            r#"{"type":"audio_url","audio_url":{"url":"data:image/png;base64,AA"}}"#,
            "content.audio_url",
        ),
        (
            r#"{"type":"audio_url","audio_url":{"url":"https://x.example"},"role":"reference_video"}"#,
            "content.role",
        ),
        (r#"{"type":"draft_task"}"#, "content.draft_task"),
        (
            r#"{"type":"draft_task","draft_task":{}}"#,
            "content.draft_task.id",
        ),
        (
            r#"{"type":"draft_task","draft_task":{"id":7}}"#,
            "content.draft_task.id",
        ),
    ] {
        holds(&[(V25, &bad(item), "", param)]);
    }
}

#[test]
fn content_that_does_not_go_together_is_refused() {
    holds(&[
        (V25, &[TEXT], "", ""),
        (V25, &[TEXT, FIRST], "", ""),
        (V25, &[FIRST], "", ""),
        (V25, &[TEXT, LONE], "", ""),
        (V25, &[TEXT, FIRST, LAST], "", ""),
        (V25, &[TEXT, LAST], "", "content"),
        (V25, &[TEXT, FIRST, FIRST], "", "content"),
        (V25, &[TEXT, FIRST, LAST, LAST], "", "content"),
        (V25, &[TEXT, LONE, LONE], "", "content.role"),
        (V25, &[TEXT, LONE, LAST], "", "content.role"),
        (V25, &[TEXT, LONE, IMAGE], "", "content.role"),
        (V25, &[TEXT, FIRST, IMAGE], "", "content"),
        (V25, &[TEXT, FIRST, VIDEO], "", "content"),
        (V25, &[TEXT, FIRST, AUDIO], "", "content"),
        (V25, &[TEXT, LONE, VIDEO], "", "content"),
        (V25, &[TEXT, IMAGE, VIDEO, AUDIO], "", ""),
        (V15, &[DRAFT], "", ""),
        (V15, &[TEXT, DRAFT], "", ""),
        (V15, &[DRAFT, FIRST], "", "content"),
        (V15, &[DRAFT, IMAGE], "", "content"),
        (V15, &[DRAFT, VIDEO], "", "content"),
        (V15, &[DRAFT, AUDIO], "", "content"),
        (V15, &[DRAFT, DRAFT], "", "content"),
    ]);
}

#[test]
fn modes_belong_to_profiles() {
    holds(&[
        (V10, &[TEXT, FIRST, LAST], "", ""),
        (V10, &[TEXT, IMAGE], "", ""),
        (V10, &[DRAFT], "", "model_not_supported model"),
        (V15, &[TEXT, FIRST, LAST], "", ""),
        (V15, &[TEXT, IMAGE], "", "model_not_supported model"),
        (V20, &[TEXT, IMAGE], "", ""),
        (V20, &[DRAFT], "", "model_not_supported model"),
        (V25, &[DRAFT], "", "model_not_supported model"),
    ]);
}

#[test]
fn reference_media_are_counted() {
    let many = |item: &'static str, count: usize| vec![item; count];
    let table: [(BuiltInProfile, Vec<&str>, &str); 13] = [
        (V20, many(IMAGE, 9), ""),
        (V20, many(IMAGE, 10), "content"),
        (V20, many(VIDEO, 3), ""),
        (V20, many(VIDEO, 4), "content"),
        (V20, [many(AUDIO, 3), many(IMAGE, 1)].concat(), ""),
        (V20, [many(AUDIO, 4), many(IMAGE, 1)].concat(), "content"),
        (V20, many(AUDIO, 1), "content"),
        (V20, [AUDIO, VIDEO].to_vec(), ""),
        (V25, many(AUDIO, 10), ""),
        (
            V25,
            [many(IMAGE, 30), many(VIDEO, 10), many(AUDIO, 10)].concat(),
            "",
        ),
        (V25, many(IMAGE, 31), "content"),
        (V10, many(IMAGE, 4), ""),
        (V10, many(VIDEO, 1), "content"),
    ];
    for (base, items, refused) in table {
        holds(&[(base, &items, "", refused)]);
    }
    let mut profile = profile(V25);
    profile.references_max = serde_json::from_str(r#"{"image":30,"total":3}"#).unwrap();
    let request = read_request(&body(&[IMAGE, IMAGE, VIDEO, AUDIO], "")).unwrap();
    assert!(request.check(&profile).is_err());
}

#[test]
fn edits_and_extensions_follow_their_source() {
    let edit = r#","omni_reference_task_type":"edit""#;
    let with = |task: &str, rest: &str| format!(r#","omni_reference_task_type":"{task}"{rest}"#);
    let adaptive = r#","ratio":"adaptive""#;
    let wide = r#","ratio":"16:9""#;
    let auto = r#","ratio":"adaptive","duration":-1"#;
    let ten = r#","ratio":"adaptive","duration":10"#;
    let rows: [(BuiltInProfile, Vec<&str>, String, &str); 17] = [
        (V25, vec![TEXT, VIDEO], with("edit", auto), ""),
        (V25, vec![TEXT, VIDEO], with("edit", adaptive), ""),
        (V25, vec![TEXT, VIDEO], with("edit", ten), "duration"),
        (V25, vec![TEXT, VIDEO], with("edit", wide), "ratio"),
        (V25, vec![TEXT, VIDEO], edit.to_owned(), "ratio"),
        (V25, vec![TEXT, IMAGE], with("edit", auto), "content"),
        (V25, vec![TEXT], with("edit", auto), "content"),
        (V25, vec![TEXT, VIDEO], with("extend", ten), ""),
        (V25, vec![TEXT, VIDEO], with("extend", wide), "ratio"),
        (V25, vec![TEXT, VIDEO], with("extend", ""), "ratio"),
        (V25, vec![TEXT, AUDIO], with("extend", auto), "content"),
        (V25, vec![TEXT, IMAGE], with("reference", wide), ""),
        (V25, vec![TEXT], with("reference", ""), "content"),
        (V25, vec![TEXT, VIDEO], with("auto", wide), ""),
        (V25, vec![TEXT], with("auto", ""), ""),
        (
            V25,
            vec![TEXT, VIDEO],
            with("repair", ""),
            "omni_reference_task_type",
        ),
        (
            V20,
            vec![TEXT, VIDEO],
            with("edit", auto),
            "unsupported_parameter omni_reference_task_type",
        ),
    ];
    for (base, items, rest, refused) in rows {
        holds(&[(base, &items, &rest, refused)]);
    }
    // In series 2.5 the vendor accepts only the ratio of the frame itself.
    holds(&[
        (V25, &[TEXT, FIRST], wide, "ratio"),
        (V25, &[TEXT, FIRST, LAST], adaptive, ""),
        (V20, &[TEXT, FIRST], wide, ""),
    ]);
}

#[test]
fn lengths_have_the_bounds_of_their_profile() {
    let table = [
        (V25, 4, ""),
        (V25, 30, ""),
        (V25, -1, ""),
        (V25, 3, "duration"),
        (V25, 31, "duration"),
        (V25, -2, "duration"),
        (V20, 15, ""),
        (V20, -1, ""),
        (V20, 16, "duration"),
        (V15, 4, ""),
        (V15, 12, ""),
        (V15, -1, ""),
        (V15, 13, "duration"),
        (V10, 2, ""),
        (V10, 12, ""),
        (V10, 1, "duration"),
        (V10, 13, "duration"),
        (V10, -1, "duration"),
    ];
    for (base, seconds, refused) in table {
        let duration = format!(r#","duration":{seconds}"#);
        holds(&[(base, &[TEXT], &duration, refused)]);
    }
    holds(&[
        (V20, &[TEXT], r#","duration":5.5"#, "duration"),
        (V20, &[TEXT], r#","duration":"5""#, "duration"),
        (
            V20,
            &[TEXT],
            r#","duration":99999999999999999999"#,
            "duration",
        ),
    ]);
}

#[test]
fn frames_are_of_one_form_and_take_the_place_of_the_duration() {
    for (frames, refused) in [
        ("29", ""),
        ("33", ""),
        ("289", ""),
        ("25", "frames"),
        ("30", "frames"),
        ("31", "frames"),
        ("293", "frames"),
        ("-1", "frames"),
        ("29.5", "frames"),
        ("\"29\"", "frames"),
    ] {
        holds(&[(V10, &[TEXT], &format!(r#","frames":{frames}"#), refused)]);
    }
    holds(&[
        (V10, &[TEXT], r#","frames":57,"duration":99"#, ""),
        (
            V15,
            &[TEXT],
            r#","frames":57"#,
            "unsupported_parameter frames",
        ),
        (
            V20,
            &[TEXT],
            r#","frames":57"#,
            "unsupported_parameter frames",
        ),
        (
            V25,
            &[TEXT],
            r#","frames":57"#,
            "unsupported_parameter frames",
        ),
    ]);
}

#[test]
fn looks_are_those_of_the_profile() {
    for (base, resolution, refused) in [
        (V25, "480p", ""),
        (V25, "720p", ""),
        (V25, "1080p", ""),
        (V25, "4k", "resolution"),
        (V20, "4k", ""),
        (V20, "8k", "resolution"),
        (V15, "1080p", ""),
        (V15, "4k", "resolution"),
        (V10, "1080p", ""),
        (V10, "1080P", "resolution"),
    ] {
        holds(&[(
            base,
            &[TEXT],
            &format!(r#","resolution":"{resolution}""#),
            refused,
        )]);
    }
    for ratio in ["16:9", "4:3", "1:1", "3:4", "9:16", "21:9", "adaptive"] {
        holds(&[(V20, &[TEXT], &format!(r#","ratio":"{ratio}""#), "")]);
    }
    holds(&[
        (V10, &[IMAGE], r#","resolution":"720p""#, ""),
        (V10, &[IMAGE], r#","resolution":"1080p""#, "resolution"),
        (V20, &[TEXT], r#","ratio":"2:1""#, "ratio"),
        (V20, &[TEXT], r#","ratio":7"#, "ratio"),
        (V20, &[TEXT], r#","output_format":"mp4""#, ""),
        (V20, &[TEXT], r#","output_format":"mov""#, "output_format"),
        (V25, &[TEXT], r#","output_format":"mov""#, ""),
        (V25, &[TEXT], r#","output_format":"webm""#, "output_format"),
    ]);
}

#[test]
fn abilities_are_those_of_the_profile() {
    holds(&[
        (V20, &[TEXT], r#","generate_audio":true"#, ""),
        (
            V10,
            &[TEXT],
            r#","generate_audio":true"#,
            "unsupported_parameter generate_audio",
        ),
        (V10, &[TEXT], r#","generate_audio":false"#, ""),
        (V20, &[TEXT], r#","generate_audio":"yes""#, "generate_audio"),
        (V10, &[TEXT], r#","camera_fixed":true"#, ""),
        (V15, &[TEXT, FIRST], r#","camera_fixed":true"#, ""),
        (
            V10,
            &[IMAGE],
            r#","camera_fixed":true"#,
            "unsupported_parameter camera_fixed",
        ),
        (
            V20,
            &[TEXT],
            r#","camera_fixed":true"#,
            "unsupported_parameter camera_fixed",
        ),
        (
            V25,
            &[TEXT],
            r#","camera_fixed":true"#,
            "unsupported_parameter camera_fixed",
        ),
        (V20, &[TEXT], r#","camera_fixed":false"#, ""),
        (V20, &[TEXT], r#","watermark":true"#, ""),
        (V20, &[TEXT], r#","watermark":1"#, "watermark"),
        (V20, &[TEXT], r#","return_last_frame":true"#, ""),
        (
            V20,
            &[TEXT],
            r#","return_last_frame":"x""#,
            "return_last_frame",
        ),
        (V20, &[TEXT], r#","tools":[]"#, ""),
        (V20, &[TEXT], r#","tools":[{"type":"web_search"}]"#, ""),
        (
            V20,
            &[TEXT, FIRST],
            r#","tools":[{"type":"web_search"}]"#,
            "unsupported_parameter tools",
        ),
        (
            V20,
            &[TEXT],
            r#","tools":[{"type":"code"}]"#,
            "unsupported_parameter tools",
        ),
        (
            V25,
            &[TEXT],
            r#","tools":[{"type":"web_search"}]"#,
            "unsupported_parameter tools",
        ),
        (V20, &[TEXT], r#","tools":[{}]"#, "tools.type"),
        (V20, &[TEXT], r#","tools":["web_search"]"#, "tools"),
        (V20, &[TEXT], r#","tools":{"type":"web_search"}"#, "tools"),
    ]);
    let request = read_request(&body(&[TEXT], r#","seed":1"#)).unwrap();
    let seedless = Profile {
        seed: Some(false),
        ..profile(V25)
    };
    let failure = request.check(&seedless).unwrap_err();
    assert_eq!(failure.code.as_str(), "unsupported_parameter");
}

#[test]
fn numbers_and_names_have_the_contracts_bounds() {
    let name = |chars: usize| format!(r#","safety_identifier":"{}""#, "é".repeat(chars));
    holds(&[
        (V20, &[TEXT], r#","seed":-1"#, ""),
        (V20, &[TEXT], r#","seed":2147483647"#, ""),
        (V20, &[TEXT], r#","seed":2147483648"#, "seed"),
        (V20, &[TEXT], r#","seed":-2"#, "seed"),
        (V20, &[TEXT], r#","seed":1.5"#, "seed"),
        (V20, &[TEXT], r#","execution_expires_after":3600"#, ""),
        (V20, &[TEXT], r#","execution_expires_after":259200"#, ""),
        (
            V20,
            &[TEXT],
            r#","execution_expires_after":3599"#,
            "execution_expires_after",
        ),
        (
            V20,
            &[TEXT],
            r#","execution_expires_after":259201"#,
            "execution_expires_after",
        ),
        (V20, &[TEXT], &name(64), ""),
        (V20, &[TEXT], &name(65), "safety_identifier"),
        (
            V20,
            &[TEXT],
            r#","safety_identifier":7"#,
            "safety_identifier",
        ),
    ]);
}

#[test]
fn drafts_are_small_and_belong_to_profiles() {
    holds(&[
        (V15, &[TEXT], r#","draft":true"#, ""),
        (
            V15,
            &[TEXT, FIRST],
            r#","draft":true,"resolution":"480p""#,
            "",
        ),
        (
            V15,
            &[TEXT],
            r#","draft":true,"resolution":"720p""#,
            "resolution",
        ),
        (
            V15,
            &[r#"{"type":"text","text":"a kite --rs 480p"}"#],
            r#","draft":true"#,
            "",
        ),
        (
            V15,
            &[r#"{"type":"text","text":"a kite --rs 720p"}"#],
            r#","draft":true,"resolution":"480p""#,
            "content.text",
        ),
        (
            V15,
            &[r#"{"type":"text","text":"a kite --rs"}"#],
            r#","draft":true"#,
            "content.text",
        ),
        (
            V15,
            &[r#"{"type":"text","text":"a kite --rs 720p"}"#],
            r#","draft":true,"resolution":"720p""#,
            "resolution",
        ),
        (
            V15,
            &[TEXT],
            r#","draft":true,"return_last_frame":true"#,
            "return_last_frame",
        ),
        (V15, &[DRAFT], r#","draft":true"#, "draft"),
        (V15, &[DRAFT], r#","draft":false"#, ""),
        (
            V10,
            &[TEXT],
            r#","draft":true"#,
            "unsupported_parameter draft",
        ),
        (
            V20,
            &[TEXT],
            r#","draft":true"#,
            "unsupported_parameter draft",
        ),
        (
            V25,
            &[TEXT],
            r#","draft":true"#,
            "unsupported_parameter draft",
        ),
        (V25, &[TEXT], r#","draft":false"#, ""),
    ]);
}

#[test]
fn an_entry_overrides_what_its_base_allows() {
    let request = read_request(&body(&[TEXT, FIRST], "")).unwrap();
    let text_only = Profile {
        modes: Some(AllowedValues::Words(vec!["text".to_owned()])),
        ..profile(V10)
    };
    let failure = request.check(&text_only).unwrap_err();
    assert_eq!(failure.code.as_str(), "model_not_supported");
    assert_eq!(request.check(&Profile::default()), Ok(()));
}
