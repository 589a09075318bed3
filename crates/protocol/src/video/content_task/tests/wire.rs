//! Tests of the bytes that upstreams and clients receive.

use super::*;

#[test]
fn the_official_client_sends_every_unset_option_as_null() {
    let body = r#"{"model":"bytedance/seedance-2-0","content":[{"type":"text","text":"a cat --ratio 16:9"}],
        "safety_identifier":null,"callback_url":null,"return_last_frame":null,"service_tier":null,"execution_expires_after":null,
        "priority":null,"generate_audio":null,"draft":null,"camera_fixed":null,"watermark":null,"seed":null,"resolution":null,
        "ratio":null,"duration":null,"frames":null,"tools":null,"output_format":null,"omni_reference_task_type":null}"#;
    let body = Bytes::from_static(body.as_bytes());
    for base in [V10, V15, V20, V25] {
        assert_eq!(refusal(base, &body), None);
    }
    let written = written(&read_request(&body).unwrap(), None);
    insta::assert_snapshot!(written, @r#"{"model":"up-1","content":[{"type":"text","text":"a cat --ratio 16:9"}]}"#);
}

#[test]
fn an_upstream_gets_its_own_names_and_nothing_of_ours() {
    let rest = r#","callback_url":"https://c.example","service_tier":"default","seed": 7 ,"ratio":null,"store":false"#;
    let request = read_request(&body(&[TEXT, DRAFT], rest)).unwrap();
    assert_eq!(request.draft(), Some("0190-ours"));
    assert_eq!(request.callback_url(), Some("https://c.example"));
    let written = written(&request, Some("cgt-2026-\"up\""));
    insta::assert_snapshot!(written, @r#"{"model":"up-1","content":[{"type":"text","text":"a cat"},{"type":"draft_task","draft_task":{"id":"cgt-2026-\"up\""}}],"seed":7}"#);
}

#[test]
fn the_bound_covers_what_upstreams_count() {
    // Width, height and frames of real answers.
    let counted = |width: u64, height: u64, frames: u64| width * height * frames / 1024;
    for (base, items, rest, least) in [
        (
            V20,
            &[TEXT][..],
            r#","duration":5"#,
            counted(1280, 720, 121),
        ),
        (
            V20,
            &[TEXT],
            r#","duration":5,"ratio":"21:9""#,
            counted(1504, 640, 121),
        ),
        (
            V20,
            &[TEXT],
            r#","duration":5,"resolution":"480p""#,
            counted(864, 496, 121),
        ),
        (
            V20,
            &[TEXT],
            r#","duration":5,"resolution":"4k""#,
            counted(3840, 2160, 121),
        ),
        (V20, &[TEXT], r#","duration":-1"#, counted(1280, 720, 361)),
        (V20, &[TEXT], "", counted(1280, 720, 361)),
        (
            V20,
            &[VIDEO],
            r#","duration":5"#,
            counted(1280, 720, 121 + 361),
        ),
        (V25, &[TEXT], "", counted(1280, 720, 721)),
        (V10, &[TEXT], r#","frames":29"#, counted(1920, 1088, 29)),
        (
            V15,
            &[TEXT],
            r#","draft":true,"duration":4"#,
            counted(864, 480, 97),
        ),
        // The final version of a draft has the duration of the draft.
        (V15, &[DRAFT], r#","duration":4"#, counted(1280, 720, 289)),
        // An edit has the duration of its source.
        (
            V25,
            &[VIDEO],
            r#","duration":4,"omni_reference_task_type":"edit""#,
            counted(1280, 720, 721 + 721),
        ),
        // An option in the text may apply instead of the member, or be replaced by a default.
        (
            V15,
            &[&said("--rs 1080p")],
            r#","duration":12"#,
            counted(1920, 1088, 289),
        ),
        (
            V15,
            &[TEXT, &said("--rs 480p")],
            r#","duration":12"#,
            counted(1280, 720, 289),
        ),
        (
            V15,
            &[&said("--rs"), &said("480p")],
            r#","duration":4,"resolution":"480p""#,
            counted(1920, 1088, 97),
        ),
        (
            V15,
            &[&said("--dur 8")],
            r#","duration":4,"resolution":"480p""#,
            counted(864, 480, 193),
        ),
        (
            V15,
            &[&said("--dur -1")],
            r#","duration":4,"resolution":"480p""#,
            counted(864, 480, 289),
        ),
        (
            V10,
            &[&said("--frames 289")],
            r#","frames":29,"resolution":"480p""#,
            counted(864, 480, 289),
        ),
    ] {
        let request = read_request(&body(items, rest)).unwrap();
        let bound = request.bound(&profile(base)).tokens;
        let sixth = least + least / 6;
        assert!(
            (least..sixth).contains(&bound),
            "{base:?} {rest}: {bound} {least}"
        );
    }
    let request = read_request(&body(&[TEXT], "")).unwrap();
    assert_eq!(request.bound(&Profile::default()).tokens, u64::MAX);
}

/// A text with options.
fn said(options: &str) -> String {
    format!(r#"{{"type":"text","text":"a cat {options}"}}"#)
}

const OURS: Task<'_> = Task {
    id: "0190-ours",
    model: "maker/film",
    upstream_model: "doubao-seedance-2-0-260128",
    hidden: &[],
    created_ms: 1_800_000_000_123,
    now_ms: 1_800_000_100_456,
    memo: None,
    public_url: "https://us",
};

fn shown(polled: PollResult) -> String {
    let text = |snapshot: Vec<u8>| String::from_utf8(snapshot).unwrap();
    match polled {
        PollResult::Running(Some(standing)) => text(standing.snapshot),
        PollResult::Ended(outcome) => {
            format!(
                "{} {:?} {}",
                outcome.status,
                outcome.used,
                text(outcome.snapshot)
            )
        }
        PollResult::Delivered(delivery) => {
            let hosted = |name: &str, kind| HostedMedium {
                id: name.to_owned(),
                kind,
                seconds: Some(5),
            };
            let names = delivery.media.iter().zip(["film", "frame"]);
            let hosted: Vec<_> = names
                .map(|(medium, name)| Some(hosted(name, medium.kind)))
                .collect();
            let sources: Vec<_> = delivery
                .media
                .iter()
                .map(|it| (&it.source, it.is_optional))
                .collect();
            let outcome = ContentTask.write_delivered(&OURS, &delivery.facts, &hosted);
            assert!(outcome.is_success);
            format!("{sources:?} {:?} {}", outcome.used, text(outcome.snapshot))
        }
        other => format!("{other:?}"),
    }
}

#[test]
fn every_answer_to_a_poll_is_understood() {
    let read = |status, body: &str| shown(ContentTask.read_poll(status, body.as_bytes(), &OURS));
    let answers = [
        read(
            200,
            r#"{"id":"cgt-1","model":"doubao-seedance-2-0-260128","status":"queued","created_at":1799999999,"updated_at":1799999999,"service_tier":"default","execution_expires_after":172800}"#,
        ),
        read(
            200,
            r#"{"id":"cgt-1","model":"doubao-seedance-2-0-260128","status":"running","created_at":1799999999,"updated_at":1800000050,"priority":3}"#,
        ),
        read(200, r#"{"status":"running","updated_at":9999999999}"#),
        read(
            200,
            r#"{"id":"cgt-1","model":"doubao-seedance-2-0-260128","status":"succeeded","error":null,"content":{"video_url":"https://t.example/v.mp4?X=1","last_frame_url":"https://t.example/f.png?X=1"},"usage":{"completion_tokens":108900,"total_tokens":108900,"tool_usage":{"web_search":1}},"created_at":1,"updated_at":2,"seed":48213,"resolution":"720p","ratio":"16:9","duration":5,"framespersecond":24,"generate_audio":true,"draft":false,"draft_task_id":"cgt-0","service_tier":"default","priority":2,"execution_expires_after":172800,"safety_identifier":"u1","tools":[{"type":"web_search","x":1}],"revised_prompt":"a \"cat\""}"#,
        ),
        read(
            200,
            r#"{"status":"succeeded","content":{"video_url":"https://t.example/v.mp4","last_frame_url":null},"usage":{"completion_tokens":-1,"total_tokens":5},"frames":57,"resolution":"<b>"}"#,
        ),
        read(
            200,
            r#"{"status":"succeeded","content":{"video_url":"https://t.example/v.mp4"}}"#,
        ),
        read(
            200,
            r#"{"status":"succeeded","content":{"file_url":"https://t.example/v.glb"},"usage":{"completion_tokens":9}}"#,
        ),
        read(200, r#"{"status":"succeeded","content":[]}"#),
        read(
            200,
            r#"{"status":"failed","error":{"code":"OutputVideoSensitiveContentDetected.PolicyViolation","message":"The output of doubao-seedance-2-0-260128 may contain sensitive information. Request id: 02170000000000000000000000000000"}}"#,
        ),
        read(
            200,
            r#"{"status":"failed","error":{"code":"<script>","message":""},"usage":{"completion_tokens":7}}"#,
        ),
        read(200, r#"{"status":"failed","error":null}"#),
        read(200, r#"{"status":"expired"}"#),
        read(200, r#"{"status":"cancelled"}"#),
        read(200, r#"{"status":"canceled"}"#),
        read(
            404,
            r#"{"error":{"code":"ResourceNotFound","message":"no such task"}}"#,
        ),
        read(200, r#"{"status":"resting"}"#),
        read(200, "[]"),
        read(200, "<html>"),
        read(500, r#"{"status":"succeeded"}"#),
        read(429, r#"{"error":{"code":"RateLimitExceeded"}}"#),
    ];
    insta::assert_snapshot!(answers.join("\n"));
}

#[test]
fn a_film_that_was_asked_for_as_mov_is_one() {
    let request = read_request(&body(&[TEXT], r#","output_format":"mov""#)).unwrap();
    let memo = request.memo();
    let task = Task {
        memo: memo.as_deref(),
        ..OURS
    };
    let made = br#"{"status":"succeeded","content":{"video_url":"https://t.example/v.mov"}}"#;
    let PollResult::Delivered(delivery) = ContentTask.read_poll(200, made, &task) else {
        panic!("a result");
    };
    assert_eq!(delivery.media[0].kind.extension(), "mov");
    assert_eq!(
        delivery.media[0].source,
        Source::Url("https://t.example/v.mov".to_owned())
    );
}

#[test]
fn a_frame_that_could_not_be_kept_is_left_out() {
    let film = HostedMedium {
        id: "film".to_owned(),
        kind: crate::video::MediaKind::Mp4,
        seconds: None,
    };
    let outcome = ContentTask.write_delivered(&OURS, "{}", &[Some(film), None]);
    insta::assert_snapshot!(String::from_utf8(outcome.snapshot).unwrap(), @r#"{"id":"0190-ours","model":"maker/film","status":"succeeded","created_at":1800000000,"updated_at":1800000100,"error":null,"content":{"video_url":"https://us/media/film.mp4"}}"#);
}

#[test]
fn only_ones_own_succeeded_draft_of_the_same_model_is_promoted() {
    let draft = read_request(&body(&[TEXT], r#","draft":true"#)).unwrap();
    let memo = draft.memo();
    let request = read_request(&body(&[DRAFT], "")).unwrap();
    let found = Draft {
        model: "a/b",
        status: "succeeded",
        memo: memo.as_deref(),
    };
    assert_eq!(request.check_draft(&found), Ok(()));
    for found in [
        Draft {
            model: "a/c",
            ..found
        },
        Draft {
            status: "running",
            ..found
        },
        Draft {
            status: "failed",
            ..found
        },
        Draft {
            memo: None,
            ..found
        },
        Draft {
            memo: Some("mov"),
            ..found
        },
    ] {
        let failure = request.check_draft(&found).unwrap_err();
        assert_eq!(
            failure.param.as_deref(),
            Some("content.draft_task.id"),
            "{found:?}"
        );
    }
}

#[test]
fn a_finished_draft_is_named_by_our_id() {
    let request = read_request(&body(&[DRAFT], r#","output_format":"mov""#)).unwrap();
    let memo = request.memo();
    assert!(
        request
            .check_draft(&Draft {
                model: "a/b",
                status: "succeeded",
                memo: memo.as_deref()
            })
            .is_err()
    );
    let task = Task {
        memo: memo.as_deref(),
        ..OURS
    };
    let facts = r#"{"draft":false,"draft_task_id":"cgt-theirs"}"#;
    let outcome = ContentTask.write_delivered(&task, facts, &[None]);
    let shown: serde_json::Value = serde_json::from_slice(&outcome.snapshot).unwrap();
    assert_eq!(shown["draft_task_id"].as_str(), request.draft());
    assert_eq!(shown["draft"], false);
}

#[test]
fn the_platform_waits_an_hour_longer_than_the_upstream() {
    let hours = |rest: &str| {
        let request = read_request(&body(&[TEXT], rest)).unwrap();
        request.lifetime().map(|lifetime| lifetime.as_secs() / 3600)
    };
    assert_eq!(hours(""), None);
    assert_eq!(hours(r#","execution_expires_after":7200"#), Some(3));
}

#[test]
fn queued_tasks_are_cancelled_and_ended_tasks_are_removed() {
    for (status, deletion) in [
        ("queued", Deletion::Cancel),
        ("running", Deletion::Running),
        ("cancelled", Deletion::Cancelled),
        ("succeeded", Deletion::Remove),
        ("failed", Deletion::Remove),
        ("expired", Deletion::Remove),
    ] {
        assert_eq!(ContentTask.deletion(status), deletion, "{status}");
    }
}

#[test]
fn our_own_words_have_the_protocols_shape() {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let queued = ContentTask.write_first(&OURS).snapshot;
    let failed = ContentTask.write_failed(&OURS, Cause::Gone, "A \"reason\".");
    let words = [
        text(ContentTask.write_accepted(&OURS)),
        text(write_list([&queued[..], &queued[..]], 7)),
        text(write_list([], 0)),
        text(failed.snapshot),
        text(ContentTask.write_expired(&OURS).snapshot),
        text(ContentTask.write_cancelled(&OURS).unwrap().snapshot),
    ];
    insta::assert_snapshot!(words.join("\n"));
    let accepted = |body: &str| ContentTask.read_creation(body.as_bytes(), &OURS);
    let named = accepted(r#"{"id":"cgt-1","safety_identifier":"x"}"#);
    assert_eq!(named, CreationResult::Follow("cgt-1".to_owned()));
    for body in ["", "{}", r#"{"id":""}"#, r#"{"id":7}"#, "[]"] {
        assert_eq!(accepted(body), CreationResult::Unclear, "{body}");
    }
}
