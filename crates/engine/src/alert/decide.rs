//! Decides which alerts begin and which end.

use std::collections::HashSet;

use store::AlertRow;

use super::conditions::Condition;

#[derive(Debug, Default)]
pub(super) struct Decision {
    pub(super) begin: Vec<Condition>,
    pub(super) end: Vec<AlertRow>,
}

/// Compares the open alerts with the conditions that hold now. A condition without an open alert begins one, and an
/// alert whose condition is gone ends. Conditions that affect all calls come before those of a single wallet, because a
/// check begins only a limited number of alerts.
pub(super) fn decide(open: Vec<AlertRow>, conditions: Vec<Condition>) -> Decision {
    let known: HashSet<String> = open.iter().map(|alert| alert.condition.clone()).collect();
    let wrong: HashSet<String> = conditions.iter().map(|it| it.name.clone()).collect();
    let mut begin: Vec<Condition> = conditions
        .into_iter()
        .filter(|condition| !known.contains(&condition.name))
        .collect();
    begin.sort_by_key(|condition| condition.kind.is_about_wallets());
    Decision {
        begin,
        end: open
            .into_iter()
            .filter(|alert| !wrong.contains(&alert.condition))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use ledger::UnixMs;
    use store::{AlertCursor, AlertId, AlertKind, DeliveryState};

    use super::*;
    use crate::alert::conditions::unchanged;

    fn alert(condition: &str) -> AlertRow {
        AlertRow {
            cursor: AlertCursor(1),
            id: AlertId::random(),
            kind: AlertKind::ChannelDown,
            condition: condition.to_owned(),
            subject: None,
            wallet: None,
            message: String::new(),
            at: UnixMs::new(0),
            ended_at: None,
            delivery: DeliveryState::None,
        }
    }

    fn condition(name: &str) -> Condition {
        Condition {
            kind: AlertKind::ChannelDown,
            name: name.to_owned(),
            subject: None,
            wallet: None,
            message: String::new(),
            rules: Vec::new(),
        }
    }

    #[test]
    fn what_is_new_begins_what_is_gone_ends_and_what_stays_is_left_alone() {
        let open = vec![alert("gone"), alert("stays")];
        let decision = decide(open, vec![condition("stays"), condition("new")]);
        let begin: Vec<_> = decision.begin.iter().map(|it| &*it.name).collect();
        let end: Vec<_> = decision.end.iter().map(|it| &*it.condition).collect();
        assert_eq!((begin, end), (vec!["new"], vec!["gone"]));
    }

    #[test]
    fn what_concerns_all_calls_begins_before_what_concerns_one_wallet() {
        use AlertKind::{ChannelDown, ErrorRate, KeyLimit, LowBalance, StuckCloses};
        let conditions = [LowBalance, KeyLimit, StuckCloses, ErrorRate, ChannelDown];
        let conditions = conditions.map(|kind| Condition {
            kind,
            ..condition(kind.as_str())
        });
        let begin = decide(Vec::new(), conditions.to_vec()).begin;
        let kinds: Vec<_> = begin.iter().map(|it| it.kind).collect();
        assert_eq!(
            kinds,
            [StuckCloses, ErrorRate, ChannelDown, LowBalance, KeyLimit]
        );
    }

    #[test]
    fn alerts_whose_condition_cannot_be_looked_at_stay_as_they_are() {
        let rate = AlertRow {
            kind: AlertKind::ErrorRate,
            ..alert("error_rate all")
        };
        let open = vec![alert("gone"), rate];
        let decision = decide(open.clone(), unchanged(&open, AlertKind::ErrorRate));
        let end: Vec<_> = decision.end.iter().map(|it| &*it.condition).collect();
        assert_eq!((decision.begin.len(), end), (0, vec!["gone"]));
    }
}
