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
            let verdict = Watch::realtime("m/v", None).on_client(frame);
            assert_eq!(verdict, passed, "{event}");
        }
    }
    let other_case = r#"{"type":"session.update","session":{"Tracing":"auto"}}"#;
    let verdict = Watch::realtime("m/v", None).on_client(Frame::Text(other_case));
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
        let reading = run(Watch::realtime("m/v", None), &steps, 0);
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
        let reading = run(Watch::realtime("m/v", None), steps, 0);
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

/// The tokens of text and images that are held for responses which have not reported.
fn open_input(context_tokens: Option<u64>, steps: &[Step<'_>]) -> u64 {
    let mut watch = Watch::realtime("m/v", context_tokens);
    for step in steps {
        match step {
            Client(text) => drop(watch.on_client(Frame::Text(text))),
            Upstream(at, text) => drop(watch.on_upstream(Frame::Text(text), *at, NAMES)),
            ClientAudio(_) | UpstreamAudio(..) => {}
        }
    }
    let reading = watch.reading(0);
    let ended = reading.ended().text;
    let open = reading.open_text;
    assert_eq!(ended, reading.text.plus(open));
    open.input + open.image_input
}

/// Items stay in our count although the upstream forgets the oldest ones, so the model's context is the limit.
#[test]
fn no_response_counts_with_more_input_than_the_context() {
    let image = r#"{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,AAAA"},{"type":"input_text","text":"What is this?"}]}}"#;
    let images = |count: usize| (0..count).map(|_| Client(image)).collect::<Vec<_>>();
    let one = open_input(None, &[Client(image), Client(BARE)]);
    for (context_tokens, limit) in [(Some(5_000), 5_000), (Some(0), 0), (None, 128_000)] {
        for count in [1, 3, 200] {
            let expected = limit.min(one * count as u64);
            let mut steps = images(count);
            steps.push(Client(BARE));
            let requested = open_input(context_tokens, &steps);
            assert_eq!(requested, expected, "{count} images");
            steps.push(Upstream(0, CREATED));
            assert_eq!(open_input(context_tokens, &steps), expected);
            // Each response reads its own input, also those that are not kept one by one.
            let mut steps = images(count);
            steps.extend((0..40).map(|_| Client(CREATE)));
            let many = open_input(context_tokens, &steps);
            assert!(many >= 40 * expected && many <= 40 * limit, "{many}");
        }
    }
}

/// A setting replaces the one before it. A shorter one does not release a longer one, because the upstream may refuse it.
#[test]
fn settings_that_replace_each_other_count_once() {
    let update =
        |settings: &str| format!(r#"{{"type":"session.update","session":{{{settings}}}}}"#);
    let long = update(&format!(r#""instructions":"{}""#, "be brief ".repeat(500)));
    let short = update(r#""instructions":"","voice":"eve""#);
    let tools = update(
        r#""tools":[{"type":"function","name":"f","description":"tells the weather of a town"}]"#,
    );
    let open = |updates: &[&str]| {
        let mut steps: Vec<_> = updates.iter().copied().map(Client).collect();
        steps.push(Client(BARE));
        open_input(None, &steps)
    };
    let (once, of_tools) = (open(&[&long]), open(&[&tools]));
    assert!(once > 500 && of_tools > 0);
    assert_eq!(open(&[&long, &long, &long]), once);
    assert_eq!(open(&[&short, &long, &short]), once);
    assert_eq!(open(&[&tools, &long, &tools, &short]), once + of_tools);
}
