//! Signals: the problems that a node reports about itself and its channels.

use std::collections::HashSet;

use store::{AlertKind, AlertSignal};

/// The channels that a node has reported as down.
#[derive(Debug, Default)]
pub(super) struct DownChannels {
    down: HashSet<String>,
}

impl DownChannels {
    /// Signals for the channels that are down, judged by their breaker states. A channel that is being probed keeps its
    /// previous state, so that one outage is one alert, however often the channel is probed.
    pub(super) fn signals(&mut self, states: &[(String, &'static str)]) -> Vec<AlertSignal> {
        let was_down = std::mem::take(&mut self.down);
        let mut signals = Vec::new();
        for (name, state) in states {
            let why = match *state {
                "taken_out" => "is out of use: its upstream refuses the credential",
                "open" => "is paused after failures",
                "probe" if was_down.contains(name) => "is paused after failures",
                _ => continue,
            };
            self.down.insert(name.clone());
            let kind = AlertKind::ChannelDown;
            signals.push(AlertSignal {
                condition: format!("{kind} {name}"),
                kind,
                subject: Some(name.clone()),
                message: format!("Channel {name} {why}."),
            });
        }
        signals
    }
}

/// A signal for finished calls that the database refuses to book.
pub(super) fn stuck_closes(count: u64) -> Option<AlertSignal> {
    let kind = AlertKind::StuckCloses;
    let calls = match count {
        0 => return None,
        1 => "1 finished call".to_owned(),
        count => format!("{count} finished calls"),
    };
    Some(AlertSignal {
        condition: kind.to_string(),
        kind,
        subject: None,
        message: format!(
            "{calls} of a node cannot be booked: the database refuses. The log of the node names them."
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_is_one_signal_until_the_channel_works_again() {
        let mut down_channels = DownChannels::default();
        for (state, is_down) in [
            ("closed", false),
            ("probe", false),
            ("open", true),
            ("probe", true),
            ("open", true),
            ("taken_out", true),
            ("probe", true),
            ("closed", false),
            ("probe", false),
        ] {
            let states = [("main".to_owned(), state), ("spare".to_owned(), "closed")];
            let signals = down_channels.signals(&states);
            let names: Vec<_> = signals.iter().map(|it| &*it.condition).collect();
            assert_eq!(names == ["channel_down main"], is_down, "{state}");
            assert_eq!(names.is_empty(), !is_down, "{state}");
        }
        // A channel that is no longer configured is not down.
        assert_eq!(
            down_channels.signals(&[("main".to_owned(), "open")]).len(),
            1
        );
        assert!(down_channels.signals(&[]).is_empty());
    }

    #[test]
    fn closes_that_cannot_be_booked_are_told_until_there_are_none() {
        assert_eq!(stuck_closes(0), None);
        let (one, two) = (stuck_closes(1).unwrap(), stuck_closes(2).unwrap());
        assert_eq!(one.condition, two.condition);
        assert!(two.message.starts_with("2 finished calls of a node"));
    }
}
