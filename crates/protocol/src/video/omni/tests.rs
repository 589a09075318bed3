use bytes::Bytes;

use super::report::read_answer;
use super::*;
use crate::failure::Failure;
use crate::profile::{BuiltInProfile, Profile};
use crate::video::{
    Cause, CreationRequest, CreationResult, HostedMedium, MediaKind, Outcome, Protocol,
    ReportedUsage, Task,
};

const TASK: Task<'_> = Task {
    id: "task-1",
    model: "maker/omni",
    upstream_model: "omni-1.1-flash",
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

fn profile() -> Profile {
    let bare = Profile {
        base: Some(BuiltInProfile::Omni11),
        ..Profile::default()
    };
    bare.over_base()
}

fn read(body: &str) -> Result<Request, Failure> {
    read_request(&Bytes::copy_from_slice(body.as_bytes()))
}

/// The code and the member of a refusal.
fn refusal(body: &str) -> Option<(String, String)> {
    let read = read(body).and_then(|request| request.check(&profile()));
    let mut failure = read.err()?;
    assert_eq!(failure.status(), 400, "{body}");
    let param = failure.param.take().unwrap_or_default();
    Some((failure.code.as_str().to_owned(), param.into_owned()))
}

const IMAGE: &str = r#"{"type":"image","data":"iVBORw0=","mime_type":"image/png"}"#;
const VIDEO: &str = r#"{"type":"video","data":"AAAAIGZ0","mime_type":"video/mp4"}"#;
const TEXT: &str = r#"{"type":"text","text":"fog"}"#;

fn input(input: &str) -> String {
    format!(r#"{{"model":"maker/omni","input":{input}}}"#)
}

fn beside(members: &str) -> String {
    format!(r#"{{"model":"maker/omni","input":"fog",{members}}}"#)
}

fn format(members: &str) -> String {
    beside(&format!(r#""response_format":{{"type":"video"{members}}}"#))
}

fn task(task: &str, items: &str) -> String {
    format!(
        r#"{{"model":"maker/omni","input":[{items}],"generation_config":{{"video_config":{{"task":"{task}"}}}}}}"#
    )
}

fn assert_refusals<const N: usize>(table: [(String, (&str, &str)); N]) {
    for (body, expected) in table {
        let (code, param) = refusal(&body).unwrap_or_default();
        assert_eq!((&*code, &*param), expected, "{body}");
    }
}

/// Not refused.
const OK: (&str, &str) = ("", "");

fn invalid(param: &str) -> (&str, &str) {
    ("invalid_request", param)
}

fn unsupported(param: &str) -> (&str, &str) {
    ("unsupported_parameter", param)
}

fn stateful(param: &str) -> (&str, &str) {
    ("stateful_not_supported", param)
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn every_rule_of_the_input_has_its_refusal() {
    let step = |content: &str| format!(r#"{{"type":"user_input","content":{content}}}"#);
    assert_refusals([
        (input(r#""fog""#), OK),
        (input(TEXT), OK),
        (input(&format!("[{TEXT}]")), OK),
        (input(&format!("[{TEXT},{TEXT}]")), OK),
        (input(&step(r#""fog""#)), OK),
        (
            input(&format!("[{}]", step(&format!("[{TEXT},{IMAGE}]")))),
            OK,
        ),
        (input(&format!("[{}]", step(TEXT))), OK),
        (input(r#"[{"role":"user","content":"fog"}]"#), OK),
        (input(&format!("[{IMAGE}]")), OK),
        (input(&format!("[{VIDEO},{TEXT}]")), OK),
        (r#"{"model":"maker/omni"}"#.to_owned(), invalid("input")),
        (r#"{"input":"fog"}"#.to_owned(), invalid("model")),
        (r#"{"model":"","input":"fog"}"#.to_owned(), invalid("model")),
        (input("null"), invalid("input")),
        (input("7"), invalid("input")),
        (input(r#""""#), invalid("input")),
        (input(r#"" ""#), invalid("input")),
        (input("[]"), invalid("input")),
        (input("{}"), invalid("input")),
        (input(r#"["fog"]"#), invalid("input")),
        (input(&step("[]")), invalid("input")),
        (input(r#"{"type":"text","text":7}"#), invalid("input.text")),
        (input(r#"{"type":"smell"}"#), invalid("input")),
        (input(&step(r#"[{"type":"smell"}]"#)), invalid("input")),
        // one image or one video
        (
            input(&format!("[{TEXT},{IMAGE},{IMAGE}]")),
            invalid("input"),
        ),
        (
            input(&format!("[{TEXT},{VIDEO},{VIDEO}]")),
            invalid("input"),
        ),
        (
            input(&format!("[{TEXT},{IMAGE},{VIDEO}]")),
            invalid("input"),
        ),
        (input(&format!("[{VIDEO}]")), invalid("input")),
        (
            input(r#"[{"type":"image","mime_type":"image/png"}]"#),
            invalid("input"),
        ),
        (
            input(r#"[{"type":"image","data":"iVBORw0="}]"#),
            invalid("input"),
        ),
        (
            input(r#"[{"type":"image","data":"<png>","mime_type":"image/png"}]"#),
            invalid("input"),
        ),
        (
            input(r#"[{"type":"image","data":"iVBORw0=","mime_type":"video/mp4"}]"#),
            invalid("input"),
        ),
        (
            input(
                r#"[{"type":"image","data":"iVBORw0=","uri":"https://x","mime_type":"image/png"}]"#,
            ),
            invalid("input"),
        ),
        (
            input(r#"[{"type":"image","uri":"https://x.example/a.png"}]"#),
            OK,
        ),
        (
            input(r#"[{"type":"image","uri":"gs://b/a.png"}]"#),
            stateful("input"),
        ),
        (
            input(
                r#"[{"type":"image","uri":"https://generativelanguage.googleapis.com/v1beta/files/a"}]"#,
            ),
            stateful("input"),
        ),
        (
            input(
                r#"[{"type":"image","uri":"https://GenerativeLanguage.googleapis.com:443/v1beta/files/a"}]"#,
            ),
            stateful("input"),
        ),
        (
            input(
                r#"[{"type":"image","uri":"https://generativelanguage.mtls.googleapis.com/v1beta/files/a"}]"#,
            ),
            stateful("input"),
        ),
        (
            input(&format!(r#"[{TEXT},{{"type":"audio","data":"AAAA"}}]"#)),
            unsupported("input"),
        ),
        (
            input(&format!(
                r#"[{TEXT},{{"type":"document","uri":"files/a"}}]"#
            )),
            unsupported("input"),
        ),
        // one turn
        (
            input(&format!("[{},{}]", step(TEXT), step(TEXT))),
            stateful("input"),
        ),
        (
            input(&format!(
                r#"[{},{{"type":"model_output","content":[]}}]"#,
                step(TEXT)
            )),
            stateful("input"),
        ),
        (
            input(r#"[{"type":"thought","signature":"s"}]"#),
            stateful("input"),
        ),
        (
            input(r#"[{"role":"model","content":"x"}]"#),
            stateful("input"),
        ),
        (input(&format!("[{},{TEXT}]", step(TEXT))), invalid("input")),
        (
            input(&format!("[{TEXT},{}]", step(TEXT))),
            stateful("input"),
        ),
    ]);
}

#[test]
fn every_rule_of_the_task_has_its_refusal() {
    let param = "generation_config.video_config.task";
    assert_refusals([
        (task("text_to_video", TEXT), OK),
        (task("image_to_video", &format!("{TEXT},{IMAGE}")), OK),
        (task("edit", &format!("{TEXT},{VIDEO}")), OK),
        (
            task("text_to_video", &format!("{TEXT},{IMAGE}")),
            invalid("input"),
        ),
        (
            task("text_to_video", &format!("{TEXT},{VIDEO}")),
            invalid("input"),
        ),
        (task("image_to_video", TEXT), invalid("input")),
        (
            task("image_to_video", &format!("{TEXT},{VIDEO}")),
            invalid("input"),
        ),
        (
            task("image_to_video", &format!("{IMAGE},{IMAGE}")),
            invalid("input"),
        ),
        (task("edit", TEXT), invalid("input")),
        (task("edit", &format!("{TEXT},{IMAGE}")), invalid("input")),
        (task("extend", &format!("{TEXT},{VIDEO}")), invalid(param)),
        (
            task("reference_to_video", &format!("{TEXT},{IMAGE}")),
            invalid(param),
        ),
        (task("upscale", &format!("{TEXT},{VIDEO}")), invalid(param)),
        (
            task("interpolate", &format!("{TEXT},{IMAGE}")),
            invalid(param),
        ),
        (
            beside(r#""generation_config":{"video_config":{"task":7}}"#),
            invalid(param),
        ),
        (
            beside(r#""generation_config":{"video_config":{"task":null}}"#),
            OK,
        ),
        (
            beside(r#""generation_config":{"video_config":null,"temperature":null}"#),
            OK,
        ),
        (
            beside(r#""generation_config":{"video_config":{"last_frame":{}}}"#),
            unsupported("generation_config.video_config.last_frame"),
        ),
        (
            beside(r#""generation_config":{"temperature":0.5}"#),
            unsupported("generation_config.temperature"),
        ),
        (
            beside(r#""generation_config":{"seed":1}"#),
            unsupported("generation_config.seed"),
        ),
        (
            beside(r#""generation_config":[]"#),
            invalid("generation_config"),
        ),
    ]);
}

#[test]
fn every_rule_of_the_format_has_its_refusal() {
    let (resolution, duration) = ("response_format.resolution", "response_format.duration");
    assert_refusals([
        (format(""), OK),
        (
            beside(r#""response_format":[{"type":"video","resolution":null}]"#),
            OK,
        ),
        (beside(r#""response_format":null"#), OK),
        (
            beside(r#""response_format":[]"#),
            invalid("response_format"),
        ),
        (
            beside(r#""response_format":[{"type":"video"},{"type":"text"}]"#),
            invalid("response_format"),
        ),
        (
            beside(r#""response_format":{"type":"text"}"#),
            invalid("response_format.type"),
        ),
        (
            beside(r#""response_format":{}"#),
            invalid("response_format.type"),
        ),
        (
            beside(r#""response_format":"video""#),
            invalid("response_format"),
        ),
        (format(r#","resolution":"360p""#), OK),
        (format(r#","resolution":"1080p""#), OK),
        (format(r#","resolution":"4k""#), OK),
        (format(r#","resolution":"480p""#), invalid(resolution)),
        (format(r#","resolution":720"#), invalid(resolution)),
        (format(r#","aspect_ratio":"9:16""#), OK),
        (
            format(r#","aspect_ratio":"1:1""#),
            invalid("response_format.aspect_ratio"),
        ),
        (format(r#","duration":"3s""#), OK),
        (format(r#","duration":"10s""#), OK),
        (format(r#","duration":"2s""#), invalid(duration)),
        (format(r#","duration":"11s""#), invalid(duration)),
        (format(r#","duration":"-3s""#), invalid(duration)),
        (format(r#","duration":"5.5s""#), invalid(duration)),
        (format(r#","duration":"s""#), invalid(duration)),
        (format(r#","duration":"8""#), invalid(duration)),
        (format(r#","duration":8"#), invalid(duration)),
        (
            format(r#","delivery":"inline","mime_type":"video/mp4""#),
            OK,
        ),
        (
            format(r#","mime_type":"video/webm""#),
            invalid("response_format.mime_type"),
        ),
        (
            format(r#","gcs_uri":"gs://b""#),
            stateful("response_format.gcs_uri"),
        ),
        (format(r#","fps":60"#), unsupported("response_format.fps")),
    ]);
}

#[test]
fn every_rule_beside_them_has_its_refusal() {
    assert_refusals([
        (
            beside(r#""background":true,"store":true,"stream":false"#),
            OK,
        ),
        (
            beside(
                r#""previous_interaction_id":null,"agent":null,"environment":null,"webhook_config":null,"tools":null,"callback_url":null"#,
            ),
            OK,
        ),
        (beside(r#""stream":true"#), unsupported("stream")),
        (beside(r#""stream":"no""#), invalid("stream")),
        (beside(r#""store":1"#), invalid("store")),
        (
            beside(r#""previous_interaction_id":"i""#),
            stateful("previous_interaction_id"),
        ),
        (
            beside(r#""continuation_token":"t""#),
            stateful("continuation_token"),
        ),
        (beside(r#""agent":"a""#), stateful("agent")),
        (beside(r#""agent_config":{}"#), stateful("agent_config")),
        (beside(r#""environment":{}"#), stateful("environment")),
        (beside(r#""webhook_config":{}"#), stateful("webhook_config")),
        (
            beside(r#""cached_content":"c""#),
            stateful("cached_content"),
        ),
        (
            beside(r#""system_instruction":"s""#),
            unsupported("system_instruction"),
        ),
        (beside(r#""tools":[]"#), unsupported("tools")),
        (beside(r#""response_modalities":["VIDEO"]"#), OK),
        (
            beside(r#""response_modalities":["text"]"#),
            invalid("response_modalities"),
        ),
        (beside(r#""callback_url":7"#), invalid("callback_url")),
        (
            beside(r#""models":[]"#),
            ("routing_not_supported", "models"),
        ),
        (
            beside(r#""service_tier":"flex""#),
            ("service_tier_not_supported", "service_tier"),
        ),
        (beside(r#""service_tier":"standard""#), OK),
        (beside(r#""input":"again""#), invalid("input")),
    ]);
}

#[test]
fn a_task_that_the_model_lacks_is_refused() {
    let body = task("edit", &format!("{TEXT},{VIDEO}"));
    let profile: Profile =
        serde_json::from_str(r#"{"base":"omni-1.1","modes":["text_to_video"]}"#).unwrap();
    let failure = read(&body)
        .unwrap()
        .check(&profile.over_base())
        .unwrap_err();
    assert_eq!(
        failure.param.as_deref(),
        Some("generation_config.video_config.task")
    );
}

#[test]
fn an_upstream_gets_one_step_and_nothing_of_ours() {
    let written = |body: &str| {
        let request = read(body).unwrap();
        request.check(&profile()).unwrap();
        let bytes = request.write_for("omni-1.1-flash").concat();
        let _: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        let bound = (request.seconds_max(&profile()), request.resolution());
        format!("{bound:?} {}", String::from_utf8(bytes).unwrap())
    };
    let bodies = [
        written(&beside(
            r#""callback_url":"https://c","background":true,"store":true"#,
        )),
        written(&format(
            r#","duration":"4s","resolution":"4k","aspect_ratio":"9:16","delivery":"inline""#,
        )),
        written(&input(&format!(
            r#"[ {{"type":"user_input","content":[{TEXT}, {IMAGE}]}} ]"#
        ))),
        written(&input(&format!("[{VIDEO},{TEXT}]"))),
        written(&input(r#"{"type":"user_input","content":"a \"b\""}"#)),
    ];
    insta::assert_snapshot!(bodies.join("\n"));
}

fn shown(accepted: CreationResult) -> String {
    match accepted {
        CreationResult::Ended(outcome) => describe(&outcome),
        CreationResult::Delivered(delivery) => {
            let media = [Some(hosted(Some(10)))];
            let outcome = Omni.write_delivered(&TASK, &delivery.facts, &media);
            format!("{:?} {}", delivery.media, describe(&outcome))
        }
        other => format!("{other:?}"),
    }
}

#[test]
fn every_answer_is_understood() {
    let read = |body: &str| shown(read_answer(body.as_bytes(), &TASK));
    let completed = |steps: &str| {
        read(&format!(
            r#"{{"id":"v1_up","model":"omni-1.1-flash","status":"completed","steps":[{steps}],"usage":{{"total_input_tokens":41,"input_tokens_by_modality":[{{"modality":"text","tokens":41}}],"total_output_tokens":57920,"output_tokens_by_modality":[{{"modality":"VIDEO","tokens":57920}},{{"modality":"smell","tokens":1}}],"total_tokens":57961}}}}"#
        ))
    };
    let answers = [
        completed(
            r#"{"type":"thought","signature":"secret"},{"type":"model_output","content":[{"type":"text","text":"Here is your clip of omni-1.1-flash."},{"type":"video","mime_type":"video/mp4","uri":"https://up.example/v1beta/files/ab:download?alt=media"}]}"#,
        ),
        completed(
            r#"{"type":"model_output","content":[{"type":"video","data":"AAAAIGZ0"}]},{"type":"model_output","content":[{"type":"text","text":"Done."}]}"#,
        ),
        completed(
            r#"{"type":"model_output","content":[{"type":"text","text":"I cannot do that."}]}"#,
        ),
        completed(r#"{"type":"user_input","content":[{"type":"video","data":"AAAA"}]}"#),
        completed(
            r#"{"type":"model_output","content":[{"type":"video","uri":"gs://b/a"}],"error":{"code":3,"message":"omni-1.1-flash blocked it."}}"#,
        ),
        read(
            r#"{"status":"failed","steps":[{"type":"model_output","error":{"code":3,"message":"The prompt was blocked."}}]}"#,
        ),
        read(
            r#"{"status":"failed","errors":[{"code":"https://up.example/e","message":"Broken."}],"usage":{"total_tokens":7}}"#,
        ),
        read(r#"{"status":"requires_action"}"#),
        read(r#"{"status":"cancelled"}"#),
        read(r#"{"status":"incomplete"}"#),
        read(r#"{"status":"requires_continuation"}"#),
        read(r#"{"status":"budget_exceeded"}"#),
        read(r#"{"status":"in_progress","id":"v1_up"}"#),
        read(r#"{"error":{"code":500}}"#),
        read("{}"),
        read("<html>"),
    ];
    insta::assert_snapshot!(answers.join("\n"));
}

#[test]
fn every_state_of_ours_has_its_snapshot() {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let failed = |cause| describe(&Omni.write_failed(&TASK, cause, "It broke."));
    let snapshots = [
        text(Omni.write_accepted(&TASK)),
        text(Omni.write_first(&TASK).snapshot),
        describe(&Omni.write_delivered(&TASK, "not json", &[Some(hosted(None))])),
        failed(Cause::Refused),
        failed(Cause::Overloaded),
        failed(Cause::Unreachable),
        failed(Cause::Upstream),
        failed(Cause::Ambiguous),
        failed(Cause::Media),
        describe(&Omni.write_expired(&TASK)),
    ];
    insta::assert_snapshot!(snapshots.join("\n"));
}

/// The text next to a clip describes the clip. A clip without data is not charged.
#[test]
fn a_clip_without_data_is_not_a_result() {
    for video in [
        r#"{"type":"video","data":""}"#,
        r#"{"type":"video","data":null,"uri":""}"#,
        r#"{"type":"video"}"#,
    ] {
        let body = format!(
            r#"{{"status":"completed","steps":[{{"type":"model_output","content":[{{"type":"text","text":"Here is your clip."}},{video}]}}],"usage":{{"total_output_tokens":9,"output_tokens_by_modality":[{{"modality":"video","tokens":9}}]}}}}"#
        );
        let CreationResult::Ended(outcome) = read_answer(body.as_bytes(), &TASK) else {
            panic!("{video}");
        };
        assert_eq!((outcome.status, outcome.is_success), ("failed", false));
        assert_eq!(outcome.used, ReportedUsage::default());
        let shown: serde_json::Value = serde_json::from_slice(&outcome.snapshot).unwrap();
        let message = "The upstream delivered no video.";
        assert_eq!(shown["errors"][0]["message"], message, "{video}");
    }
}

#[test]
fn a_resolution_is_held_for_at_its_own_tokens() {
    for (resolution, tokens) in [
        ("360p", 17_376),
        ("720p", 57_920),
        ("1080p", 86_880),
        ("4k", 173_760),
    ] {
        let body = format!(
            r#"{{"model":"a/b","input":"x","response_format":{{"type":"video","resolution":"{resolution}","duration":"10s"}}}}"#
        );
        let request = read_request(&Bytes::from(body)).unwrap();
        assert_eq!(request.bound(&profile()).tokens, tokens, "{resolution}");
    }
}
