//! Frames that an upstream may read as an event, although we cannot.

use proptest::prelude::*;

use super::*;

/// Settings that are refused if they can be read.
const RESUMED: &str = r#"{"type":"session.update","session":{"resumption":{"enabled":true}}"#;
const ITEM_MEMBERS: &str =
    r#"{"type":"conversation.item.create","item":{"content":[{"type":"input_text","text":"hi"}]}"#;

/// An event with another member, in forms that many parsers read and this gateway does not.
fn beyond_our_limits(event: &str) -> Vec<String> {
    let nested = format!(r#"{event},"x":{}1{}}}"#, "[".repeat(200), "]".repeat(200));
    let names: Vec<_> = (0..10_001).map(|n| format!("\"{n}\":0")).collect();
    let whole = format!("{event}}}");
    vec![
        nested,
        format!(r#"{event},"x":{{{}}}}}"#, names.join(",")),
        format!(r#"{event},"x":NaN}}"#),
        format!("{event},}}"),
        format!("{event},\"x\":\"\t\"}}"),
        format!("{event}/* x */}}"),
        format!("/* x */{whole}"),
        format!("\u{feff}{whole}"),
        format!("\u{a0}{whole}"),
        format!("{whole}\0"),
        format!("{whole}{whole}"),
        format!("[{whole}]"),
        whole.replace('"', "'"),
    ]
}

#[test]
fn an_event_that_we_cannot_read_is_refused_and_not_counted() {
    for turn_mode in [VAD, PUSH] {
        for event in [RESUMED, ITEM_MEMBERS]
            .iter()
            .flat_map(|it| beyond_our_limits(it))
        {
            for frame in [Frame::Text(&event), Frame::Binary(event.as_bytes())] {
                // Audio of one channel may begin with a list or a comment.
                if matches!(frame, Frame::Binary(_)) && event.starts_with(['[', '/', '\u{a0}']) {
                    continue;
                }
                let mut watch = Watch::realtime("m/v", None);
                watch.on_upstream(Frame::Text(turn_mode), 0, NAMES);
                let verdict = watch.on_client(frame);
                let Verdict::Refuse { failure, .. } = verdict else {
                    panic!("{verdict:?} for {event}");
                };
                assert_eq!(failure.code.as_str(), "invalid_request", "{event}");
                assert_eq!(watch.reading(0), MeterReading::default(), "{event}");
            }
        }
    }
}

/// Streams of speech and of transcripts count such a frame as a whole.
#[test]
fn where_every_byte_counts_no_frame_needs_to_be_read() {
    let encoding = AudioEncoding::read(None, None, None, None).unwrap();
    for event in beyond_our_limits(r#"{"type":"text.delta","delta":"hi""#) {
        for mut watch in [Watch::speech(), Watch::transcript(encoding)] {
            assert_eq!(watch.on_client(Frame::Text(&event)), Verdict::Relay);
            assert_ne!(watch.reading(0), MeterReading::default(), "{event}");
        }
    }
}

/// An upstream may decode a binary frame like a text, and replace what is not UTF-8.
#[test]
fn an_event_in_a_binary_frame_is_checked_even_if_it_is_not_utf_8() {
    let with_note = |event: &str, more: &str| {
        let frame = format!(r#"{event},"note":"?"{more}}}"#).into_bytes();
        frame
            .into_iter()
            .map(|byte| if byte == b'?' { 0xff } else { byte })
            .collect::<Vec<_>>()
    };
    let deep = format!(r#","x":{}1{}"#, "[".repeat(200), "]".repeat(200));
    for frame in [
        with_note(RESUMED, ""),
        with_note(RESUMED, &deep),
        with_note(RESUMED, ","),
    ] {
        let verdict = Watch::realtime("m/v", None).on_client(Frame::Binary(&frame));
        assert!(matches!(verdict, Verdict::Refuse { .. }), "{frame:?}");
    }
    let mut watch = Watch::realtime("m/v", None);
    let item = with_note(ITEM_MEMBERS, "");
    assert_eq!(watch.on_client(Frame::Binary(&item)), Verdict::Relay);
    assert_eq!(watch.reading(0).text_inputs, 1);
}

proptest! {
    /// Audio is not taken for an event, even if its first byte is a brace and the next one may begin a name. It is
    /// not UTF-8: small negative samples, and silence of telephones, have bytes of 0xff.
    #[test]
    fn audio_passes(
        mut samples in proptest::collection::vec(any::<i16>(), 1..200),
        high in 0x20_u8..,
        telephone in proptest::collection::vec(any::<u8>(), 1..400),
        quiet in any::<bool>(),
    ) {
        if quiet {
            for sample in &mut samples {
                *sample %= 128;
            }
        }
        // A byte that also ends a name in JSON is always there.
        samples.extend([i16::from(b':'), -1]);
        let samples = samples.iter().flat_map(|sample| sample.to_le_bytes());
        let audio: Vec<u8> = [b'{', high].into_iter().chain(samples).collect();
        let mut watch = Watch::realtime("m/v", None);
        prop_assert_eq!(watch.on_client(Frame::Binary(&audio)), Verdict::Relay);
        // One byte per sample, as telephones send it.
        let audio = [b"{", &*telephone, b":\xff"].concat();
        prop_assert_eq!(watch.on_client(Frame::Binary(&audio)), Verdict::Relay);
    }
}

#[test]
fn audio_that_begins_like_a_name_passes() {
    for audio in [&b"{\"\xff\x00\x80:\x01"[..], b"{\"\xff:\xfe\xff"] {
        let verdict = Watch::realtime("m/v", None).on_client(Frame::Binary(audio));
        assert_eq!(verdict, Verdict::Relay, "{audio:?}");
    }
}

/// A list is read one object at a time, so that a frame full of objects takes no more memory.
#[test]
fn objects_of_a_frame_are_not_collected() {
    let list = r#"[{"a":1},{"b":2,"b":3},{"c":4}]"#;
    let list = crate::json::Cursor::new(list).value().unwrap();
    let mut seen = 0;
    let read = event::each_object(Some(list), "list", |_| {
        seen += 1;
        Ok(())
    });
    assert!(read.is_err());
    assert_eq!(seen, 1);
    let read = event::each_object(Some(list), "list", |_| {
        seen += 1;
        Err(Failure::internal())
    });
    assert_eq!(read, Err(Failure::internal()));
    assert_eq!(seen, 2);
}
