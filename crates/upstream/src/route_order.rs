//! Orders the routes of a model for a call.

use std::time::Instant;

use crate::breaker::BreakerState;

/// The properties of a route that determine the order.
#[derive(Clone, Copy, Debug)]
pub struct RouteCandidate {
    /// The lowest priority is tried first.
    pub priority: u32,
    /// The share of calls among routes that are equal otherwise. Among these, a route of weight 0 comes last.
    pub weight: u32,
    /// The state of the breaker of the route's channel, or of the route itself.
    pub state: BreakerState,
    /// The cost or the latency of a call on this route. Among routes of the same priority, the lowest is tried first.
    pub rank: u64,
    /// Decides between routes of the same priority and rank: the lowest is tried first. If the sticky ranks are equal
    /// too, the routes share the calls by weight.
    pub sticky_rank: u64,
}

/// The indices of `candidates` in the order in which they are tried: by priority, then by rank, then by sticky rank,
/// then at random by weight. Routes with open breakers come after all others, and routes with refused credentials come
/// last. Within each of these two groups, the route whose latest cooldown began first is tried first. No candidate is
/// left out, so breakers alone never cause an outage.
///
/// `draw` is the source of randomness: equal draws give equal orders.
pub fn order_routes(candidates: &[RouteCandidate], draw: u64) -> Vec<usize> {
    let mut ranked: Vec<(usize, Rank, u32)> = candidates
        .iter()
        .enumerate()
        .map(|(index, candidate)| (index, rank(candidate), candidate.weight))
        .collect();
    if ranked.len() > 1 {
        ranked.sort_by_key(|&(_, rank, _)| rank);
        let mut draw = draw;
        for peers in ranked.chunk_by_mut(|(_, one, _), (_, other, _)| one == other) {
            draw = shuffle(peers, draw);
        }
    }
    ranked.into_iter().map(|(index, ..)| index).collect()
}

/// The sort key of a route. The smallest comes first; equal ones are shuffled by weight.
type Rank = (u8, Option<Instant>, u32, u64, u64);

fn rank(candidate: &RouteCandidate) -> Rank {
    let (health, since) = match candidate.state {
        BreakerState::Closed | BreakerState::Probe => (0, None),
        BreakerState::Open { since } => (1, Some(since)),
        BreakerState::CredentialRefused { since } => (2, Some(since)),
    };
    let RouteCandidate {
        priority,
        rank,
        sticky_rank,
        ..
    } = *candidate;
    (health, since, priority, rank, sticky_rank)
}

/// Draws the peers one after another, each with a probability proportional to its weight among the remaining peers.
/// Returns the state of the generator.
fn shuffle<T>(mut peers: &mut [(usize, T, u32)], mut draw: u64) -> u64 {
    while peers.len() > 1 {
        let total: u64 = peers.iter().map(|&(.., weight)| u64::from(weight)).sum();
        if total == 0 {
            break;
        }
        draw = mix(draw);
        let mut rest = draw % total;
        let chosen = peers.iter().position(|&(.., weight)| {
            let weight = u64::from(weight);
            if rest < weight {
                return true;
            }
            rest -= weight;
            false
        });
        // The chosen peer moves to the front. The other peers keep their order.
        if let Some(head) = chosen.and_then(|chosen| peers.get_mut(..=chosen)) {
            head.rotate_right(1);
        }
        let Some((_, others)) = peers.split_first_mut() else {
            break;
        };
        peers = others;
    }
    draw
}

/// One step of splitmix64. It derives several choices from one draw.
pub(crate) fn mix(draw: u64) -> u64 {
    let mut mixed = draw.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::{RouteCandidate, order_routes};
    use crate::breaker::BreakerState;

    fn closed(priority: u32, weight: u32) -> RouteCandidate {
        RouteCandidate {
            priority,
            weight,
            state: BreakerState::Closed,
            rank: 0,
            sticky_rank: 0,
        }
    }

    fn with(state: BreakerState) -> RouteCandidate {
        RouteCandidate {
            state,
            ..closed(0, 1)
        }
    }

    #[test]
    fn priority_goes_before_weight() {
        let candidates = [closed(1, 1_000_000), closed(0, 1), closed(2, 5)];
        for draw in 0..100 {
            assert_eq!(order_routes(&candidates, draw), [1, 0, 2]);
        }
    }

    #[test]
    fn weights_share_the_first_place() {
        let candidates = [closed(0, 3), closed(0, 1)];
        let first = (0..10_000)
            .filter(|&draw| order_routes(&candidates, draw).first() == Some(&0))
            .count();
        assert!((7_300..7_700).contains(&first), "{first} of 10,000");
    }

    #[test]
    fn weight_zero_comes_after_its_peers_and_before_the_next_priority() {
        let candidates = [closed(0, 0), closed(1, 9), closed(0, 1)];
        for draw in 0..100 {
            assert_eq!(order_routes(&candidates, draw), [2, 0, 1]);
        }
    }

    #[test]
    fn open_breakers_come_last_and_the_longest_rested_first_among_them() {
        let start = Instant::now();
        let later = start + Duration::from_secs(1);
        let candidates = [
            with(BreakerState::CredentialRefused { since: start }),
            with(BreakerState::Open { since: later }),
            with(BreakerState::Open { since: start }),
            closed(7, 1),
            RouteCandidate {
                priority: 9,
                ..with(BreakerState::Probe)
            },
        ];
        for draw in 0..100 {
            assert_eq!(order_routes(&candidates, draw), [3, 4, 2, 1, 0]);
        }
    }

    #[test]
    fn when_all_are_open_the_longest_rested_is_tried() {
        let start = Instant::now();
        let states = [3, 1, 2].map(|seconds| BreakerState::Open {
            since: start + Duration::from_secs(seconds),
        });
        assert_eq!(order_routes(&states.map(with), 0), [1, 2, 0]);
    }

    fn candidate(shape: (u32, u32, u8, u64, u64), since: Instant) -> RouteCandidate {
        let (priority, weight, state, rank, sticky_rank) = shape;
        RouteCandidate {
            priority,
            weight,
            state: match state {
                0 => BreakerState::Closed,
                1 => BreakerState::Probe,
                2 => BreakerState::Open { since },
                _ => BreakerState::CredentialRefused { since },
            },
            rank,
            sticky_rank,
        }
    }

    proptest! {
        #[test]
        fn every_candidate_is_tried_once(
            shapes in prop::collection::vec((0u32..3, 0u32..4, 0u8..4, 0u64..3, 0u64..3), 0..12),
            draw: u64,
        ) {
            let since = Instant::now();
            let candidates: Vec<_> = shapes.into_iter().map(|shape| candidate(shape, since)).collect();
            let mut tries = order_routes(&candidates, draw);
            prop_assert_eq!(&tries, &order_routes(&candidates, draw));
            tries.sort_unstable();
            prop_assert_eq!(tries, (0..candidates.len()).collect::<Vec<_>>());
        }

        /// Health takes precedence over priority, priority over cost or latency, and these over stickiness. Weights
        /// decide only between equal routes.
        #[test]
        fn a_route_is_never_tried_before_a_better_one(
            shapes in prop::collection::vec((0u32..3, 0u32..4, 0u8..4, 0u64..3, 0u64..3), 0..12),
            draw: u64,
        ) {
            let since = Instant::now();
            let candidates: Vec<_> = shapes.into_iter().map(|shape| candidate(shape, since)).collect();
            let tries = order_routes(&candidates, draw);
            let place = |index: usize| {
                let it = candidates[index];
                let health = match it.state {
                    BreakerState::Closed | BreakerState::Probe => 0,
                    BreakerState::Open { .. } => 1,
                    BreakerState::CredentialRefused { .. } => 2,
                };
                (health, it.priority, it.rank, it.sticky_rank)
            };
            for pair in tries.windows(2) {
                prop_assert!(place(pair[0]) <= place(pair[1]), "{tries:?}");
            }
        }
    }
}
