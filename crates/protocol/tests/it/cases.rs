//! Helpers for tests of conversions: fixtures, snapshots, and the engine's steps around a codec.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use protocol::canon::{
    AnswerContext, Dropped, Event, Part, Path as MemberPath, Reasoning, Request, Response,
    ResponseBuilder, Target,
};
use protocol::native::UnusableAnswer;
use protocol::sse::{Frame, Splitter};
use protocol::{Dialect, Failure, Profile, Thinking};

/// The files in a folder of fixtures, by name.
pub(crate) fn fixtures(folder: &str) -> Vec<(String, Vec<u8>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures")
        .join(folder);
    let mut files: Vec<PathBuf> = fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let name = |path: &PathBuf| path.file_stem().unwrap().to_string_lossy().into_owned();
    files
        .iter()
        .map(|path| (name(path), fs::read(path).unwrap()))
        .collect()
}

/// A model that thinks by level and accepts everything.
pub(crate) fn profile() -> Profile {
    Profile {
        thinking: Some(Thinking::Level),
        ..Profile::default()
    }
}

pub(crate) fn target(profile: &Profile) -> Target<'_> {
    Target {
        upstream_model: "up",
        public_model: "maker/m",
        profile,
        output_limit: protocol::OutputLimit::default(),
        asks_for_usage: true,
    }
}

pub(crate) type Write = fn(&Request, &Target<'_>, &mut Dropped) -> Result<Vec<u8>, Failure>;

/// The request for the upstream and the dropped members, in a readable form.
pub(crate) fn sent(request: Result<Request, Failure>, caller: Dialect, write: Write) -> String {
    let request = match request {
        Ok(request) => request,
        Err(failure) => return format!("refused: {failure} {:?}", failure.param),
    };
    let mut dropped = Dropped::new(caller);
    match write(&request, &target(&profile()), &mut dropped) {
        Err(failure) => format!("refused: {failure} {:?}", failure.param),
        Ok(body) => {
            let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
            let dropped = dropped.header().unwrap_or_default();
            format!("dropped: {dropped}\n{body:#}")
        }
    }
}

pub(crate) fn frames(stream: &[u8]) -> Vec<Frame> {
    let mut splitter = Splitter::default();
    splitter.push(Bytes::copy_from_slice(stream));
    let mut frames = Vec::new();
    while let Some(frame) = splitter.next_frame().unwrap() {
        frames.push(frame);
    }
    frames
}

pub(crate) fn context(request: Request) -> AnswerContext {
    AnswerContext {
        id: "ours_1".into(),
        model: "maker/m".into(),
        created: 1_767_225_600,
        input_tokens: 7,
        request: Arc::new(request),
    }
}

/// The events and the end of the stream, as readable text.
pub(crate) fn describe_events(events: &[Event], result: &Result<(), UnusableAnswer>) -> String {
    let mut text = String::new();
    for event in events {
        writeln!(text, "{event:?}").unwrap();
    }
    if let Err(broken) = result {
        writeln!(text, "broken: {broken}").unwrap();
    }
    text
}

pub(crate) fn build_response(events: Vec<Event>) -> Option<Result<Response, Failure>> {
    let mut builder = ResponseBuilder::default();
    events.into_iter().find_map(|event| builder.push(event))
}

/// Checks the grammar of `canon::Event`. A stream that broke may stop anywhere.
pub(crate) fn check_grammar(events: &[Event], ended: bool) {
    let mut started = false;
    let mut open = false;
    let mut over = false;
    for event in events {
        assert!(!over, "nothing follows the end: {events:?}");
        match event {
            Event::Start => assert!(!std::mem::replace(&mut started, true)),
            Event::BlockStart(_) => assert!(started && !std::mem::replace(&mut open, true)),
            Event::Delta(_) => assert!(open, "{events:?}"),
            Event::BlockStop => assert!(std::mem::replace(&mut open, false)),
            Event::Usage(_) => assert!(started && !open, "{events:?}"),
            Event::Finish(_) | Event::Failed(_) => {
                assert!(started && !open, "{events:?}");
                over = true;
            }
        }
    }
    assert_eq!(over, ended, "{events:?}");
}

pub(crate) fn asking_for_thoughts() -> Request {
    Request {
        reasoning: Some(Reasoning {
            show: true,
            ..Reasoning::default()
        }),
        ..Request::default()
    }
}

/// Parts of a tool result, with the default path because no client sent them.
pub(crate) fn without_paths(parts: Vec<Part>) -> Vec<(MemberPath, Part)> {
    let parts = parts.into_iter();
    parts.map(|part| (MemberPath::default(), part)).collect()
}
