//! The scenarios. Each is a kind of request, an upstream behaviour and a number of connections.

use std::fmt;

use serde::Serialize;

use crate::load::Shape;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Scenario {
    pub(super) shape: Shape,
    pub(super) upstream: Upstream,
    pub(super) connections: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Upstream {
    Instant,
    /// The upstream answers after 50 ms.
    Delayed,
    /// The upstream streams one event per second, for streams that stay open.
    Paced,
}

/// The model for sessions, as the gateway names it.
pub(super) const SESSION_MODEL: &str = "bench/voice";
/// The default number of concurrent sessions.
pub(super) const SESSIONS: u32 = 500;

impl Upstream {
    pub(super) const ALL: [Self; 3] = [Self::Instant, Self::Delayed, Self::Paced];

    /// The name of the channel and, after `bench/`, of the model.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Instant => "instant",
            Self::Delayed => "50ms",
            Self::Paced => "paced",
        }
    }

    pub(super) fn model(self) -> String {
        format!("bench/{}", self.name())
    }

    /// The path at the end of the base URL.
    pub(super) fn base_path(self) -> &'static str {
        match self {
            Self::Instant => "/v1",
            Self::Delayed => "/delay-50/v1",
            Self::Paced => "/pace-1000/writes-102/v1",
        }
    }

    pub(super) fn delay_ms(self) -> u64 {
        match self {
            Self::Delayed => 50,
            Self::Instant | Self::Paced => 0,
        }
    }
}

impl Scenario {
    /// The requested model, as the gateway names it.
    pub(super) fn model(self) -> String {
        match self.shape.session_kind() {
            Some(_) => SESSION_MODEL.to_owned(),
            None => self.upstream.model(),
        }
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{}-{}-{}",
            self.shape,
            self.upstream.name(),
            self.connections
        )
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Extent {
    Quick,
    Usual,
    Full,
}

impl Extent {
    pub(super) fn rounds(self) -> usize {
        match self {
            Self::Quick => 2,
            Self::Usual => 3,
            Self::Full => 5,
        }
    }

    pub(super) fn measure_ms(self) -> u64 {
        match self {
            Self::Quick => 500,
            Self::Usual => 1000,
            Self::Full => 2000,
        }
    }

    /// The scenarios of this extent. Large bodies come last, because they leave memory resident
    /// that would count for later scenarios.
    pub(super) fn scenarios(self) -> Vec<Scenario> {
        use Upstream::{Delayed, Instant};
        let rows: &[(Shape, Upstream, &[u32])] = match self {
            Self::Quick => &[
                (Shape::Plain, Instant, &[1, 64]),
                (Shape::Plain, Delayed, &[512]),
                (Shape::Stream, Instant, &[64]),
                (Shape::Converted, Instant, &[64]),
                (Shape::ConvertedStream, Instant, &[64]),
                (Shape::Realtime, Instant, &[SESSIONS]),
                (Shape::Body, Instant, &[64]),
            ],
            Self::Usual => &[
                (Shape::Plain, Instant, &[1, 64, 512]),
                (Shape::Plain, Delayed, &[64, 512]),
                (Shape::Stream, Instant, &[1, 64, 512]),
                (Shape::Stream, Delayed, &[512]),
                (Shape::Converted, Instant, &[64]),
                (Shape::ConvertedStream, Instant, &[64]),
                (Shape::Realtime, Instant, &[SESSIONS]),
                (Shape::Transcript, Instant, &[SESSIONS]),
                (Shape::Body, Instant, &[1, 64]),
                (Shape::Body, Delayed, &[64]),
            ],
            Self::Full => &[
                (Shape::Plain, Instant, &[1, 16, 64, 512]),
                (Shape::Plain, Delayed, &[1, 64, 512]),
                (Shape::Stream, Instant, &[1, 64, 512]),
                (Shape::Stream, Delayed, &[1, 64, 512]),
                (Shape::Converted, Instant, &[1, 64, 512]),
                (Shape::ConvertedStream, Instant, &[1, 64, 512]),
                (Shape::Realtime, Instant, &[SESSIONS]),
                (Shape::Transcript, Instant, &[SESSIONS]),
                (Shape::Body, Instant, &[1, 64, 512]),
                (Shape::Body, Delayed, &[1, 64, 512]),
            ],
        };
        let all = rows.iter().flat_map(|&(shape, upstream, connections)| {
            connections.iter().map(move |&connections| Scenario {
                shape,
                upstream,
                connections,
            })
        });
        all.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larger_extents_hold_the_smaller_ones() {
        let all = Extent::Full.scenarios();
        assert_eq!(all.len(), 27);
        let usual = Extent::Usual.scenarios();
        assert!(usual.iter().all(|scenario| all.contains(scenario)));
        assert!(
            Extent::Quick
                .scenarios()
                .iter()
                .all(|scenario| usual.contains(scenario))
        );
    }

    #[test]
    fn scenarios_have_names_to_choose_by() {
        let names: Vec<String> = Extent::Quick
            .scenarios()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            names,
            [
                "plain-instant-1",
                "plain-instant-64",
                "plain-50ms-512",
                "stream-instant-64",
                "converted-instant-64",
                "converted-stream-instant-64",
                "realtime-instant-500",
                "body-instant-64"
            ]
        );
    }
}
