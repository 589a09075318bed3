//! Tests of frames, their data and the splitter.

use proptest::prelude::*;

use super::*;

#[test]
fn a_bare_frame_is_data_and_the_name_of_an_event() {
    for (text, bare) in [
        ("data: {}\n\n", None),
        ("event: a\ndata: {}\n\n", None),
        ("event: a\r\ndata: {}\r\n\r\n", None),
        ("data: {\ndata: }\n\n", None),
        ("id: 7\ndata: {}\n\n", Some("data: {}\n\n")),
        (
            ": acme\nevent: a\ndata: {}\n\n",
            Some("event: a\ndata: {}\n\n"),
        ),
        (
            "event: a\nid: 7\ndata: {}\n\n",
            Some("event: a\ndata: {}\n\n"),
        ),
        (
            "event: a\ndata: {}\nid: 7\n\n",
            Some("event: a\ndata: {}\n\n"),
        ),
        ("\u{feff}data: {}\nretry: 5\n\n", Some("data: {}\n\n")),
        (
            "server: acme\r\ndata: {\r\ndata: }\r\n\r\n",
            Some("data: {\ndata: }\n\n"),
        ),
    ] {
        let mut splitter = Splitter::default();
        splitter.push(Bytes::from(text));
        let frame = splitter.next_frame().unwrap().unwrap();
        assert_eq!(frame.is_without_metadata(), bare.is_none(), "{text:?}");
        if let Some(bare) = bare {
            let found = frame.without_metadata();
            assert_eq!(found.bytes, bare);
            assert!(found.is_without_metadata());
        }
    }
}

/// Pushes `stream` in pieces whose sizes are those in `sizes`, in a cycle.
fn frames(stream: &[u8], sizes: &[usize]) -> Vec<Frame> {
    let mut splitter = Splitter::default();
    let mut frames = Vec::new();
    let mut rest = Bytes::copy_from_slice(stream);
    let mut sizes = sizes.iter().cycle();
    while !rest.is_empty() {
        let size = sizes
            .next()
            .copied()
            .unwrap_or(usize::MAX)
            .clamp(1, rest.len());
        splitter.push(rest.split_to(size));
        while let Some(frame) = splitter.next_frame().unwrap() {
            frames.push(frame);
        }
    }
    frames.extend(splitter.finish());
    frames
}

fn data(frame: &Frame) -> Option<Vec<u8>> {
    match frame.data() {
        Data::Absent => None,
        Data::Line(span) => Some(frame.bytes[span].to_vec()),
        Data::Lines(masked) => Some(masked.to_vec()),
    }
}

#[test]
fn any_data_can_be_put_into_one_line() {
    for (frame, plain) in [
        ("data: {}\n\n", Some("data: {}\n\n")),
        ("data:{}\r\n\r\n", Some("data: {}\n\n")),
        ("\u{feff}data: {}\n\n", Some("data: {}\n\n")),
        ("event: x\ndata: {}\nid: 1\n\n", Some("data: {}\n\n")),
        (": ping\n\n", None),
        ("event: x\n\n", None),
        ("\n", None),
    ] {
        let frame = frames(frame.as_bytes(), &[]).pop().unwrap();
        let found = frame.to_plain_data();
        assert_eq!(
            found.as_ref().map(|found| &found.bytes[..]),
            plain.map(str::as_bytes)
        );
        assert!(found.is_none_or(|found| found.is_plain_data()));
    }
    let frame = frames(b"data: {\ndata: }\n\n", &[]).pop().unwrap();
    let found = frame.to_plain_data().unwrap();
    assert!(found.is_plain_data() && found.bytes.starts_with(b"data: { "));
}

#[test]
fn frames_end_at_blank_lines_of_every_kind() {
    for stream in [
        "data: 1\n\ndata: 2\n\n",
        "data: 1\r\n\r\ndata: 2\r\n\r\n",
        "data: 1\r\rdata: 2\r\r",
        "data: 1\r\n\ndata: 2\n\r\n",
        "data:1\n\ndata:2\n\n",
        "\u{feff}data: 1\n\ndata: 2",
        ": hi\ndata: 1\n\nevent: x\ndata: 2\nid: 7\n\n",
    ] {
        let found: Vec<_> = frames(stream.as_bytes(), &[]).iter().map(data).collect();
        assert_eq!(
            found,
            [Some(b"1".to_vec()), Some(b"2".to_vec())],
            "{stream:?}"
        );
    }
}

#[test]
fn data_of_several_lines_keeps_its_places() {
    let stream = b"event: x\ndata: {\r\ndata: }\n\n";
    let frame = &frames(stream, &[])[0];
    assert_eq!(data(frame).unwrap(), b"               {\n       }\n ");
    assert_eq!(frame.event(), Some(&b"x"[..]));
}

#[test]
fn frames_without_data_have_none() {
    for (stream, fields) in [
        (": keep-alive\n\n", false),
        ("\n", false),
        ("event: ping\n\n", true),
        ("data\n\n", true),
        ("data:\n\n", true),
        ("database: 1\n\n", true),
    ] {
        let frame = &frames(stream.as_bytes(), &[])[0];
        assert_eq!(frame.data(), Data::Absent, "{stream:?}");
        assert_eq!(frame.has_fields(), fields, "{stream:?}");
    }
}

#[test]
fn a_frame_that_came_whole_shares_its_bytes() {
    let chunk = Bytes::from_static(b"data: 1\n\ndata: 2\n\n");
    let mut splitter = Splitter::default();
    splitter.push(chunk.clone());
    let first = splitter.next_frame().unwrap().unwrap();
    let second = splitter.next_frame().unwrap().unwrap();
    assert_eq!(first.bytes.as_ptr(), chunk.as_ptr());
    assert_eq!(second.bytes.as_ptr(), chunk[9..].as_ptr());
}

#[test]
fn an_endless_line_is_refused() {
    let mut splitter = Splitter::new(10);
    splitter.push(Bytes::from_static(b"data: 678"));
    assert_eq!(splitter.next_frame(), Ok(None));
    splitter.push(Bytes::from_static(b"90"));
    assert_eq!(splitter.next_frame(), Err(TooLarge(10)));
    let mut splitter = Splitter::new(10);
    splitter.push(Bytes::from_static(b"data: 67890\n\n"));
    assert_eq!(splitter.next_frame(), Err(TooLarge(10)));
}

#[test]
fn an_ended_line_shows_before_its_frame_ends() {
    let mut splitter = Splitter::default();
    splitter.push(Bytes::from_static(b"data: 1"));
    assert_eq!(splitter.next_frame(), Ok(None));
    assert_eq!(splitter.pending_data(), None);
    splitter.push(Bytes::from_static(b"\n"));
    assert_eq!(splitter.next_frame(), Ok(None));
    assert_eq!(splitter.pending_data(), Some(&b"1"[..]));
}

fn any_stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(&b"data: "[..]),
        Just(&b"data:{\"a\":1}"[..]),
        Just(&b": c"[..]),
        Just(&b"event: x"[..]),
        Just(&b"\n"[..]),
        Just(&b"\r"[..]),
        Just(&b"\r\n"[..]),
        Just(&b"\n\n"[..]),
        Just(&b"\xef\xbb\xbf"[..]),
        Just("é界".as_bytes()),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn frames_do_not_depend_on_chunking(
        stream in any_stream(),
        sizes in prop::collection::vec(1_usize..9, 1..9),
    ) {
        let whole = frames(&stream, &[]);
        prop_assert_eq!(&frames(&stream, &sizes), &whole);
        let bytes: Vec<u8> = whole.iter().flat_map(|frame| frame.bytes.to_vec()).collect();
        prop_assert_eq!(bytes, stream);
    }
}
