//! Plans of calls: what the upstreams and the client of a call do, drawn from a seed.

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

/// The maximum number of attempts of a call. A plan has an act for each.
pub(crate) const ROUTES_MAX: usize = 3;

/// The models that are called, each with the maximum number of attempts of a call.
pub(crate) const MODELS: [(&str, usize); 6] = [
    ("m/1", 1),
    ("m/2", 2),
    ("m/3", 3),
    // Both of its routes have limits.
    ("m/limited", 2),
    // These two fall back to `m/dear`. The second mostly does so because its route is at its limit.
    ("m/backed", 2),
    ("m/limited-backed", 2),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Payer {
    Rich,
    /// A key whose wallet cannot pay for all of its calls, or for the growth of long ones.
    Poor,
    /// A key that allows only a few concurrent calls.
    Narrow,
}

/// The protocol of the client. All upstreams speak chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ClientDialect {
    Chat,
    Messages,
}

#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) number: u64,
    pub(crate) payer: Payer,
    pub(crate) dialect: ClientDialect,
    pub(crate) model: &'static str,
    pub(crate) attempts_max: usize,
    pub(crate) is_streamed: bool,
    /// Whether the request names a model that does not exist.
    pub(crate) is_misspelt: bool,
    /// When the call begins, and how long after that the client leaves.
    pub(crate) begins_ms: u64,
    pub(crate) leaves_ms: Option<u64>,
    /// The pause of the client before it reads each piece of a stream.
    pub(crate) reads_every_ms: u64,
    acts: [Act; ROUTES_MAX],
}

/// What an upstream does when it gets a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Act {
    /// Refuses the request with this status.
    Status(u16),
    /// Closes the connection without an answer.
    HangUp,
    Silence,
    /// Answers with status 200 and a body that is not a valid answer.
    Nonsense,
    Answer(Reply),
}

/// An answer, whole or as a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) head_after_ms: u64,
    pub(crate) words: u64,
    /// The pause before each word of a stream.
    pub(crate) gap_ms: u64,
    /// The input and output tokens that are reported at the end.
    pub(crate) usage: Option<(u64, u64)>,
    pub(crate) end: ReplyEnd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplyEnd {
    Regular,
    /// The connection is closed after this many words.
    CutAfter(u64),
    /// Nothing more is sent after this many words.
    StallAfter(u64),
    /// A stream sends its usage report, but is closed before its end mark.
    CutBeforeMark,
}

impl Plan {
    /// Draws the plan of a call. Equal seeds give equal plans.
    pub(crate) fn draw(seed: u64, number: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed.wrapping_mul(0x9E37_79B9).wrapping_add(number));
        let (model, attempts_max) = MODELS[rng.random_range(0..MODELS.len())];
        Self {
            number,
            model,
            attempts_max,
            payer: match rng.random_range(0..20) {
                0..3 => Payer::Poor,
                3..6 => Payer::Narrow,
                _ => Payer::Rich,
            },
            dialect: if rng.random_bool(0.3) {
                ClientDialect::Messages
            } else {
                ClientDialect::Chat
            },
            is_streamed: rng.random_bool(0.6),
            is_misspelt: rng.random_bool(0.01),
            begins_ms: rng.random_range(0..2_000),
            leaves_ms: rng.random_bool(0.3).then(|| rng.random_range(0..2_500_u64)),
            reads_every_ms: if rng.random_bool(0.2) { 120 } else { 0 },
            acts: std::array::from_fn(|_| Act::draw(&mut rng)),
        }
    }

    /// What the upstream does with the attempt of this number.
    pub(crate) fn act(&self, attempt: usize) -> &Act {
        &self.acts[attempt.min(ROUTES_MAX - 1)]
    }
}

impl Act {
    fn draw(rng: &mut StdRng) -> Self {
        match rng.random_range(0..100) {
            0..4 => Self::Status(400),
            4..8 => Self::Status(500),
            8..11 => Self::Status(503),
            11..13 => Self::Status(429),
            13..18 => Self::HangUp,
            18..20 => Self::Silence,
            20..23 => Self::Nonsense,
            _ => Self::Answer(Reply::draw(rng)),
        }
    }
}

impl Reply {
    fn draw(rng: &mut StdRng) -> Self {
        // Some answers are so long that their hold must grow more than once.
        let words = if rng.random_bool(0.1) {
            rng.random_range(60..200)
        } else {
            rng.random_range(1..12)
        };
        Self {
            head_after_ms: rng.random_range(0..600),
            words,
            gap_ms: [0, 0, 10, 150][rng.random_range(0..4)],
            usage: rng
                .random_bool(0.8)
                .then(|| (rng.random_range(1..60), words + rng.random_range(0..9))),
            end: match rng.random_range(0..20) {
                0 => ReplyEnd::CutAfter(rng.random_range(0..=words)),
                1 => ReplyEnd::StallAfter(rng.random_range(0..=words)),
                2 => ReplyEnd::CutBeforeMark,
                _ => ReplyEnd::Regular,
            },
        }
    }
}
