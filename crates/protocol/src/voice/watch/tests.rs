//! Tests of whole sessions, with their exact usage.

use super::*;

mod responses;
mod settings;
mod unreadable;

const NAMES: Names<'_> = Names::of_model("secret-1", "maker/voice");

/// One step of a session: a frame of the client, or a frame of the upstream with its time. A frame
/// of audio has this many zero bytes.
enum Step<'a> {
    Client(&'a str),
    ClientAudio(usize),
    Upstream(u64, &'a str),
    UpstreamAudio(u64, usize),
}
use Step::{Client, ClientAudio, Upstream, UpstreamAudio};

fn run(mut watch: Watch, steps: &[Step<'_>], end_ms: u64) -> MeterReading {
    for step in steps {
        match step {
            Client(text) => {
                let verdict = watch.on_client(Frame::Text(text));
                assert_eq!(verdict, Verdict::Relay, "{text}");
            }
            ClientAudio(bytes) => {
                watch.on_client(Frame::Binary(&vec![0; *bytes]));
            }
            Upstream(at, text) => drop(watch.on_upstream(Frame::Text(text), *at, NAMES)),
            UpstreamAudio(at, bytes) => {
                watch.on_upstream(Frame::Binary(&vec![0; *bytes]), *at, NAMES);
            }
        }
    }
    watch.reading(end_ms)
}

fn seconds(realtime_seconds: u64, text_inputs: u64) -> MeterReading {
    MeterReading {
        realtime_seconds,
        text_inputs,
        ..MeterReading::default()
    }
}

const VAD: &str =
    r#"{"type":"session.created","session":{"turn_detection":{"type":"server_vad"}}}"#;
const PUSH: &str = r#"{"type":"session.updated","session":{"turn_detection":null}}"#;
const PUSH_GA: &str =
    r#"{"type":"session.updated","session":{"audio":{"input":{"turn_detection":null}}}}"#;
const SAME: &str = r#"{"type":"session.updated","session":{"instructions":"Be brief."}}"#;
const MULAW: &str = r#"{"type":"session.updated","session":{"turn_detection":null,
    "audio":{"input":{"format":{"type":"audio/pcmu","rate":8000}},"output":{"format":{"type":"audio/pcm","rate":16000}}}}}"#;
const LEGACY: &str = r#"{"type":"session.updated","session":{"turn_detection":null,
    "input_audio_format":"g711_alaw","output_audio_format":"pcm16"}}"#;
const OPUS: &str = r#"{"type":"session.updated","session":{"turn_detection":null,
    "audio":{"input":{"format":{"type":"audio/opus","rate":24000}}}}}"#;
const ITEM: &str = r#"{"type":"conversation.item.create","item":{"type":"message","role":"user",
    "content":[{"type":"input_text","text":"Hi"}]}}"#;

/// An item of text with this value as its audio.
fn emptied(audio: &str) -> &'static str {
    let item = format!(
        r#"{{"type":"conversation.item.create","item":{{"type":"message","content":[{{"type":"input_text","text":"x"}},{{"type":"input_audio","audio":{audio}}}]}}}}"#
    );
    // Leaked, because the tables of the tests need a `'static` text.
    Box::leak(item.into_boxed_str())
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn realtime_sessions_are_read_to_the_second() {
    // 4,800 bytes: a tenth of a second at 24 kHz.
    let append = format!(
        r#"{{"type":"input_audio_buffer.append","audio":"{}"}}"#,
        "AAAA".repeat(1600)
    );
    let delta = append
        .replace("input_audio_buffer.append", "response.output_audio.delta")
        .replace("\"audio\":", "\"delta\":");
    // 48,000 bytes: one second. The escapes do not count.
    let escaped = format!(
        r#"{{"type":"input_audio_buffer.append","audio":"{}"}}"#,
        r"\/\/\/\/".repeat(16_000)
    );
    let old_delta = delta.replace("output_audio", "audio");
    let table: &[(&str, Vec<Step<'_>>, u64, MeterReading)] = &[
        ("nothing", vec![], 0, seconds(0, 0)),
        ("a moment", vec![], 1, seconds(1, 0)),
        (
            "voice activity",
            vec![Upstream(5, VAD)],
            61_000,
            seconds(61, 0),
        ),
        ("just above", vec![Upstream(5, VAD)], 61_001, seconds(62, 0)),
        (
            "audio is not counted beside the time",
            vec![Upstream(5, VAD), Client(&append), Upstream(20, &delta)],
            2_000,
            seconds(2, 0),
        ),
        (
            "push to talk from the start",
            vec![Upstream(0, PUSH), Client(&append), Upstream(9_000, &delta)],
            60_000,
            seconds(1, 0),
        ),
        (
            "both names of the delta, ten tenths and one more",
            [vec![Upstream(0, PUSH_GA)]]
                .into_iter()
                .chain((0..5).map(|_| vec![Client(&append), Upstream(2, &old_delta)]))
                .chain([vec![Upstream(3, &delta)]])
                .flatten()
                .collect(),
            60_000,
            seconds(2, 0),
        ),
        (
            "silent push to talk costs nothing",
            vec![Upstream(0, PUSH)],
            3_600_000,
            seconds(0, 0),
        ),
        (
            "binary frames",
            vec![
                Upstream(0, PUSH),
                ClientAudio(48_000),
                UpstreamAudio(2, 48_000),
            ],
            60_000,
            seconds(2, 0),
        ),
        (
            "formats of each direction",
            vec![
                Upstream(0, MULAW),
                ClientAudio(16_000),
                UpstreamAudio(2, 32_000),
            ],
            60_000,
            seconds(3, 0),
        ),
        (
            "formats under their old names",
            vec![
                Upstream(0, LEGACY),
                ClientAudio(8_000),
                UpstreamAudio(2, 48_001),
            ],
            60_000,
            seconds(3, 0),
        ),
        (
            "a hundred packets of ten milliseconds, and one",
            std::iter::once(Upstream(0, OPUS))
                .chain((0..101).map(|_| ClientAudio(60)))
                .collect(),
            60_000,
            seconds(2, 0),
        ),
        (
            "the way changes within: the parts are added, then rounded",
            vec![
                Upstream(0, VAD),
                Upstream(1_500, PUSH),
                ClientAudio(24_000),
                Upstream(60_000, SAME),
                Upstream(70_000, VAD),
            ],
            71_000,
            seconds(3, 0),
        ),
        (
            "text inputs",
            vec![Upstream(0, VAD), Client(ITEM), Client(ITEM)],
            1_000,
            seconds(1, 2),
        ),
        (
            "what is not a text input",
            vec![
                Upstream(0, PUSH),
                Client(
                    r#"{"type":"conversation.item.create","item":{"type":"function_call_output","call_id":"c","output":"1"}}"#,
                ),
                Client(
                    r#"{"type":"conversation.item.create","item":{"type":"message","content":[{"type":"input_text","text":"x"},{"type":"input_audio","audio":"AAAA"}]}}"#,
                ),
                Client(r#"{"type":"conversation.item.delete","item_id":"i"}"#),
                Client(r#"{"type":"input_audio_buffer.append"}"#),
            ],
            1_000,
            // The audio of the item counts.
            seconds(1, 0),
        ),
        (
            "an item carries audio only if it has bytes",
            [r#""""#, "null", r#"" \n\t""#, r#""====""#, "{}", "7", r#""A""#]
                .iter()
                .map(|audio| Client(emptied(audio)))
                .chain([Upstream(0, PUSH), Client(r#"{"type":"conversation.item.create","item":{"type":"message","content":[{"type":"input_audio"},{"type":"audio","text":"x"}]}}"#)])
                .collect(),
            0,
            seconds(0, 8),
        ),
        (
            "no part of text carries audio",
            vec![
                Upstream(0, PUSH),
                Client(
                    r#"{"type":"conversation.item.create","item":{"type":"message","content":[{"type":"input_text","text":"x","audio":"AAAA"}]}}"#,
                ),
                Client(
                    r#"{"type":"conversation.item.create","item":{"type":"message","content":[{"audio":"AAAA","type":"text"}]}}"#,
                ),
                Client(
                    r#"{"type":"conversation.item.create","item":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"x","audio":"AAAA"}]}}"#,
                ),
            ],
            0,
            seconds(0, 3),
        ),
        (
            "a part of an unknown type carries audio",
            vec![
                Upstream(0, PUSH),
                Client(
                    r#"{"type":"conversation.item.create","item":{"type":"message","content":[{"type":"x","audio":"AAAA"},{"audio":"AAAA"}]}}"#,
                ),
            ],
            0,
            seconds(1, 0),
        ),
        (
            "packets in base64: twenty milliseconds, fifty times and once more",
            std::iter::once(Upstream(0, OPUS))
                .chain(
                    (0..51)
                        .map(|_| Client(r#"{"type":"input_audio_buffer.append","audio":"+P\/+"}"#)),
                )
                .collect(),
            60_000,
            seconds(2, 0),
        ),
        (
            "audio with escapes in it is as long as without",
            std::iter::once(Upstream(0, PUSH))
                .chain([Client(&escaped)])
                .collect(),
            60_000,
            seconds(1, 0),
        ),
        (
            "what cannot be read counts by its bytes, where audio counts",
            vec![Upstream(0, PUSH), Client("no json")],
            1_000,
            seconds(1, 0),
        ),
        (
            "what cannot be read, where time counts",
            vec![Upstream(0, VAD), Client("no json"), Upstream(1, "nor this")],
            1_000,
            seconds(1, 0),
        ),
        (
            "items of one response sound too",
            vec![
                Upstream(0, PUSH),
                Client(
                    r#"{"type":"response.create","response":{"input":[{"type":"message","content":[{"type":"input_audio","audio":"AAAA"}]}]}}"#,
                ),
            ],
            1_000,
            seconds(1, 0),
        ),
        (
            "a rate that cannot be meant changes nothing",
            vec![
                Upstream(0, MULAW),
                Upstream(
                    0,
                    r#"{"type":"session.updated","session":{"audio":{"input":{"format":{"type":"audio/pcm","rate":-1}}}}}"#,
                ),
                ClientAudio(8_000),
            ],
            60_000,
            seconds(1, 0),
        ),
        (
            "an item of which nothing is said is a text input",
            vec![
                Upstream(0, PUSH),
                Client(r#"{"type":"conversation.item.create"}"#),
                Client(r#"{"type":"conversation.item.create","item":null}"#),
            ],
            1_000,
            seconds(0, 2),
        ),
        (
            "a forced message counts, an item's audio sounds",
            vec![
                Upstream(0, PUSH),
                Client(
                    r#"{"type":"conversation.item.create","item":{"type":"force_message","content":[{"type":"text","text":"x"}]}}"#,
                ),
                Client(
                    r#"{"type":"conversation.item.create","item":{"type":"message","content":[{"type":"input_audio","audio":"AAAA"}]}}"#,
                ),
            ],
            1_000,
            seconds(1, 1),
        ),
    ];
    for (name, steps, end_ms, expected) in table {
        let reading = run(Watch::realtime("maker/voice", None), steps, *end_ms);
        assert_eq!(reading, *expected, "{name}");
    }
}

#[test]
fn streamed_speech_is_read_by_the_character() {
    let steps = [
        Client(r#"{"type":"text.delta","delta":"Grüße 😀"}"#),
        Client(r#"{"type":"text.clear"}"#),
        Client(r#"{"delta":"\ud83d\ude00!","type":"text.delta"}"#),
        Client(r#"{"type":"text.done"}"#),
        Client(r#"{"type":"text.delta","delta":7}"#),
        Upstream(6, r#"{"type":"audio.delta","delta":"AAAA"}"#),
    ];
    let spoken = |characters| MeterReading {
        characters,
        ..MeterReading::default()
    };
    assert_eq!(run(Watch::speech(), &steps, 60_000), spoken(9));
    // The text counts in either kind of frame, and even if it cannot be read.
    let mut watch = Watch::speech();
    for (frame, characters) in [
        (Frame::Binary(br#"{"type":"text.delta","delta":"ab"}"#), 2),
        (Frame::Text("text.delta"), 12),
        (Frame::Binary(b"\xff"), 13),
    ] {
        assert_eq!(watch.on_client(frame), Verdict::Relay);
        assert_eq!(watch.reading(0), spoken(characters));
    }
}

#[test]
fn streamed_transcripts_are_read_by_the_second() {
    for (encoding, rate, channels, bytes, transcribed_seconds) in [
        (None, None, None, 0, 0),
        (None, None, None, 1, 1),
        (None, None, None, 32_000, 1),
        (None, None, None, 32_001, 2),
        (Some("mulaw"), Some("8000"), None, 80_000, 10),
        (Some("alaw"), Some("8000"), None, 80_001, 11),
        (Some("pcm"), Some("44100"), Some("2"), 352_800, 2),
    ] {
        let many = channels.map(|_| "true");
        let encoding = AudioEncoding::read(encoding, rate, many, channels).unwrap();
        let half = bytes / 2;
        let steps = [
            ClientAudio(half),
            ClientAudio(bytes - half),
            Client(r#"{"type":"audio.done"}"#),
            UpstreamAudio(4, 99_999),
        ];
        let reading = run(Watch::transcript(encoding), &steps, 60_000);
        assert_eq!(
            reading.transcribed_seconds, transcribed_seconds,
            "{encoding:?} {bytes}"
        );
    }
    let audio = "AAAA".repeat(8000);
    let in_event = format!(r#"{{"type":"audio","audio":"{audio}"}}"#);
    let in_list = format!(r#"["{audio}"]"#);
    let twice = format!(r#"{{"type":"audio","audio":"{audio}","audio":""}}"#);
    // 24,000 bytes are three quarters of a second.
    for (frames, transcribed_seconds) in [
        (vec![audio.as_str()], 1),
        (vec![&audio, &audio], 2),
        (vec![&audio, &in_event], 2),
        (vec![&in_event], 1),
        (vec![&in_list], 1),
        (vec![&twice], 1),
        (vec!["pong"], 1),
        (vec![r#"{"type":"audio.done"}"#, r#"{"audio":7}"#, "{}"], 0),
        (vec![r#"{"type":"x","audio":""}"#, r#"{"text":"AAAA"}"#], 0),
    ] {
        let encoding = AudioEncoding::read(None, None, None, None).unwrap();
        let steps: Vec<_> = frames.iter().map(|frame| Client(frame)).collect();
        let reading = run(Watch::transcript(encoding), &steps, 60_000);
        assert_eq!(reading.transcribed_seconds, transcribed_seconds);
    }
    for (encoding, rate, many, channels) in [
        (Some("opus"), None, None, None),
        (None, Some("11025"), None, None),
        (None, Some("x"), None, None),
        (None, None, Some("true"), Some("9")),
        (None, None, Some("maybe"), None),
    ] {
        assert!(AudioEncoding::read(encoding, rate, many, channels).is_err());
    }
}

#[test]
fn storage_requests_are_refused_and_the_session_continues() {
    for (event, param) in [
        (
            r#"{"type":"session.update","event_id":"e1","session":{"resumption":{"enabled":true}}}"#,
            Some("session.resumption"),
        ),
        (
            r#"{"type":"session.update","event_id":"e1","session":{"resumption":{}}}"#,
            Some("session.resumption"),
        ),
        (
            r#"{"type":"session.update","event_id":"e1","session":{"resumption":{"enabled":false},"tools":[{"type":"function"}]}}"#,
            None,
        ),
        (
            r#"{"type":"session.update","event_id":"e1","session":{"resumption":null}}"#,
            None,
        ),
        (
            r#"{"type":"session.update","event_id":"e1","session":{"tools":[{"type":"function"},{"type":"file_search"}]}}"#,
            Some("session.tools"),
        ),
        (
            r#"{"type":"session.update","event_id":"e1","session":{"tools":[{"type":"collections_search"}]}}"#,
            Some("session.tools"),
        ),
        (
            r#"{"type":"session.update","event_id":"e1","session":{"tools":{"type":"file_search"}}}"#,
            Some("session.tools"),
        ),
        (
            r#"{"type":"response.create","event_id":"e1","response":{"tools":[{"type":"file\u005fsearch"}]}}"#,
            Some("session.tools"),
        ),
        (r#"{"type":"response.create","event_id":"e1"}"#, None),
        (
            r#"{"type":"session.update","event_id":"e1","session":{"pr\u006fmpt":{"id":"pmpt_1"}}}"#,
            Some("session.prompt"),
        ),
        (
            r#"{"type":"response.create","event_id":"e1","response":{"prompt":{"id":"pmpt_1"}}}"#,
            Some("response.prompt"),
        ),
        (
            r#"{"type":"response.create","event_id":"e1","response":{"prompt":null}}"#,
            None,
        ),
    ] {
        let spaced = format!("\n {event}");
        for frame in [Frame::Text(event), Frame::Binary(spaced.as_bytes())] {
            match (Watch::realtime("m/v", None).on_client(frame), param) {
                (Verdict::Relay, None) => {}
                (Verdict::Refuse { failure, event_id }, Some(param)) => {
                    assert_eq!(failure.code.as_str(), "stateful_not_supported");
                    assert_eq!(failure.param.as_deref(), Some(param));
                    assert_eq!(event_id.as_deref(), Some("e1"));
                }
                (verdict, _) => panic!("{event}: {verdict:?}"),
            }
        }
    }
}

#[test]
fn a_binary_frame_costs_as_much_as_audio_although_it_is_an_event() {
    let event = format!(r#"{{"type":"x","noise":"{}"}}"#, " ".repeat(480_000));
    let seconds = |frame: Frame<'_>| {
        let mut watch = Watch::realtime("m/v", None);
        watch.on_upstream(Frame::Text(PUSH), 0, NAMES);
        assert!(matches!(watch.on_client(frame), Verdict::Relay));
        watch.reading(0).realtime_seconds
    };
    let audio = seconds(Frame::Binary(&vec![0; event.len()]));
    assert!(audio > 0);
    assert_eq!(seconds(Frame::Binary(event.as_bytes())), audio);
    assert_eq!(seconds(Frame::Text(&event)), 0);
}

#[test]
fn ambiguous_frames_are_refused_and_not_counted() {
    for (event, param) in [
        (r#"{"type":"a","type":"session.update"}"#, Some("type")),
        (r#"{"Type":"session.update"}"#, Some("type")),
        (
            r#"{"type":"input_audio_buffer.append","audio":"AAAA","audio":""}"#,
            Some("audio"),
        ),
        (
            r#"{"type":"session.update","session":{"tools":[],"tools":[{"type":"file_search"}]}}"#,
            Some("session"),
        ),
        (
            r#"{"type":"session.update","session":{"model":"other"}}"#,
            Some("session.model"),
        ),
        (
            r#"{"type":"conversation.item.create","item":{"content":[{"audio":"AAAA"},{"audio":"","audio":""}]}}"#,
            Some("item.content"),
        ),
    ] {
        let mut watch = Watch::realtime("m/v", None);
        watch.on_upstream(Frame::Text(PUSH), 0, NAMES);
        match watch.on_client(Frame::Text(event)) {
            Verdict::Refuse { failure, .. } => {
                assert_eq!(failure.code.as_str(), "invalid_request", "{event}");
                assert_eq!(failure.param.as_deref(), param, "{event}");
            }
            Verdict::Relay | Verdict::Replace(_) => panic!("{event}"),
        }
        assert_eq!(watch.reading(0), MeterReading::default(), "{event}");
    }
    let twice = r#"{"type":"text.delta","delta":"","delta":"spoken"}"#;
    let verdict = Watch::speech().on_client(Frame::Text(twice));
    assert!(matches!(verdict, Verdict::Refuse { .. }));
}

#[test]
fn a_failure_has_words_for_every_client() {
    let failure = Failure::stateful_not_supported("No.").param("session.tools");
    insta::assert_snapshot!(
        [
            write_failure_frame(&Failure::insufficient_quota(), "event_1", None),
            write_failure_frame(&failure, "event_2", Some("mine")),
            write_failure_frame(&Failure::upstream_error(), "event_3", None),
        ]
        .join("\n")
    );
}

#[test]
fn the_upstreams_name_alone_changes_in_two_events() {
    let created = r#"{ "type":"session.created", "session":{"id":"s","model" : "secret-1","n":1.50} , "x":"secret-1"}"#;
    let mut watch = Watch::realtime("maker/voice", None);
    assert_eq!(
        watch
            .on_upstream(Frame::Text(created), 1, NAMES)
            .map(|it| it.text)
            .as_deref(),
        Some(
            r#"{ "type":"session.created", "session":{"id":"s","model" : "maker/voice","n":1.50} , "x":"secret-1"}"#
        )
    );
    for event in [
        r#"{"type":"session.updated","session":{}}"#,
        r#"{"type":"session.updated","session":{"model":null}}"#,
        r#"{"type":"session.updated","session":"secret-1"}"#,
        r#"{"type":"response.done","session":{"model":"x"}}"#,
        "{",
        "pong",
    ] {
        assert_eq!(
            watch.on_upstream(Frame::Text(event), 1, NAMES),
            None,
            "{event}"
        );
    }
}

#[test]
fn failures_are_shown_without_the_upstreams_identity() {
    type New = fn() -> Watch;
    let realtime: New = || Watch::realtime("maker/voice", None);
    let speech: New = Watch::speech;
    for (new, event, shown) in [
        (
            realtime,
            r#"{"type":"error","event_id":"event_9","error":{"type":"invalid_request_error","code":"acme-7Fz","message":"Zork: w7.acme.xyz broke","param":"session.voice","event_id":"mine_1"}}"#,
            Some(
                r#"{"type":"error","event_id":"event_9","error":{"type":"invalid_request_error","code":null,"message":"The model's upstream refused this request.","param":"session.voice","event_id":"mine_1"}}"#,
            ),
        ),
        (
            realtime,
            r#"{"type":"response.done","response":{"id":"r","status":"failed","status_details":{"type":"failed","error":{"message":"The model secret-1 is not ready at acme.xyz now"}}}}"#,
            Some(
                r#"{"type":"response.done","response":{"id":"r","status":"failed","status_details":{"type":"failed","error":{"message":"The model maker/voice is not ready at […] now"}}}}"#,
            ),
        ),
        (
            realtime,
            r#"{"type":"conversation.item.input_audio_transcription.failed","error":{"message":"w7.acme.xyz"}}"#,
            Some(
                r#"{"type":"conversation.item.input_audio_transcription.failed","error":{"message":"The model's upstream refused this request."}}"#,
            ),
        ),
        (
            speech,
            r#"{"type":"error","message":"acct_12345 is closed"}"#,
            Some(r#"{"type":"error","message":"[…] is closed"}"#),
        ),
        (
            speech,
            r#"{"type":"\u0065rror","message":"w7.acme.xyz"}"#,
            Some(r#"{"type":"\u0065rror","message":"The model's upstream refused this request."}"#),
        ),
        (
            speech,
            r#"{"type":"error","message":"The text is too long."}"#,
            None,
        ),
        (speech, r#"{"type":"audio.delta","delta":"QUJD"}"#, None),
    ] {
        let changed = new().on_upstream(Frame::Text(event), 1, NAMES);
        let withheld = changed.as_ref().map(|it| it.withheld.is_some());
        assert_eq!(changed.map(|it| it.text).as_deref(), shown);
        assert_eq!(withheld, shown.map(|_| true), "{event}");
    }
}

/// The text tokens of a response are those that it reports when it ends. While it is running, and
/// if it ends without a report, they are our own count.
#[test]
fn text_tokens_are_those_that_responses_report() {
    const DONE: &str = r#"{"type":"response.done","response":{"usage":{"input_tokens":70,"output_tokens":9,
        "input_token_details":{"text_tokens":70,"audio_tokens":0},"output_token_details":{"text_tokens":9,"audio_tokens":0}}}}"#;
    const DELTA: &str = r#"{"type":"response.output_text.delta","delta":"one two three four"}"#;
    let instructions = format!(
        r#"{{"type":"session.update","session":{{"instructions":"{}"}}}}"#,
        "be brief ".repeat(100)
    );
    let create = format!(
        r#"{{"type":"response.create","response":{{"instructions":"{}"}}}}"#,
        "speak of rain ".repeat(50)
    );
    let read = |steps: &[Step<'_>]| {
        let reading = run(Watch::realtime("maker/voice", None), steps, 0);
        (reading.text, reading.open_text)
    };
    let none = NonAudioTokens::default();
    let usage = NonAudioTokens {
        input: 70,
        output: 9,
        ..NonAudioTokens::default()
    };
    let mut steps = vec![Client(&instructions), Client(&create)];
    // The hold covers a response before it is requested from the upstream.
    let (reported, requested) = read(&steps);
    assert_eq!(reported, none);
    steps.push(Upstream(0, CREATED));
    assert_eq!(read(&steps), (none, requested));
    // While the response is running, the hold covers it, with everything that the model reads.
    steps.push(Upstream(0, DELTA));
    let (reported, open) = read(&steps);
    assert_eq!(reported, none);
    assert_eq!(open.input, requested.input);
    assert!(open.input > 250 && open.output >= 3, "{open:?}");
    let reading = run(Watch::realtime("maker/voice", None), &steps, 0);
    assert_eq!(reading.ended().text, open);
    // A response that ends without a report is counted. One with a report is not.
    steps.push(Upstream(0, SILENT));
    assert_eq!(read(&steps), (open, none));
    steps.extend([Upstream(0, CREATED), Upstream(0, DONE)]);
    assert_eq!(read(&steps), (open.plus(usage), none));
    // Zeros are not a report if there is text.
    let zeros = DONE.replace("70", "0").replace('9', "0");
    let steps = [
        Client(&instructions),
        Client(&create),
        Upstream(0, CREATED),
        Upstream(0, DELTA),
        Upstream(0, &zeros),
    ];
    assert_eq!(read(&steps), (open, none));
}

const CREATED: &str = r#"{"type":"response.created","response":{}}"#;
const SILENT: &str = r#"{"type":"response.done","response":{"status":"cancelled"}}"#;
const CONTEXT: &str = r#"{"type":"session.update","session":{"instructions":"be brief"}}"#;
const CREATE: &str = r#"{"type":"response.create","response":{"instructions":"speak of rain"}}"#;
const NAMED: &str =
    r#"{"type":"response.create","event_id":"e1","response":{"instructions":"speak of rain"}}"#;
const BARE: &str = r#"{"type":"response.create"}"#;
const REFUSED: &str = r#"{"type":"error","event_id":"s1","error":{"code":"x"}}"#;
const REFUSED_NAME: &str =
    r#"{"type":"error","event_id":"s1","error":{"code":"x","event_id":"e1"}}"#;

/// The reported input tokens of a session with instructions, and those that are held.
fn text_input(steps: &[Step<'_>]) -> (u64, u64) {
    let mut watch = Watch::realtime("maker/voice", None);
    watch.on_client(Frame::Text(CONTEXT));
    let reading = run(watch, steps, 0);
    (reading.text.input, reading.open_text.input)
}

#[test]
fn a_requested_response_is_held_until_the_upstream_answers() {
    const REFUSED_OTHER: &str =
        r#"{"type":"error","event_id":"s1","error":{"code":"x","event_id":"e2"}}"#;
    let context = text_input(&[Upstream(0, CREATED)]).1;
    let one = text_input(&[Client(CREATE)]).1;
    assert!(context > 0 && one > context);
    let many: Vec<_> = (0..40).map(|_| Client(CREATE)).collect();
    assert_eq!(text_input(&many), (0, 40 * one));
    for (name, steps, expected) in [
        ("requested", vec![Client(NAMED)], (0, one)),
        (
            "begun, and not counted twice",
            vec![Client(NAMED), Upstream(0, CREATED)],
            (0, one),
        ),
        (
            "refused by its name",
            vec![Client(NAMED), Upstream(0, REFUSED_NAME)],
            (0, 0),
        ),
        (
            "another event is refused",
            vec![Client(NAMED), Upstream(0, REFUSED_OTHER)],
            (0, one),
        ),
        (
            "an event without a name is refused",
            vec![Client(NAMED), Upstream(0, REFUSED)],
            (0, one),
        ),
        (
            "refused without a name",
            vec![Client(CREATE), Upstream(0, REFUSED)],
            (0, 0),
        ),
        (
            "one of two is refused",
            vec![Client(CREATE), Client(NAMED), Upstream(0, REFUSED_NAME)],
            (0, one),
        ),
        (
            "passed over",
            vec![
                Client(CREATE),
                Client(CREATE),
                Upstream(0, CREATED),
                Upstream(0, SILENT),
            ],
            (one, 0),
        ),
        (
            "begun after the response before it",
            vec![
                Client(CREATE),
                Client(CREATE),
                Upstream(0, CREATED),
                Upstream(0, SILENT),
                Upstream(0, CREATED),
            ],
            (one, one),
        ),
    ] {
        assert_eq!(text_input(&steps), expected, "{name}");
    }
}

#[test]
fn a_response_may_begin_although_an_error_seemed_to_refuse_it() {
    let context = text_input(&[Upstream(0, CREATED)]).1;
    let one = text_input(&[Client(CREATE)]).1;
    for (name, steps, expected) in [
        (
            "a refused prompt does not count for the next requested response",
            vec![
                Client(NAMED),
                Upstream(0, REFUSED_NAME),
                Client(BARE),
                Upstream(0, CREATED),
            ],
            (0, context),
        ),
        (
            "begun although an error named it",
            vec![
                Client(NAMED),
                Upstream(0, REFUSED_NAME),
                Upstream(0, CREATED),
            ],
            (0, one),
        ),
        (
            "begun although an error without a name seemed to refuse it",
            vec![Client(CREATE), Upstream(0, REFUSED), Upstream(0, CREATED)],
            (0, one),
        ),
        (
            "of two that one error may refuse, the shorter one is taken to be refused",
            vec![
                Client(CREATE),
                Client(BARE),
                Upstream(0, REFUSED),
                Upstream(0, CREATED),
            ],
            (0, one),
        ),
        (
            "a refused prompt counts for one response",
            vec![
                Client(CREATE),
                Upstream(0, REFUSED),
                Upstream(0, CREATED),
                Upstream(0, SILENT),
                Upstream(0, CREATED),
            ],
            (one, context),
        ),
    ] {
        assert_eq!(text_input(&steps), expected, "{name}");
    }
}
