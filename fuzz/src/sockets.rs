//! Properties of the metering of WebSocket sessions.

use protocol::scrub::Names;
use protocol::voice::{AudioEncoding, Frame, MeterReading, Verdict, Watch};
use serde_json::Value;

const PUBLIC: &str = "maker/public";

/// The usage of a session never decreases, a refused frame is not counted, and no meter exceeds
/// what was sent or the time that passed.
///
/// The first letter of each input line selects a step: `c` and `b` are text and audio of the
/// client, `u` and `d` those of the upstream. Any other letter, such as `t`, advances the time by a
/// quarter of a second for each letter of the line.
pub fn socket_watch(data: &[u8]) {
    let listened = AudioEncoding::read(None, None, None, None).expect("all of them have defaults");
    for mut watch in [
        Watch::realtime(PUBLIC, None),
        Watch::speech(),
        Watch::transcript(listened),
    ] {
        let mut session = Session::default();
        for line in data.split(|&byte| byte == b'\n') {
            session.step(&mut watch, line);
        }
    }
}

/// The state of the simulated session.
#[derive(Default)]
struct Session {
    now_ms: u64,
    /// Bytes sent by each side.
    bytes: u64,
    used: MeterReading,
}

impl Session {
    fn step(&mut self, watch: &mut Watch, line: &[u8]) {
        let Some((&kind, rest)) = line.split_first() else {
            return;
        };
        let length = u64::try_from(rest.len()).expect("a line is short");
        let text = String::from_utf8_lossy(rest);
        let before = watch.reading(self.now_ms);
        assert_eq!(before, watch.reading(self.now_ms), "a look changes nothing");
        match kind {
            b'c' => self.client(watch, Frame::Text(&text), length),
            b'b' => self.client(watch, Frame::Binary(rest), length),
            b'u' => self.upstream(watch, Frame::Text(&text), length),
            b'd' => self.upstream(watch, Frame::Binary(rest), length),
            _ => self.now_ms += 250 * (length + 1),
        }
        self.look(watch);
    }

    fn client(&mut self, watch: &mut Watch, frame: Frame<'_>, bytes: u64) {
        let before = watch.reading(self.now_ms);
        match watch.on_client(frame) {
            Verdict::Relay => self.bytes += bytes,
            Verdict::Replace(text) => {
                assert!((text.len() as u64) < bytes, "{text} for {frame:?}");
                self.bytes += bytes;
            }
            Verdict::Refuse { failure, .. } => {
                assert_eq!(watch.reading(self.now_ms), before, "{frame:?} was refused");
                assert!(failure.status() < 500, "{failure:?}");
            }
        }
    }

    fn upstream(&mut self, watch: &mut Watch, frame: Frame<'_>, bytes: u64) {
        self.bytes += bytes;
        let names = Names::of_model("", PUBLIC);
        let Some(changed) = watch.on_upstream(frame, self.now_ms, names) else {
            return;
        };
        let instead = changed.text;
        let Frame::Text(text) = frame else {
            panic!("audio was replaced");
        };
        let is_named = instead.contains(PUBLIC);
        assert!(is_named || changed.withheld.is_some(), "{instead}");
        if serde_json::from_str::<Value>(text).is_ok() {
            let read = serde_json::from_str::<Value>(&instead);
            read.unwrap_or_else(|error| panic!("{error} in {instead} for {text}"));
        }
    }

    fn look(&mut self, watch: &Watch) {
        let now = watch.reading(self.now_ms);
        let of = |it: MeterReading| {
            [
                it.realtime_seconds,
                it.text_inputs,
                it.characters,
                it.transcribed_seconds,
            ]
        };
        for (after, before) in of(now).into_iter().zip(of(self.used)) {
            assert!(after >= before, "{:?} became {now:?}", self.used);
        }
        assert!(now.text_inputs <= self.bytes, "{now:?}");
        assert!(now.characters <= self.bytes, "{now:?}");
        // Even at the lowest audio rate, a byte is less than a second.
        let seconds = self.now_ms.div_ceil(1000) + self.bytes + 1;
        assert!(now.realtime_seconds <= seconds, "{now:?}");
        assert!(now.transcribed_seconds <= self.bytes + 1, "{now:?}");
        self.used = now;
    }
}
