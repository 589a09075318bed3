//! The pauses between polls, and the jitter that all retries use.

use std::time::Duration;

use rand::RngExt as _;

/// The longest pause that an upstream can ask for. A video may be ready much earlier than the upstream says, and its
/// URL at the upstream expires.
const ASKED_MAX: Duration = Duration::from_secs(5 * 60);

/// The pause before the next poll, after `polls` polls. It grows by half each time up to `longest`. It is not shorter
/// than the upstream asks for, up to `ASKED_MAX`.
pub(super) fn poll_pause(
    first: Duration,
    longest: Duration,
    polls: u32,
    retry_after: Option<Duration>,
) -> Duration {
    let mut pause = first;
    for _ in 0..polls.min(32) {
        if pause >= longest {
            break;
        }
        pause += pause / 2;
    }
    let asked = retry_after.unwrap_or_default().min(ASKED_MAX);
    jittered(pause.min(longest)).max(asked)
}

/// Adds up to a tenth of the pause at random, so that tasks that started together drift apart.
pub(crate) fn jittered(pause: Duration) -> Duration {
    let most = u64::try_from(pause.as_micros() / 10).unwrap_or(u64::MAX);
    pause.saturating_add(Duration::from_micros(rand::rng().random_range(0..=most)))
}

/// The interval between searches for due work. It is so short that no poll is late by more than a tenth of its pause.
pub(super) fn look_every(first: Duration) -> Duration {
    const SHORTEST: Duration = Duration::from_millis(10);
    const LONGEST: Duration = Duration::from_millis(250);
    (first / 20).clamp(SHORTEST, LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_become_rarer_and_wait_as_long_as_they_are_told() {
        let seconds = Duration::from_secs;
        for (polls, retry_after, least, most) in [
            (0, None, 5_000, 5_500),
            (1, None, 7_500, 8_250),
            (4, None, 25_312, 27_844),
            (5, None, 30_000, 33_000),
            (1_000, None, 30_000, 33_000),
            (0, Some(seconds(120)), 120_000, 120_000),
            (0, Some(seconds(86_400)), 300_000, 300_000),
            (9, Some(seconds(1)), 30_000, 33_000),
        ] {
            let pause = poll_pause(seconds(5), seconds(30), polls, retry_after).as_millis();
            assert!((least..=most).contains(&pause), "{polls}: {pause}");
        }
    }
}
