use bytes::Bytes;

use super::report::{read_creation, read_poll};
use super::*;
use crate::failure::Failure;
use crate::profile::{BuiltInProfile, Profile};
use crate::video::{
    Cause, CreationRequest, HostedMedium, MediaKind, Outcome, PollResult, Protocol, Task,
};

const TASK: Task<'_> = Task {
    id: "task-1",
    model: "maker/film",
    upstream_model: "film-3-preview",
    hidden: &[],
    created_ms: 1_767_225_600_000,
    now_ms: 1_767_225_660_000,
    memo: Some("8"),
    public_url: "https://gateway.example",
};

fn hosted(seconds: Option<u64>) -> HostedMedium {
    HostedMedium {
        id: "abc".to_owned(),
        kind: MediaKind::Mp4,
        seconds,
    }
}

fn describe(outcome: &Outcome) -> String {
    let snapshot = String::from_utf8_lossy(&outcome.snapshot);
    let used = (outcome.used.tokens, outcome.used.seconds);
    format!(
        "{} {} {used:?} {snapshot}",
        outcome.status, outcome.is_success
    )
}

fn profile(base: BuiltInProfile) -> Profile {
    let own = Profile {
        base: Some(base),
        ..Profile::default()
    };
    own.over_base()
}

fn read(body: &str) -> Result<Request, Failure> {
    read_request(&Bytes::copy_from_slice(body.as_bytes()), "maker/film")
}

/// The code and the member of a refusal.
fn refusal(base: BuiltInProfile, body: &str) -> Option<(String, String)> {
    let read = read(body).and_then(|request| request.check(&profile(base)));
    let mut failure = read.err()?;
    assert_eq!(failure.status(), 400, "{body}");
    let param = failure.param.take().unwrap_or_default();
    Some((failure.code.as_str().to_owned(), param.into_owned()))
}

fn with(instance: &str, parameters: &str) -> String {
    format!(r#"{{"instances":[{{{instance}}}],"parameters":{{{parameters}}}}}"#)
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn every_rule_has_its_refusal() {
    let text = r#""prompt":"x""#;
    let ok = None;
    let invalid = |param| Some(("invalid_request", param));
    let unsupported = |param| Some(("unsupported_parameter", param));
    let stateful = |param| Some(("stateful_not_supported", param));
    let image = |inside: &str| format!(r#""image":{{{inside}}}"#);
    let plain = with(text, "");
    let top = |member: &str| plain.replacen('{', &format!("{{{member},"), 1);
    let parameters = |inside: &str| with(text, inside);
    let table = [
        // instances
        (plain.clone(), ok),
        (r#"{"instances":[{"prompt":"x"}]}"#.to_owned(), ok),
        (
            r#"{"instances":[{"prompt":"x"}],"parameters":null}"#.to_owned(),
            ok,
        ),
        ("{}".to_owned(), invalid("instances")),
        (r#"{"instances":null}"#.to_owned(), invalid("instances")),
        (r#"{"instances":[]}"#.to_owned(), invalid("instances")),
        (
            r#"{"instances":{"prompt":"x"}}"#.to_owned(),
            invalid("instances"),
        ),
        (
            r#"{"instances":[{"prompt":"x"},{"prompt":"y"}]}"#.to_owned(),
            invalid("instances"),
        ),
        (r#"{"instances":["x"]}"#.to_owned(), invalid("instances[0]")),
        ("[]".to_owned(), invalid("")),
        // prompt
        (with("", ""), invalid("instances[0].prompt")),
        (with(r#""prompt":" ""#, ""), invalid("instances[0].prompt")),
        (with(r#""prompt":7"#, ""), invalid("instances[0].prompt")),
        // the starting image
        (
            with(
                &image(r#""bytesBase64Encoded":"iVBORw0","mimeType":"image/png""#),
                "",
            ),
            ok,
        ),
        (with(&image(r#""bytes_base64_encoded":"iVBORw0""#), ""), ok),
        (
            with(
                &image(r#""inlineData":{"data":"_9j-","mimeType":"image/jpeg"}"#),
                "",
            ),
            ok,
        ),
        (with(r#""image":null,"prompt":"x""#, ""), ok),
        (
            with(r#""image":"iVBORw0""#, ""),
            invalid("instances[0].image"),
        ),
        (with(&image(""), ""), invalid("instances[0].image")),
        (
            with(&image(r#""bytesBase64Encoded":"<png>""#), ""),
            invalid("instances[0].image"),
        ),
        (
            with(&image(r#""bytesBase64Encoded":"""#), ""),
            invalid("instances[0].image"),
        ),
        (
            with(
                &image(r#""bytesBase64Encoded":"iVBORw0","inlineData":{"data":"iVBORw0"}"#),
                "",
            ),
            invalid("instances[0].image"),
        ),
        (
            with(
                &image(r#""bytesBase64Encoded":"iVBORw0","mimeType":"video/mp4""#),
                "",
            ),
            invalid("instances[0].image.mimeType"),
        ),
        (
            with(
                &image(r#""gcsUri":"gs://b/a.png","mimeType":"image/png""#),
                "",
            ),
            stateful("instances[0].image"),
        ),
        (
            with(&image(r#""fileUri":"https://x""#), ""),
            stateful("instances[0].image"),
        ),
        // inputs that are not exposed
        (
            with(r#""prompt":"x","video":{"uri":"u"}"#, ""),
            unsupported("instances[0].video"),
        ),
        (with(r#""prompt":"x","video":null"#, ""), ok),
        (
            with(r#""prompt":"x","lastFrame":{}"#, ""),
            unsupported("instances[0].lastFrame"),
        ),
        (
            with(r#""prompt":"x","last_frame":{}"#, ""),
            unsupported("instances[0].lastFrame"),
        ),
        (
            with(r#""prompt":"x","referenceImages":[]"#, ""),
            unsupported("instances[0].referenceImages"),
        ),
        (
            parameters(r#""lastFrame":{}"#),
            unsupported("parameters.lastFrame"),
        ),
        (
            parameters(r#""storageUri":"gs://b""#),
            stateful("parameters.storageUri"),
        ),
        (parameters(r#""storageUri":null"#), ok),
        (
            parameters(r#""pubsubTopic":"t""#),
            stateful("parameters.pubsubTopic"),
        ),
        // duration and properties
        (parameters(r#""durationSeconds":4"#), ok),
        (parameters(r#""durationSeconds":"6""#), ok),
        (parameters(r#""duration_seconds":8"#), ok),
        (parameters(r#""durationSeconds":null"#), ok),
        (
            parameters(r#""durationSeconds":5"#),
            invalid("parameters.durationSeconds"),
        ),
        (
            parameters(r#""durationSeconds":0"#),
            invalid("parameters.durationSeconds"),
        ),
        (
            parameters(r#""durationSeconds":-8"#),
            invalid("parameters.durationSeconds"),
        ),
        (
            parameters(r#""durationSeconds":8.5"#),
            invalid("parameters.durationSeconds"),
        ),
        (
            parameters(r#""durationSeconds":"eight""#),
            invalid("parameters.durationSeconds"),
        ),
        (parameters(r#""resolution":"720p""#), ok),
        (parameters(r#""resolution":"1080p""#), ok),
        (
            parameters(r#""resolution":"1080p","durationSeconds":8"#),
            ok,
        ),
        (
            parameters(r#""resolution":"1080p","durationSeconds":6"#),
            invalid("parameters.durationSeconds"),
        ),
        (parameters(r#""resolution":"4k","durationSeconds":"8""#), ok),
        (
            parameters(r#""resolution":"4k","durationSeconds":4"#),
            invalid("parameters.durationSeconds"),
        ),
        (
            parameters(r#""resolution":"480p""#),
            invalid("parameters.resolution"),
        ),
        (
            parameters(r#""resolution":720"#),
            invalid("parameters.resolution"),
        ),
        (parameters(r#""aspectRatio":"9:16""#), ok),
        (
            parameters(r#""aspectRatio":"1:1""#),
            invalid("parameters.aspectRatio"),
        ),
        // number of videos
        (parameters(r#""numberOfVideos":1"#), ok),
        (parameters(r#""sampleCount":1"#), ok),
        (
            parameters(r#""numberOfVideos":null,"sampleCount":null"#),
            ok,
        ),
        (
            parameters(r#""numberOfVideos":2"#),
            invalid("parameters.numberOfVideos"),
        ),
        (
            parameters(r#""numberOfVideos":0"#),
            invalid("parameters.numberOfVideos"),
        ),
        (
            parameters(r#""numberOfVideos":"1""#),
            invalid("parameters.numberOfVideos"),
        ),
        (
            parameters(r#""sampleCount":4"#),
            invalid("parameters.sampleCount"),
        ),
        // values that the upstream checks must still have the right type
        (
            parameters(
                r#""personGeneration":"allow_adult","negativePrompt":"n","enhancePrompt":true,"seed":7,"generateAudio":true"#,
            ),
            ok,
        ),
        (
            parameters(r#""personGeneration":1"#),
            invalid("parameters.personGeneration"),
        ),
        (
            parameters(r#""negativePrompt":[]"#),
            invalid("parameters.negativePrompt"),
        ),
        (parameters(r#""seed":"7""#), invalid("parameters.seed")),
        // other members
        (top(r#""callback_url":"https://c.example""#), ok),
        (top(r#""callback_url":7"#), invalid("callbackUrl")),
        (top(r#""model":"models/maker/film""#), ok),
        (top(r#""model":"maker/other""#), invalid("model")),
        (
            top(r#""webhookConfig":{"uris":[]}"#),
            stateful("webhookConfig"),
        ),
        (
            top(r#""provider":"p""#),
            Some(("routing_not_supported", "provider")),
        ),
        (
            top(r#""serviceTier":"priority""#),
            Some(("service_tier_not_supported", "service_tier")),
        ),
        (top(r#""instances":[]"#), invalid("instances")),
    ];
    for (body, expected) in table {
        let expected = expected.map(|(code, param)| (code.to_owned(), param.to_owned()));
        assert_eq!(
            refusal(BuiltInProfile::Predict31, &body),
            expected,
            "{body}"
        );
    }
}

#[test]
fn the_tiers_differ_in_their_finest_resolution() {
    let body = with(r#""prompt":"x""#, r#""resolution":"4k""#);
    for (base, is_refused) in [
        (BuiltInProfile::Predict31, false),
        (BuiltInProfile::Predict31Fast, false),
        (BuiltInProfile::Predict31Lite, true),
    ] {
        assert_eq!(refusal(base, &body).is_some(), is_refused, "{base:?}");
    }
    let body = with(
        r#""prompt":"x""#,
        r#""resolution":"1080p","durationSeconds":4"#,
    );
    assert!(refusal(BuiltInProfile::Predict31Lite, &body).is_some());
}

#[test]
fn a_mode_that_the_model_lacks_is_refused() {
    let body = with(r#""image":{"bytesBase64Encoded":"AAAA"}"#, "");
    let profile: Profile =
        serde_json::from_str(r#"{"base":"predict-3.1","modes":["text"]}"#).unwrap();
    let failure = read(&body)
        .unwrap()
        .check(&profile.over_base())
        .unwrap_err();
    assert_eq!(failure.code.as_str(), "model_not_supported");
}

#[test]
fn an_upstream_gets_what_is_billed_by_and_nothing_of_ours() {
    let written = |body: &str| {
        let request = read(body).unwrap();
        let bytes = request.write_body().concat();
        let _: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    let bodies = [
        written(r#"{"instances":[{"prompt":"a \"b\""}]}"#),
        written(
            r#"{ "callback_url":"https://c", "instances":[ {"image":{"mime_type":"image/png","bytes_base64_encoded":"iVBORw0="},"prompt":"x","lastFrame":null} ],"model":null,
            "parameters":{"number_of_videos":1,"sampleCount":1,"duration_seconds":"4","negative_prompt":"blur","aspect_ratio":"9:16","seed":null}, "labels":{"a":"b"} }"#,
        ),
        written(r#"{"instances":[{"image":{"inlineData":{"data":"\/9j/4AA"}}}]}"#),
    ];
    insta::assert_snapshot!(bodies.join("\n"));
}

#[test]
fn the_hold_is_for_the_requested_seconds_and_resolution() {
    let request = read(&with(r#""prompt":"x""#, "")).unwrap();
    assert_eq!((request.seconds(), request.resolution()), (8, "720p"));
    let body = with(
        r#""prompt":"x""#,
        r#""durationSeconds":"4","resolution":"4k""#,
    );
    let request = read(&body).unwrap();
    assert_eq!((request.seconds(), request.resolution()), (4, "4k"));
}

#[test]
fn names_of_operations_are_paths() {
    for (body, name) in [
        (
            r#"{"name":"models/film/operations/k3x9"}"#,
            Some("models/film/operations/k3x9"),
        ),
        (r#"{"name":"operations/1"}"#, Some("operations/1")),
        (r#"{"name":""}"#, None),
        (r#"{"name":"models/../operations/1"}"#, None),
        (r#"{"name":"/operations/1"}"#, None),
        (r#"{"name":"operations/1?key=2"}"#, None),
        (r#"{"name":"operations/a b"}"#, None),
        (r#"{"name":7}"#, None),
        ("{}", None),
        ("<html>", None),
    ] {
        assert_eq!(read_creation(body.as_bytes()).as_deref(), name, "{body}");
    }
}

fn shown(polled: PollResult) -> String {
    match polled {
        PollResult::Ended(outcome) => describe(&outcome),
        PollResult::Running(Some(standing)) => {
            let snapshot = String::from_utf8(standing.snapshot).unwrap();
            format!("{} {:?} {snapshot}", standing.status, standing.progress)
        }
        other => format!("{other:?}"),
    }
}

#[test]
fn every_answer_to_a_poll_is_understood() {
    let read = |status, body: &str| shown(read_poll(status, body.as_bytes(), &TASK));
    let name = r#""name":"models/film-3-preview/operations/k3""#;
    let done = |rest: &str| read(200, &format!(r#"{{{name},"done":true,{rest}}}"#));
    let answers = [
        read(200, &format!("{{{name}}}")),
        read(
            200,
            &format!(r#"{{{name},"done":false,"metadata":{{"progressPercent":37}}}}"#),
        ),
        read(
            200,
            &format!(r#"{{{name},"done":false,"metadata":{{"progressPercent":37.5}}}}"#),
        ),
        read(200, &format!(r#"{{{name},"done":"yes"}}"#)),
        read(200, "{}"),
        read(200, "[]"),
        read(200, "<html>"),
        read(404, r#"{"error":{"code":404}}"#),
        read(500, &format!(r#"{{{name},"done":true}}"#)),
        done(
            r#""response":{"@type":"t","generateVideoResponse":{"generatedSamples":[{"video":{"uri":"https://up.example/v1beta/files/q1:download?alt=media"}}]}}"#,
        ),
        done(
            r#""response":{"generateVideoResponse":{"generatedSamples":[{"video":{"encodedVideo":"AAAAIGZ0","encoding":"video/mp4"}}]}}"#,
        ),
        done(
            r#""response":{"generateVideoResponse":{"generatedVideos":[{"video":{"uri":"https://up.example/a"}}]}}"#,
        ),
        done(r#""response":{"generatedSamples":[{"video":{"uri":"http://up.example/a"}}]}"#),
        done(
            r#""response":{"videos":[{"gcsUri":"gs://b/a"},{"bytesBase64Encoded":"AAAA","mimeType":"video/mp4"}]}"#,
        ),
        done(r#""response":{"videos":[{"gcsUri":"gs://b/a"}]}"#),
        done(
            r#""response":{"generateVideoResponse":{"generatedSamples":[{"video":{"uri":"file:///etc/passwd"}}]}}"#,
        ),
        done(
            r#""response":{"generateVideoResponse":{"raiMediaFilteredCount":1,"raiMediaFilteredReasons":["film-3-preview: see https://up.example/policy"]}}"#,
        ),
        done(r#""response":{"videos":[],"raiMediaFilteredCount":2}"#),
        done(r#""response":{}"#),
        done(r#""response":null"#),
        done(r#""error":{"code":3,"message":"film-3-preview takes no such image.","details":[]}"#),
        done(r#""error":{"code":400,"message":""},"response":{}"#),
        done(r#""error":"no""#),
    ];
    insta::assert_snapshot!(answers.join("\n"));
}

#[test]
fn every_state_has_its_snapshot() {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let delivered =
        |seconds| describe(&Predict.write_delivered(&TASK, "", &[Some(hosted(seconds))]));
    let failed = |cause| describe(&Predict.write_failed(&TASK, cause, "It broke."));
    let snapshots = [
        text(Predict.write_accepted(&TASK)),
        text(Predict.write_first(&TASK).snapshot),
        delivered(Some(9)),
        delivered(Some(4)),
        delivered(None),
        describe(&Predict.write_delivered(&TASK, "", &[None])),
        failed(Cause::Refused),
        failed(Cause::Gone),
        failed(Cause::Ambiguous),
        describe(&Predict.write_expired(&TASK)),
    ];
    insta::assert_snapshot!(snapshots.join("\n"));
}
