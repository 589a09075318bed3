//! Settings and items that cost more than audio and text: traces, transcripts and images.

use super::*;

#[test]
fn traces_and_the_public_model_are_dropped_and_the_rest_of_the_settings_passes() {
    for (event, passed) in [
        (
            r#"{"type":"session.update","session":{"tracing":"auto","voice":"eve"}}"#,
            Some(r#"{"type":"session.update","session":{"voice":"eve"}}"#),
        ),
        (
            r#"{"type":"session.update", "session" : { "voice":"eve", "tr\u0061cing" : {"workflow_name":"x"} } }"#,
            Some(r#"{"type":"session.update", "session" : { "voice":"eve" } }"#),
        ),
        (
            r#"{"type":"session.update","session":{"type":"realtime","tracing":"auto","n":1.50}}"#,
            Some(r#"{"type":"session.update","session":{"type":"realtime","n":1.50}}"#),
        ),
        (
            r#"{"type":"session.update","session":{"tracing":"auto"}}"#,
            Some(r#"{"type":"session.update","session":{}}"#),
        ),
        (
            r#"{"type":"session.update","session":{"model":"m/v"}}"#,
            Some(r#"{"type":"session.update","session":{}}"#),
        ),
        (
            r#"{"type":"session.update","session":{"type":"realtime" , "mod\u0065l" : "m\/v","voice":"eve"}}"#,
            Some(r#"{"type":"session.update","session":{"type":"realtime","voice":"eve"}}"#),
        ),
        (
            r#"{"type":"session.update","session":{"model":"m/v","tracing":"auto","voice":"eve"}}"#,
            Some(r#"{"type":"session.update","session":{"voice":"eve"}}"#),
        ),
        (
            r#"{"type":"session.update","session":{"tracing":"auto","voice":"eve","model":"m/v"}}"#,
            Some(r#"{"type":"session.update","session":{"voice":"eve"}}"#),
        ),
        (
            r#"{"type":"session.update","session":{"voice":"eve","tracing":"auto","model":"m/v"}}"#,
            Some(r#"{"type":"session.update","session":{"voice":"eve"}}"#),
        ),
        (
            r#"{"type":"session.update","session":{"tracing":"auto","model":"m/v"}}"#,
            Some(r#"{"type":"session.update","session":{}}"#),
        ),
        (
            r#"{"type":"session.update","session":{"tracing":null,"model":null}}"#,
            None,
        ),
    ] {
        let passed = passed.map_or(Verdict::Relay, |text| Verdict::Replace(text.to_owned()));
        for frame in [Frame::Text(event), Frame::Binary(event.as_bytes())] {
            let verdict = Watch::realtime("m/v").on_client(frame);
            assert_eq!(verdict, passed, "{event}");
        }
    }
    let other_case = r#"{"type":"session.update","session":{"Tracing":"auto"}}"#;
    let verdict = Watch::realtime("m/v").on_client(Frame::Text(other_case));
    assert!(matches!(verdict, Verdict::Refuse { .. }));
}

#[test]
fn the_model_of_transcripts_passes_and_their_text_is_counted() {
    let settings = [
        r#"{"type":"session.update","session":{"audio":{"input":{"transcription":{"model":"gpt-4o-transcribe"}}}}}"#,
        r#"{"type":"session.update","session":{"input_audio_transcription":{"model":"whisper-1"}}}"#,
    ];
    let completed = |usage: &str| {
        let kind = "conversation.item.input_audio_transcription.completed";
        format!(r#"{{"type":"{kind}","transcript":"Hello","usage":{usage}}}"#)
    };
    for (usage, input, output) in [
        (
            r#"{"type":"tokens","total_tokens":26,"input_tokens":17,"input_token_details":{"text_tokens":4,"audio_tokens":13},"output_tokens":9}"#,
            4,
            9,
        ),
        (
            r#"{"type":"tokens","input_tokens":13,"output_tokens":9}"#,
            0,
            9,
        ),
        (r#"{"type":"duration","seconds":3}"#, 0, 0),
        (
            r#"{"type":"tokens","output_tokens":4611686018427387904}"#,
            0,
            0,
        ),
        (r#"{"type":"tokens","output_tokens":-9}"#, 0, 0),
        ("null", 0, 0),
    ] {
        let completed = completed(usage);
        let steps = [
            Client(settings[0]),
            Client(settings[1]),
            Upstream(0, &completed),
        ];
        let reading = run(Watch::realtime("m/v"), &steps, 0);
        let expected = NonAudioTokens {
            input,
            output,
            ..NonAudioTokens::default()
        };
        assert_eq!(reading.text, expected, "{usage}");
    }
}

/// A response that never reports its usage has read the images of the client too.
#[test]
fn images_are_counted_until_a_response_reports_them() {
    let image = format!("data:image/png;base64,{}", "A".repeat(40_000));
    let item = format!(
        r#"{{"type":"conversation.item.create","item":{{"type":"message","role":"user","content":[{{"type":"input_image","image_url":"{image}"}}]}}}}"#
    );
    let create = format!(
        r#"{{"type":"response.create","response":{{"input":[{{"type":"message","content":[{{"type":"input_image","image_url":"{image}"}},{{"type":"input_text","text":"x","image_url":"{image}"}}]}}]}}}}"#
    );
    let images = |steps: &[Step<'_>]| {
        let reading = run(Watch::realtime("m/v"), steps, 0);
        (reading.text.image_input, reading.open_text.image_input)
    };
    let one = images(&[Client(&item), Upstream(0, CREATED)]).1;
    assert!((1_600..1_700).contains(&one), "{one}");
    assert_eq!(images(&[Client(&item), Client(&create)]), (0, 2 * one));
    let begun = [Client(&item), Client(&create), Upstream(0, CREATED)];
    assert_eq!(images(&begun), (0, 2 * one));
    let done = r#"{"type":"response.done","response":{"usage":{"input_token_details":{"text_tokens":3,"image_tokens":770},"output_token_details":{"text_tokens":9}}}}"#;
    for (done, expected) in [(done, 770), (SILENT, 2 * one)] {
        let steps = [
            Client(&item),
            Client(&create),
            Upstream(0, CREATED),
            Upstream(0, done),
        ];
        assert_eq!(images(&steps), (expected, 0));
    }
}
