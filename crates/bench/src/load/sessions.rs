//! Runs a number of sessions that all send audio, and measures the round-trip time of frames.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use tokio::net::tcp::OwnedWriteHalf;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::args::{Args, TargetArgs};
use super::frame_sender::{FrameSender, SessionWriter};
use super::session::Session;
use super::tally::{ANSWERS_EACH_MIN, LAST_ANSWERS, Measured, Tally};
use crate::session_frames::SessionKind;

/// The maximum number of concurrent handshakes.
const OPENING_MAX: usize = 16;

pub(super) struct RunningSessions {
    tally: Arc<Tally>,
    pub(super) listeners: JoinSet<()>,
}

impl RunningSessions {
    /// Opens every session and then starts to send.
    pub(super) async fn begin(target: &TargetArgs, kind: SessionKind) -> io::Result<Self> {
        let sessions = open(target, kind).await?;
        let tally = Arc::new(Tally::new());
        let mut sender = FrameSender {
            writers: Vec::new(),
            audio: kind.audio(),
            epoch: Instant::now(),
            tally: Arc::clone(&tally),
        };
        let mut listeners = JoinSet::new();
        for (session, socket) in sessions {
            let counts = session.counts();
            sender.writers.push(SessionWriter { socket, counts });
            listeners.spawn(session.listen(sender.epoch, Arc::clone(&tally)));
        }
        thread::spawn(|| sender.run());
        Ok(Self { tally, listeners })
    }
}

async fn open(
    target: &TargetArgs,
    kind: SessionKind,
) -> io::Result<Vec<(Session, OwnedWriteHalf)>> {
    let keys = target.keys()?;
    let mut keys = keys.iter().cycle().take(target.connections as usize);
    let mut opening = JoinSet::new();
    let mut sessions = Vec::new();
    loop {
        while opening.len() < OPENING_MAX
            && let Some(key) = keys.next()
        {
            opening.spawn(Session::open(
                target.address,
                handshake(target, kind, key),
                kind,
            ));
        }
        match opening.join_next().await {
            Some(session) => sessions.push(session??),
            None => return Ok(sessions),
        }
    }
}

/// Writes a handshake. The WebSocket key is constant, because no peer checks that it is new.
fn handshake(target: &TargetArgs, kind: SessionKind, key: &str) -> String {
    let TargetArgs {
        address,
        path,
        model,
        ..
    } = target;
    format!(
        "GET {path}?model={model}{} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {key}\r\n\
         connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
         sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\nuser-agent: tollgate-bench\r\n\r\n",
        kind.query()
    )
}

pub(super) async fn measure(args: &Args, kind: SessionKind) -> io::Result<Measured> {
    let sessions = RunningSessions::begin(&args.target, kind).await?;
    let connections = u64::from(args.target.connections);
    let answers_min = connections * ANSWERS_EACH_MIN;
    let times = sessions
        .tally
        .measure(&args.window, connections, answers_min);
    let times = times.await?;
    if timeout(LAST_ANSWERS, sessions.listeners.join_all())
        .await
        .is_err()
    {
        let late = io::Error::other("the last frames were not answered");
        sessions.tally.record_failure(&late);
    }
    Ok(sessions.tally.measured(times))
}
