//! Computes which alert conditions hold now, from the rows in the store and the signals of the nodes.

use std::collections::{BTreeMap, HashMap};

use ledger::Micro;
use store::{AlertKind, AlertRow, AlertSignal, KeyRow, LowWallet, RuleId, RuleRow, WalletId};

use super::error_rate::{CallCounts, unusual_errors};

/// The percentages of a limit at which an alert begins.
const SHARES: [i64; 2] = [80, 100];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) kind: AlertKind,
    /// Identifies the condition. It stays the same until the condition ends.
    pub(super) name: String,
    pub(super) subject: Option<String>,
    pub(super) wallet: Option<WalletId>,
    /// A sentence for people.
    pub(super) message: String,
    /// The rules whose webhooks get the alert.
    pub(super) rules: Vec<RuleId>,
}

pub(super) fn largest_below(rules: &[RuleRow]) -> Option<Micro> {
    rules.iter().filter_map(|rule| rule.below).max()
}

/// Wallets whose balance is below an amount that a rule or the wallet itself sets. The amount of a rule for all wallets
/// applies only to wallets that set no amount themselves. Each amount is a separate condition.
pub(super) fn of_wallets(wallets: &[LowWallet], rules: &[RuleRow]) -> Vec<Condition> {
    let kind = AlertKind::LowBalance;
    let mut found = Vec::new();
    for wallet in wallets {
        let mut amounts: BTreeMap<Micro, Vec<RuleId>> = BTreeMap::new();
        if let Some(own) = wallet.below {
            amounts.entry(own).or_default();
        }
        for rule in rules.iter().filter(|it| applies(it, kind, Some(wallet.id))) {
            let below = match rule.wallet {
                Some(_) => rule.below.or(wallet.below),
                None => wallet.below.or(rule.below),
            };
            if let Some(below) = below {
                amounts.entry(below).or_default().push(rule.id);
            }
        }
        let low = amounts
            .into_iter()
            .filter(|(below, _)| wallet.balance < *below);
        found.extend(low.map(|(below, rules)| Condition {
            kind,
            name: format!("{kind} {} {}", wallet.id, below.get()),
            subject: Some(wallet.id.to_string()),
            wallet: Some(wallet.id),
            message: format!(
                "Wallet {} has {} credits, which is less than {below}.",
                wallet.name, wallet.balance
            ),
            rules,
        }));
    }
    found
}

/// Keys that have used 80 % or all of a limit.
pub(super) fn of_keys(keys: &[KeyRow], rules: &[RuleRow]) -> Vec<Condition> {
    let kind = AlertKind::KeyLimit;
    let mut found = Vec::new();
    for row in keys {
        let (key, rules) = (&row.key, receivers(rules, kind, Some(row.wallet)));
        let total = key.limit.map(|limit| ("total", "", key.usage, limit));
        let window = key.window.zip(row.calendar.as_ref());
        let window = window.map(|(window, calendar)| {
            let per = calendar.per().as_str();
            (per, per, key.window_usage(), window.amount)
        });
        for (name, per, used, limit) in total.into_iter().chain(window) {
            let reached = SHARES
                .into_iter()
                .filter(|share| has_used(used, limit, *share));
            found.extend(reached.map(|share| Condition {
                kind,
                name: format!("{kind} {} {name} {share}", row.id),
                subject: Some(row.id.to_string()),
                wallet: Some(row.wallet),
                message: key_message(row, share, per, used, limit),
                rules: rules.clone(),
            }));
        }
    }
    found
}

fn has_used(used: Micro, limit: Micro, percent: i64) -> bool {
    i128::from(used.get()) * 100 >= i128::from(limit.get()) * i128::from(percent)
}

fn key_message(row: &KeyRow, share: i64, per: &str, used: Micro, limit: Micro) -> String {
    let name = row.name.as_deref().unwrap_or(&row.shown_prefix);
    let share = match share {
        100 => "all".to_owned(),
        share => format!("{share} %"),
    };
    let of_period = match per {
        "" => String::new(),
        per => format!(" of this {per}"),
    };
    format!(
        "Key {name} of wallet {} has used {share} of its limit{of_period}: {used} of {limit} credits.",
        row.wallet_name
    )
}

/// Conditions that nodes report about themselves and their channels.
pub(super) fn of_signals(signals: Vec<AlertSignal>, rules: &[RuleRow]) -> Vec<Condition> {
    let condition = |signal: AlertSignal| Condition {
        rules: receivers(rules, signal.kind, None),
        kind: signal.kind,
        name: signal.condition,
        subject: signal.subject,
        wallet: None,
        message: signal.message,
    };
    signals.into_iter().map(condition).collect()
}

/// Calls by channel. Calls without a channel are under an empty name.
pub(super) type CallsByChannel = BTreeMap<String, CallCounts>;

/// The calls of the last minutes and of the day before.
#[derive(Debug, Clone, Default)]
pub(super) struct Calls {
    pub(super) recent: CallsByChannel,
    pub(super) usual: CallsByChannel,
}

/// The counts of one channel, or of all channels together.
pub(super) fn counts_of(calls: &CallsByChannel, channel: Option<&str>) -> CallCounts {
    let none = CallCounts::default();
    match channel {
        Some(channel) => calls.get(channel).copied().unwrap_or_default(),
        None => calls.values().copied().fold(none, CallCounts::plus),
    }
}

/// Error rates above normal, for all calls and for each channel. `known` maps each condition that has begun to the
/// calls of the day before it began. The last 24 hours would be the wrong baseline: they contain the failure itself.
pub(super) fn of_calls(
    calls: &Calls,
    known: &HashMap<String, CallCounts>,
    rules: &[RuleRow],
) -> Vec<Condition> {
    let kind = AlertKind::ErrorRate;
    let channels = calls.recent.keys().filter(|name| !name.is_empty());
    let channels = channels.map(|name| Some(&**name));
    let mut found = Vec::new();
    for channel in std::iter::once(None).chain(channels) {
        let (name, of_channel) = match channel {
            Some(channel) => (
                format!("{kind} channel {channel}"),
                format!(" of channel {channel}"),
            ),
            None => (format!("{kind} all"), String::new()),
        };
        let recent = counts_of(&calls.recent, channel);
        let before = known.get(&name).copied();
        let usual = before.unwrap_or_else(|| counts_of(&calls.usual, channel));
        let Some(errors) = unusual_errors(recent, usual, before.is_some()) else {
            continue;
        };
        found.push(Condition {
            kind,
            name,
            subject: channel.map(str::to_owned),
            wallet: None,
            message: format!(
                "{} % of the calls{of_channel} of the last 15 minutes failed ({} of {}); {} % is usual.",
                errors.percent, recent.errors, recent.requests, errors.usual_percent
            ),
            rules: receivers(rules, kind, None),
        });
    }
    found
}

/// The open alerts of a kind, turned into conditions that still hold.
pub(super) fn unchanged(open: &[AlertRow], kind: AlertKind) -> Vec<Condition> {
    let open = open.iter().filter(|alert| alert.kind == kind);
    open.map(|alert| Condition {
        kind,
        name: alert.condition.clone(),
        subject: alert.subject.clone(),
        wallet: alert.wallet,
        message: alert.message.clone(),
        rules: Vec::new(),
    })
    .collect()
}

fn receivers(rules: &[RuleRow], kind: AlertKind, wallet: Option<WalletId>) -> Vec<RuleId> {
    let rules = rules.iter().filter(|rule| applies(rule, kind, wallet));
    rules.map(|rule| rule.id).collect()
}

fn applies(rule: &RuleRow, kind: AlertKind, wallet: Option<WalletId>) -> bool {
    rule.kinds.contains(&kind) && (rule.wallet.is_none() || rule.wallet == wallet)
}

#[cfg(test)]
mod tests {
    use ledger::{Key, UnixMs, Window};
    use store::{Calendar, KeyId, PeriodLength};

    use super::*;

    fn credits(credits: i64) -> Micro {
        Micro::new(credits * 1_000_000)
    }

    fn rule(kind: AlertKind, wallet: Option<WalletId>, below: Option<i64>) -> RuleRow {
        RuleRow {
            id: RuleId::random(),
            kinds: vec![kind],
            url: String::new(),
            wallet,
            wallet_name: None,
            below: below.map(credits),
            created_at: UnixMs::new(0),
            last_attempt: None,
        }
    }

    #[test]
    fn each_amount_of_a_wallet_is_told_to_those_who_asked_for_it() {
        let (a, b) = (WalletId::random(), WalletId::random());
        let kind = AlertKind::LowBalance;
        let rules = [
            rule(kind, None, Some(10)),
            rule(kind, Some(a), Some(3)),
            rule(kind, Some(a), None),
            rule(kind, None, None),
            rule(AlertKind::KeyLimit, None, None),
        ];
        let [all, three, own, silent, _] = rules.each_ref().map(|rule| rule.id);
        let wallet = |id, balance, below: Option<i64>| LowWallet {
            row_number: 1,
            id,
            name: "acme".to_owned(),
            balance: credits(balance),
            below: below.map(credits),
        };
        for (low, expected) in [
            // The wallet sets no amount, so the rule for all wallets applies: ten.
            (wallet(b, 9, None), vec![(10, vec![all])]),
            (wallet(b, 10, None), vec![]),
            // The wallet's own amount overrides that of the rule for all wallets.
            (wallet(b, 9, Some(5)), vec![]),
            (wallet(b, 4, Some(5)), vec![(5, vec![all, silent])]),
            (
                wallet(a, 2, Some(5)),
                vec![(3, vec![three]), (5, vec![all, own, silent])],
            ),
            (wallet(b, -1, Some(0)), vec![(0, vec![all, silent])]),
        ] {
            let found = of_wallets(std::slice::from_ref(&low), &rules);
            let found: Vec<_> = found.into_iter().map(|it| (it.name, it.rules)).collect();
            let expected: Vec<_> = expected
                .into_iter()
                .map(|(below, rules)| {
                    let below = credits(below).get();
                    (format!("low_balance {} {below}", low.id), rules)
                })
                .collect();
            assert_eq!(found, expected, "{low:?}");
        }
        let found = of_wallets(&[wallet(b, 4, Some(5))], &[]);
        assert_eq!(
            found[0].message,
            "Wallet acme has 4 credits, which is less than 5."
        );
    }

    #[test]
    fn a_key_is_told_of_at_80_and_at_100_per_cent_of_each_limit() {
        let row = |usage: i64, limit: Option<i64>, window: Option<i64>| KeyRow {
            id: KeyId::random(),
            wallet: WalletId::random(),
            wallet_name: "acme".to_owned(),
            name: Some("till".to_owned()),
            shown_prefix: "sk-tg-1234".to_owned(),
            key: Key {
                enabled: true,
                usage: Micro::new(usage),
                limit: limit.map(credits),
                window: window.map(|amount| Window::new(credits(amount))),
                ..Key::default()
            },
            calendar: window.map(|_| Calendar::new(PeriodLength::Day, "UTC").unwrap()),
            models: None,
            tags: Vec::new(),
            last_used_at: None,
            old_secret_until: None,
            created_at: UnixMs::new(0),
        };
        for (key, expected) in [
            (row(7_999_999, Some(10), None), vec![]),
            (row(8_000_000, Some(10), None), vec!["total 80"]),
            (
                row(10_000_000, Some(10), None),
                vec!["total 80", "total 100"],
            ),
            (row(10_000_000, Some(100), Some(12)), vec!["day 80"]),
            (row(9_999_999, None, None), vec![]),
            (
                row(20_000_000, Some(25), Some(9)),
                vec!["total 80", "day 80", "day 100"],
            ),
        ] {
            let found = of_keys(std::slice::from_ref(&key), &[]);
            let names: Vec<_> = found.iter().map(|it| it.name.clone()).collect();
            let expected: Vec<_> = expected
                .into_iter()
                .map(|expected| format!("key_limit {} {expected}", key.id))
                .collect();
            assert_eq!(names, expected);
        }
        let key = row(9_000_000, None, Some(10));
        assert_eq!(
            of_keys(&[key], &[])[0].message,
            "Key till of wallet acme has used 80 % of its limit of this day: 9 of 10 credits."
        );
        // A rule for another wallet does not match.
        let key = row(9_000_000, Some(10), None);
        let rules = [
            rule(AlertKind::KeyLimit, Some(key.wallet), None),
            rule(AlertKind::KeyLimit, Some(WalletId::random()), None),
        ];
        assert_eq!(of_keys(&[key], &rules)[0].rules, [rules[0].id]);
    }

    #[test]
    fn errors_are_told_of_all_calls_and_of_each_channel() {
        let counts = |errors, requests| CallCounts { requests, errors };
        let calls = Calls {
            recent: [
                (String::new(), counts(0, 300)),
                ("bad".to_owned(), counts(15, 50)),
                ("good".to_owned(), counts(0, 100)),
            ]
            .into(),
            usual: [("bad".to_owned(), counts(1, 100))].into(),
        };
        let found = of_calls(&calls, &HashMap::new(), &[]);
        let names: Vec<_> = found.iter().map(|it| &*it.name).collect();
        assert_eq!(names, ["error_rate channel bad"]);
        assert_eq!(
            found[0].message,
            "30 % of the calls of channel bad of the last 15 minutes failed (15 of 50); 1 % is usual."
        );
        // The rate is too low for a new alert, but an open alert continues.
        let name = |condition: Condition| condition.name;
        let known = HashMap::from([("error_rate all".to_owned(), counts(0, 100))]);
        let names: Vec<_> = of_calls(&calls, &known, &[])
            .into_iter()
            .map(name)
            .collect();
        assert_eq!(names, ["error_rate all", "error_rate channel bad"]);
        // The alert also continues hours later, when the last 24 hours have the same error rate.
        let usual = [("bad".to_owned(), counts(300, 1_000))].into();
        let calls = Calls { usual, ..calls };
        assert!(of_calls(&calls, &HashMap::new(), &[]).is_empty());
        let known = HashMap::from([("error_rate channel bad".to_owned(), counts(1, 100))]);
        let names: Vec<_> = of_calls(&calls, &known, &[])
            .into_iter()
            .map(name)
            .collect();
        assert_eq!(names, ["error_rate channel bad"]);
    }
}
