//! Holds a number of sessions that all speak, and measures how long frames take.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use tokio::net::tcp::OwnedWriteHalf;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::drive::{ANSWERS_EACH_MIN, Args, AskArgs, LAST_ANSWERS};
use super::session::Session;
use super::speaker::{Speaker, Voice};
use super::tally::{Measured, Tally};
use crate::topic::Topic;

/// Handshakes under way at a time.
const OPENING_MAX: usize = 16;

/// Sessions under way.
pub(super) struct Talk {
    tally: Arc<Tally>,
    pub(super) listeners: JoinSet<()>,
}

impl Talk {
    /// Opens every session, and then has them speak.
    pub(super) async fn begin(ask: &AskArgs, topic: Topic) -> io::Result<Self> {
        let sessions = open(ask, topic).await?;
        let tally = Arc::new(Tally::new());
        let mut speaker = Speaker {
            voices: Vec::new(),
            audio: topic.audio(),
            epoch: Instant::now(),
            tally: Arc::clone(&tally),
        };
        let mut listeners = JoinSet::new();
        for (session, socket) in sessions {
            let counts = session.counts();
            speaker.voices.push(Voice { socket, counts });
            listeners.spawn(session.listen(speaker.epoch, Arc::clone(&tally)));
        }
        thread::spawn(|| speaker.run());
        Ok(Self { tally, listeners })
    }
}

async fn open(ask: &AskArgs, topic: Topic) -> io::Result<Vec<(Session, OwnedWriteHalf)>> {
    let keys = ask.keys()?;
    let mut keys = keys.iter().cycle().take(ask.connections as usize);
    let mut opening = JoinSet::new();
    let mut sessions = Vec::new();
    loop {
        while opening.len() < OPENING_MAX
            && let Some(key) = keys.next()
        {
            opening.spawn(Session::open(
                ask.address,
                handshake(ask, topic, key),
                topic,
            ));
        }
        match opening.join_next().await {
            Some(session) => sessions.push(session??),
            None => return Ok(sessions),
        }
    }
}

/// Nobody checks that the key is a new one each time.
fn handshake(ask: &AskArgs, topic: Topic, key: &str) -> String {
    let AskArgs {
        address,
        path,
        model,
        ..
    } = ask;
    format!(
        "GET {path}?model={model}{} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {key}\r\n\
         connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
         sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\nuser-agent: tollgate-bench\r\n\r\n",
        topic.query()
    )
}

pub(super) async fn measure(args: &Args, topic: Topic) -> io::Result<Measured> {
    let talk = Talk::begin(&args.ask, topic).await?;
    let connections = u64::from(args.ask.connections);
    let answers_min = connections * ANSWERS_EACH_MIN;
    let times = talk.tally.measure(&args.window, connections, answers_min);
    let times = times.await?;
    if timeout(LAST_ANSWERS, talk.listeners.join_all())
        .await
        .is_err()
    {
        let late = io::Error::other("the last frames were not answered");
        talk.tally.note(&late);
    }
    Ok(talk.tally.measured(times))
}
