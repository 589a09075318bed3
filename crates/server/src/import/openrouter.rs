//! Reads files with answers of `OpenRouter`'s management API: the list of keys, and the credits.

use ledger::{Micro, UnixMs};
use serde_json::value::RawValue;
use store::{Calendar, Digest, KeyLimits, KeyWindow, PeriodLength};

use super::draft::DraftChannel;
use super::exact::{Amount, Decimal};
use super::hex::{self, hex};
use super::plan::{ImportPlan, PlannedKey, PlannedSecret, PlannedWallet, SumKind};

/// The name of the other system in references and reports.
pub(crate) const SYSTEM: &str = "openrouter";
/// The origin of the wallet. The whole account becomes one wallet.
const WALLET: &str = "accounts:1";

/// The members of a JSON object. Numbers keep their text.
type Members<'a> = std::collections::BTreeMap<String, &'a RawValue>;

/// The contents of the files.
#[derive(Default)]
struct Answers<'a> {
    keys: Vec<Members<'a>>,
    /// The credits bought and the credits used.
    credits: Option<(Amount, Amount)>,
}

/// Reads the files: answers to `GET /api/v1/keys` (any number of pages) and `GET /api/v1/credits`. `known_key` is the
/// secret of one key of the account. If the list contains the SHA-256 digest of this secret, all `hash` members are
/// digests of secrets, and the import adopts them.
pub(crate) fn read(
    files: &[(String, String)],
    known_key: Option<&str>,
) -> Result<ImportPlan, String> {
    let mut answers = Answers::default();
    for (name, text) in files {
        answers
            .take(text)
            .map_err(|fault| format!("{name}: {fault}"))?;
    }
    let mut plan = ImportPlan::of(SYSTEM);
    let hashes = answers.keys.iter().filter_map(|key| text(key, "hash"));
    let hashes: Vec<String> = hashes.collect();
    let adopts = match known_key {
        None => {
            plan.notes.push(
                "All keys get new secrets. If you have the secret of one of them, --known-key-file FILE tells whether digests can be adopted.".to_owned(),
            );
            false
        }
        Some(known) => {
            let digest = hex(Digest::of(known.trim().as_bytes()).as_bytes());
            let is_listed = hashes.contains(&digest);
            plan.notes.push(if is_listed {
                "The known key is in the list by its SHA-256, so secrets go on working.".to_owned()
            } else {
                "The known key is not in the list by its SHA-256, so all keys get new secrets."
                    .to_owned()
            });
            is_listed
        }
    };
    read_account(&answers, &mut plan);
    for key in &answers.keys {
        read_key(key, adopts, &mut plan);
    }
    let variable = "OPENROUTER_API_KEY".to_owned();
    let place = "a key of your account that only this gateway uses".to_owned();
    plan.catalog.variables.insert(variable.clone(), place);
    let preset = SYSTEM.parse().map_err(|_| format!("no preset {SYSTEM}"))?;
    plan.catalog.channels.push(DraftChannel {
        name: SYSTEM.to_owned(),
        preset,
        base_url: None,
        variable: Some(variable),
        has_all_models: true,
        comments: Vec::new(),
    });
    Ok(plan)
}

impl<'a> Answers<'a> {
    fn take(&mut self, text: &'a str) -> Result<(), String> {
        let fault = |fault: serde_json::Error| fault.to_string();
        let outer: Members<'a> = serde_json::from_str(text).map_err(fault)?;
        let data = outer.get("data").ok_or("it has no member `data`")?.get();
        if data.trim_start().starts_with('[') {
            let list: Vec<Members<'a>> = serde_json::from_str(data).map_err(fault)?;
            if list.iter().any(|key| !key.contains_key("hash")) {
                return Err("it is not a list of keys, because an entry has no `hash`".to_owned());
            }
            self.keys.extend(list);
            return Ok(());
        }
        let credits: Members<'a> = serde_json::from_str(data).map_err(fault)?;
        let bought = amount(&credits, "total_credits");
        let (Some(bought), Some(used)) = (bought, amount(&credits, "total_usage")) else {
            return Err("it is neither a list of keys nor the credits".to_owned());
        };
        self.credits = Some((bought, used));
        Ok(())
    }
}

fn read_account(answers: &Answers<'_>, plan: &mut ImportPlan) {
    plan.wallets_read += 1;
    let money = answers.credits.map(|(bought, used)| bought - used);
    if money.is_none() {
        plan.notes.push(
            "The credits were not named, so the wallet begins with 0: add the answer to GET /api/v1/credits.".to_owned(),
        );
    }
    let money = money.unwrap_or_default();
    plan.money_read = money;
    match money.down() {
        Some(balance) => plan.wallets.push(PlannedWallet {
            origin: WALLET.to_owned(),
            name: SYSTEM.to_owned(),
            is_enabled: true,
            money,
            balance,
            credit_limit: Micro::ZERO,
        }),
        None => plan.leave_out(WALLET, SumKind::Money, money, "the balance is out of range"),
    }
}

fn read_key(key: &Members<'_>, adopts: bool, plan: &mut ImportPlan) {
    plan.keys_read += 1;
    let hash = text(key, "hash").unwrap_or_default();
    let shown: String = hash.chars().take(16).collect();
    let origin = format!("keys:{shown}");
    let begins_again = text(key, "limit_reset");
    let per = match begins_again.as_deref() {
        Some("daily") => Some(PeriodLength::Day),
        Some("weekly") => Some(PeriodLength::Week),
        Some("monthly") => Some(PeriodLength::Month),
        _ => None,
    };
    let (limit, rest) = (amount(key, "limit"), amount(key, "limit_remaining"));
    let mut limits = KeyLimits {
        expires_at: text(key, "expires_at")
            .and_then(|text| text.parse::<jiff::Timestamp>().ok())
            .map(|time| UnixMs::new(time.as_millisecond())),
        ..KeyLimits::default()
    };
    let mut is_enabled = key.get("disabled").is_none_or(|it| it.get() != "true");
    for (name, is_readable) in [
        ("expires_at", limits.expires_at.is_some()),
        ("limit", limit.is_some_and(|limit| limit >= Amount::ZERO)),
        ("limit_remaining", rest.is_some()),
        // A limit with an unknown period becomes a limit for the whole time. That may allow more or less, so the key is
        // disabled.
        ("limit_reset", per.is_some() || limit.is_none()),
    ] {
        if !is_readable && key.get(name).is_some_and(|it| it.get() != "null") {
            let reason = format!("its {name} cannot be read, so it is created disabled");
            plan.report(&origin, reason);
            is_enabled = false;
        }
    }
    let mut limit_read = Amount::ZERO;
    match (limit, rest, per) {
        (None, ..) => {}
        (Some(limit), rest, Some(per)) => {
            let calendar = Calendar::new(per, "UTC");
            if let Ok(calendar) = calendar {
                let amount = limit.down().unwrap_or(Micro::MAX);
                limits.window = Some(KeyWindow { amount, calendar });
            }
            let used = rest.map_or(Amount::ZERO, |rest| limit - rest);
            if used > Amount::ZERO {
                let reason =
                    format!("{used} of its {limit} are used in this period; here it begins with 0");
                plan.report(&origin, reason);
            }
        }
        (Some(limit), rest, None) => {
            let rest = rest.unwrap_or(limit);
            plan.limits_read = plan.limits_read + rest;
            if rest < Amount::ZERO {
                plan.leave(
                    &origin,
                    SumKind::Limits,
                    rest,
                    "more was used than its limit; its limit is 0",
                );
                limits.limit = Some(Micro::ZERO);
            } else {
                limit_read = rest;
                limits.limit = Some(rest.down().unwrap_or(Micro::MAX));
            }
        }
    }
    let digest = if adopts { hex::digest(&hash) } else { None };
    let secret = match digest {
        Some(digest) => PlannedSecret::Adopted {
            digest,
            second: None,
            shown: text(key, "label").unwrap_or_else(|| "sk-or-...".to_owned()),
        },
        None => PlannedSecret::Fresh,
    };
    plan.keys.push(PlannedKey {
        wallet: WALLET.to_owned(),
        name: text(key, "name"),
        secret,
        is_enabled,
        limit_read,
        limits,
        origin,
    });
}

fn text(members: &Members<'_>, name: &str) -> Option<String> {
    serde_json::from_str(members.get(name)?.get()).ok()
}

/// A number of US dollars, which may be a JSON string.
fn amount(members: &Members<'_>, name: &str) -> Option<Amount> {
    let number = members.get(name)?.get().trim_matches('"');
    Decimal::parse(number)?.amount()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(hash: &str) -> String {
        format!(
            r#"{{"data":[
              {{"hash":"{hash}","name":"shop","label":"sk-or-v1-0e6...1c9","disabled":false,"limit":10,"limit_remaining":7.25,"limit_reset":null,"usage":2.75}},
              {{"hash":"bb","name":"ops","label":"x","disabled":true,"limit":5,"limit_remaining":1,"limit_reset":"monthly","expires_at":"2027-12-31T23:59:59Z"}},
              {{"hash":"cc","name":"free","label":"y","disabled":false,"limit":null,"limit_remaining":null}}
            ]}}"#
        )
    }

    const CREDITS: &str = r#"{"data":{"total_credits":100.5,"total_usage":25.7500000001}}"#;

    #[test]
    fn keys_and_credits_are_read_exactly() {
        let files = [
            ("k".to_owned(), keys("aa")),
            ("c".to_owned(), CREDITS.to_owned()),
        ];
        let plan = read(&files, None).unwrap();
        assert_eq!(plan.wallets[0].balance, Micro::new(74_749_999));
        assert_eq!(plan.money_read.to_string(), "74.7499999999");
        assert_eq!(plan.keys[0].limits.limit, Some(Micro::new(7_250_000)));
        let window = plan.keys[1].limits.window.as_ref().unwrap();
        assert_eq!(
            (window.amount, window.calendar.per()),
            (Micro::new(5_000_000), PeriodLength::Month)
        );
        assert!(!plan.keys[1].is_enabled && plan.keys[1].limits.expires_at.is_some());
        assert_eq!(plan.keys[2].limits, KeyLimits::default());
        assert!(
            plan.keys
                .iter()
                .all(|key| matches!(key.secret, PlannedSecret::Fresh))
        );
    }

    #[test]
    fn digests_are_adopted_only_if_a_known_key_proves_them() {
        let known = "sk-or-v1-known";
        let hash = hex(Digest::of(known.as_bytes()).as_bytes());
        let files = [("k".to_owned(), keys(&hash))];
        let adopted = |known| {
            let plan = read(&files, known).unwrap();
            let keys = plan.keys.iter();
            keys.filter(|key| matches!(key.secret, PlannedSecret::Adopted { .. }))
                .count()
        };
        assert_eq!(adopted(None), 0);
        assert_eq!(adopted(Some("sk-or-v1-other")), 0);
        // Keys whose value in the list is not a digest get new secrets.
        assert_eq!(adopted(Some(known)), 1);
    }

    #[test]
    fn a_key_whose_limits_cannot_be_read_is_disabled() {
        let keys = r#"{"data":[
            {"hash":"a","limit":5,"limit_remaining":-1,"expires_at":null},
            {"hash":"b","limit":null,"expires_at":"soon"},
            {"hash":"c","limit":"much"},
            {"hash":"d","limit":-1},
            {"hash":"e","limit":5,"limit_remaining":{}},
            {"hash":"f","limit":5,"limit_remaining":5,"limit_reset":"yearly"},
            {"hash":"g","limit":5,"limit_remaining":5,"limit_reset":7},
            {"hash":"h","limit":null,"limit_remaining":null,"limit_reset":"yearly"}
        ]}"#;
        let plan = read(&[("k".to_owned(), keys.to_owned())], None).unwrap();
        let enabled: Vec<bool> = plan.keys.iter().map(|key| key.is_enabled).collect();
        assert_eq!(
            enabled,
            [true, false, false, false, false, false, false, true]
        );
        for key in plan.keys.iter().filter(|key| !key.is_enabled) {
            let mut leftovers = plan.leftovers.iter();
            assert!(
                leftovers.any(|it| it.origin == key.origin && it.reason.contains("cannot be read"))
            );
        }
    }

    #[test]
    fn other_files_are_refused() {
        for text in [
            "",
            "[]",
            "{}",
            r#"{"data":[{"id":"model"}]}"#,
            r#"{"data":{"label":"x"}}"#,
        ] {
            assert!(
                read(&[("f".to_owned(), text.to_owned())], None).is_err(),
                "{text}"
            );
        }
    }
}
