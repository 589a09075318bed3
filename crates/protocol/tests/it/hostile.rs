//! Runs the fuzz targets for a bounded time, on fixtures and seeds (`fuzz/src/driver.rs`).
//!
//! `cargo fuzz` runs longer (CONTRIBUTING). Each of its findings is a seed, or a test case beside
//! the code that was fixed.

use crate::{bodies, driver, event_streams, files, forms, identities, sockets};

/// Each target runs a multiple or a fraction of this number of mutations, over all its seeds.
const ROUNDS: u64 = 400;

/// Texts that have a meaning for a parser.
const TOKENS: [&[u8]; 24] = [
    b"\n\n",
    b"\r\n\r\n",
    b"\r",
    b"data: ",
    b"data: [DONE]\n\n",
    b"event: error\n",
    b": comment\n\n",
    b"{",
    b"}",
    b"[]",
    b"null",
    b"\"\"",
    b"\\u0000",
    b"\\ud800",
    b"\xff\xfe",
    "\u{2028}".as_bytes(),
    b"-1",
    b"18446744073709551616",
    b"1e999",
    b"\"model\":\"x\",",
    b"\"error\":{\"message\":\"m\"},",
    b"\"finish_reason\":\"stop\",",
    b"\"type\":\"message_stop\"",
    b",",
];

/// Parts of forms, of frames and of boxes.
const PARTS: [&[u8]; 26] = [
    b"\r\n--b0",
    b"\r\n--b0\r\n",
    b"\r\n--b0--",
    b"\r\n\r\n",
    b"\r\n",
    b"\"",
    b"\\",
    b"%22",
    b"name=\"file\"",
    b"; filename=\"x\"",
    b"Content-Type: a/b\r\n",
    b"\nc",
    b"\nb",
    b"\nu",
    b"\nd",
    b"\nttttttttttttttt",
    b"\"turn_detection\":null,",
    b"\"audio\":\"AAAA\",",
    b"\"rate\":192000,",
    b"\\u0061",
    b"moov",
    b"IDAT",
    b"\0\0\0\x08",
    b"\0\0\0\0",
    b"\0\0\0\x01",
    b"\xff\xff\xff\xff",
];

/// Headers of messages of a binary event stream, and parts of their payloads.
const FRAMES: [&[u8]; 9] = [
    b"\x0d:message-type\x07\x00\x05event",
    b"\x0d:message-type\x07\x00\x09exception",
    b"\x0d:message-type\x07\x00\x05error",
    b"\x0b:event-type\x07\x00\x05chunk",
    b"\x0f:exception-type\x07\x00\x02no",
    b"{\"bytes\":\"e30=\"}",
    b"\"amazon-bedrock-invocationMetrics\":{},",
    b"\r\n",
    b"\xff\xff",
];

/// Runs a fuzz target on the fixtures whose names end with `ending`.
fn run(ending: &str, inputs: u64, body: fn(&[u8])) {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures");
    driver::run(&driver::seeds(fixtures, ending), &TOKENS, inputs, body);
}

/// Runs a fuzz target on the seeds of this name.
fn run_on(name: &str, tokens: &[&[u8]], inputs: u64, body: fn(&[u8])) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/");
    let seeds = driver::seeds(format!("{folder}{name}"), "");
    driver::run(&seeds, tokens, inputs, body);
}

#[test]
fn frames_hold_for_any_bytes() {
    run(".sse", ROUNDS * 5, bodies::split);
}

#[test]
fn patches_hold_for_any_bytes() {
    run(".json", ROUNDS * 10, bodies::patch);
}

#[test]
fn counts_keep_their_floor_for_any_bytes() {
    run(".json", ROUNDS * 5, bodies::count);
}

#[test]
fn escapes_change_no_decision_for_any_bytes() {
    run(".json", ROUNDS * 5, bodies::guarded_names);
}

#[test]
fn redaction_holds_for_any_bytes() {
    run(".json", ROUNDS * 5, bodies::redact);
}

#[test]
fn requests_are_read_or_refused_for_any_bytes() {
    run(".json", ROUNDS * 5, bodies::read_request);
}

#[test]
fn streams_are_converted_or_failed_for_any_bytes() {
    run(".sse", ROUNDS / 4, bodies::transcode);
}

#[test]
fn event_streams_hold_for_any_bytes() {
    let body = event_streams::event_stream;
    run_on("event_stream", &FRAMES, ROUNDS * 10, body);
}

#[test]
fn forms_hold_for_any_bytes() {
    run_on("multipart", &PARTS, ROUNDS * 10, forms::multipart);
}

#[test]
fn checks_of_media_hold_for_any_bytes() {
    run_on("media", &PARTS, ROUNDS * 10, files::media);
}

#[test]
fn sessions_are_metered_for_any_frames() {
    run_on("socket_watch", &PARTS, ROUNDS * 10, sockets::socket_watch);
}

#[test]
fn no_text_of_an_upstream_identifies_it() {
    run_on("identities", &TOKENS, ROUNDS * 10, identities::identities);
}
