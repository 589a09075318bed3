//! `/attention`: problems that an operator should look at first.

use axum::extract::State;
use engine::{CallCounts, unusual_errors};
use ledger::{MINUTE_MS, Micro};
use serde::Serialize;
use store::{AlertKind, AlertQuery, AlertRow, Totals, UsageQuery, WalletsBeyondCredit};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::admin::access::Viewer;
use crate::admin::api::error::{ApiError, Refused};
use crate::admin::api::extract::Json;
use crate::admin::api::page::Page;
use crate::admin::api::state::AdminState;

/// The recent period. Its error rate is compared with that of the 24 hours before it.
const RECENT_MS: i64 = 15 * MINUTE_MS;
const BASELINE_MS: i64 = 24 * 60 * MINUTE_MS;
/// The error rate, in percent, from which a notice is severe.
const ERRORS_BAD: u64 = 25;
const ALERTS_MAX: u32 = 20;
/// The console page that lists failed calls.
const ERRORS_LINK: &str = "#/requests?status=error";
const WALLETS_MAX: u32 = 5;

pub(crate) fn router() -> OpenApiRouter<AdminState> {
    OpenApiRouter::new().routes(routes!(attention))
}

/// A problem for operators to look at.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
struct Notice {
    severity: Severity,
    /// A sentence that describes the problem.
    message: String,
    /// The page of the console that shows the problem.
    link: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Severity {
    Bad,
    Warn,
}

/// List problems that need attention
///
/// More errors than usual, wallets beyond their credit line, channels that are not usable, charges that cannot be
/// booked, and open alerts about anything else. The worst are first; the list is empty if there are none.
#[utoipa::path(
    get,
    path = "/attention",
    tag = "attention",
    responses((status = 200, description = "Sentences, the worst first.", body = Page<Notice>), Refused),
)]
async fn attention(
    _: Viewer,
    State(state): State<AdminState>,
) -> Result<Json<Page<Notice>>, ApiError> {
    let store = state.store();
    let now = engine::clock::now();
    let recent_from = now.minus_ms(RECENT_MS);
    let totals = async |from, to| -> Result<Totals, ApiError> {
        let rows = store.usage(UsageQuery::between(from, to, now)).await?;
        Ok(rows
            .into_iter()
            .next()
            .map(|row| row.totals)
            .unwrap_or_default())
    };
    let (recent, usual) = (
        totals(recent_from, now.plus_ms(1)).await?,
        totals(recent_from.minus_ms(BASELINE_MS), recent_from).await?,
    );
    let mut notices = ledger_notices(&state);
    notices.extend(error_notice(&recent, &usual));
    notices.extend(
        state
            .engine
            .channel_states()
            .into_iter()
            .filter_map(channel_notice),
    );
    let beyond_credit = store.wallets_beyond_credit(WALLETS_MAX).await?;
    notices.extend(debt_notices(&beyond_credit));
    let open = store.alerts(AlertQuery {
        only_open: true,
        limit: ALERTS_MAX,
        ..AlertQuery::default()
    });
    add_alerts(&mut notices, open.await?);
    notices.sort_by_key(|notice| notice.severity);
    Ok(Json(Page::complete(notices)))
}

fn notice(severity: Severity, link: &str, message: impl Into<String>) -> Notice {
    Notice {
        severity,
        message: message.into(),
        link: link.to_owned(),
    }
}

fn ledger_notices(state: &AdminState) -> Vec<Notice> {
    let counters = state.store().stats();
    let mut notices = Vec::new();
    let mut bad = |message: String| notices.push(notice(Severity::Bad, "#/settings", message));
    if !state.store().healthy() {
        bad("The ledger cannot be written, so no call is admitted.".to_owned());
    }
    if counters.stuck_closes > 0 {
        bad(format!(
            "{} of this node cannot be booked: the database refuses. The log names them.",
            counted(counters.stuck_closes, "finished call", "finished calls")
        ));
    }
    if counters.unbookable > 0 {
        bad(format!(
            "{} of this node could not be booked, because the amount is too large.",
            counted(counters.unbookable, "charge", "charges")
        ));
    }
    if counters.journal_dropped > 0 {
        let rows = counted(counters.journal_dropped, "row", "rows");
        let message = format!("The journal of this node has lost {rows} since its start.");
        notices.push(notice(Severity::Warn, "#/requests", message));
    }
    notices
}

fn error_notice(recent: &Totals, usual: &Totals) -> Option<Notice> {
    let counts = |totals: &Totals| CallCounts {
        requests: totals.requests,
        errors: totals.errors,
    };
    let errors = unusual_errors(counts(recent), counts(usual), false)?;
    let severity = if errors.percent >= ERRORS_BAD {
        Severity::Bad
    } else {
        Severity::Warn
    };
    let message = format!(
        "{} % of the calls of the last 15 minutes failed ({} of {}); {} % is usual.",
        errors.percent, recent.errors, recent.requests, errors.usual_percent
    );
    Some(notice(severity, ERRORS_LINK, message))
}

/// Adds open alerts, except those whose link another notice already has. So what this node observes takes precedence
/// over alerts, and newer alerts over older ones.
fn add_alerts(notices: &mut Vec<Notice>, open: Vec<AlertRow>) {
    for alert in open {
        let subject = alert.subject.as_deref().unwrap_or_default();
        let (severity, link) = match alert.kind {
            AlertKind::LowBalance => (Severity::Warn, format!("#/wallets/{subject}")),
            AlertKind::KeyLimit => (Severity::Warn, format!("#/keys/{subject}")),
            AlertKind::ChannelDown => (Severity::Warn, format!("#/channels/{}", encoded(subject))),
            AlertKind::ErrorRate if subject.is_empty() => (Severity::Warn, ERRORS_LINK.to_owned()),
            AlertKind::ErrorRate => {
                let link = format!("{ERRORS_LINK}&channel={}", encoded(subject));
                (Severity::Warn, link)
            }
            AlertKind::StuckCloses => (Severity::Bad, "#/settings".to_owned()),
        };
        if notices.iter().all(|notice| notice.link != link) {
            notices.push(notice(severity, &link, alert.message));
        }
    }
}

fn channel_notice((name, breaker): (String, &'static str)) -> Option<Notice> {
    let (severity, why) = match breaker {
        "open" => (Severity::Warn, "is paused after failures"),
        "taken_out" => (
            Severity::Bad,
            "is out of use: its upstream refuses the credential",
        ),
        _ => return None,
    };
    let link = format!("#/channels/{}", encoded(&name));
    Some(notice(severity, &link, format!("Channel {name} {why}.")))
}

/// Wallets that owe more than their credit line.
fn debt_notices(wallets: &WalletsBeyondCredit) -> Vec<Notice> {
    let named = wallets.deepest.iter().map(|row| {
        let debt = row.wallet.credit_used.get() - row.wallet.credit_limit.get();
        let link = format!("#/wallets/{}", row.id);
        let message = format!(
            "Wallet {} is {} credits beyond its credit line.",
            row.name,
            Micro::new(debt)
        );
        notice(Severity::Warn, &link, message)
    });
    let mut notices: Vec<Notice> = named.collect();
    let more = wallets.total.saturating_sub(wallets.deepest.len() as u64);
    if more > 0 {
        let message = format!("{more} more wallets are beyond their credit lines.");
        notices.push(notice(Severity::Warn, "#/wallets", message));
    }
    notices
}

fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn encoded(name: &str) -> percent_encoding::PercentEncode<'_> {
    percent_encoding::utf8_percent_encode(name, percent_encoding::NON_ALPHANUMERIC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_named_when_they_are_many_and_unusual() {
        let totals = |errors, requests| Totals {
            errors,
            requests,
            ..Totals::default()
        };
        for (recent, usual, severity) in [
            ((0, 0), (0, 0), None),
            ((5, 10), (0, 1_000), None),
            ((2, 100), (0, 1_000), None),
            ((6, 100), (10, 1_000), Some(Severity::Warn)),
            ((6, 100), (40, 1_000), None),
            ((30, 100), (0, 0), Some(Severity::Bad)),
        ] {
            let found = error_notice(&totals(recent.0, recent.1), &totals(usual.0, usual.1));
            assert_eq!(found.map(|notice| notice.severity), severity, "{recent:?}");
        }
    }

    #[test]
    fn an_alert_is_named_unless_something_with_its_link_is() {
        let alert = |kind, subject: &str| AlertRow {
            cursor: store::AlertCursor(1),
            id: store::AlertId::random(),
            kind,
            condition: String::new(),
            subject: Some(subject.to_owned()).filter(|it| !it.is_empty()),
            wallet: None,
            message: format!("{kind} {subject}"),
            at: ledger::UnixMs::new(0),
            ended_at: None,
            delivery: store::DeliveryState::None,
        };
        let mut notices: Vec<Notice> = channel_notice(("main".to_owned(), "open"))
            .into_iter()
            .collect();
        let open = vec![
            alert(AlertKind::ChannelDown, "main"),
            alert(AlertKind::ChannelDown, "other node"),
            alert(AlertKind::KeyLimit, "key_1"),
            alert(AlertKind::KeyLimit, "key_1"),
            alert(AlertKind::ErrorRate, ""),
            alert(AlertKind::ErrorRate, "main"),
            alert(AlertKind::StuckCloses, ""),
        ];
        add_alerts(&mut notices, open);
        let links: Vec<&str> = notices.iter().map(|notice| &*notice.link).collect();
        assert_eq!(
            links,
            [
                "#/channels/main",
                "#/channels/other%20node",
                "#/keys/key_1",
                "#/requests?status=error",
                "#/requests?status=error&channel=main",
                "#/settings",
            ]
        );
    }

    #[test]
    fn channels_out_of_use_are_named() {
        let found = channel_notice(("a b".to_owned(), "taken_out")).unwrap();
        assert_eq!(
            (found.severity, &*found.link),
            (Severity::Bad, "#/channels/a%20b")
        );
        assert_eq!(channel_notice(("a".to_owned(), "closed")), None);
    }
}
