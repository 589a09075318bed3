//! Views of a wallet's entries and of their monthly sums.

use ledger::Micro;
use serde::Serialize;
use store::{EntryKind, KeyTotal, StatementEntry, StatementRange, StatementTotals};
use utoipa::ToSchema;

use super::wallet::BalanceView;
use crate::operations::amount::{Credits, MicroText};

/// An entry of a wallet, with the balance after it.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Entry)]
pub(crate) struct EntryView {
    /// The number of the entry among those of the wallet, from 1, without gaps.
    pub(crate) seq: i64,
    /// `top_up`, `gift`, `debit`, `refund`, `adjustment`, `credit_limit`, `status`, or for calls `settled`,
    /// `released`, `abandoned` and `part`.
    #[schema(value_type = String, example = "top_up")]
    pub(crate) kind: &'static str,
    /// In Unix milliseconds.
    pub(crate) at: i64,
    /// The change of the wallet's credits; negative if credits were taken.
    pub(crate) amount: Credits,
    pub(crate) amount_micro: MicroText,
    /// Paid and gift credits, less the used credit line.
    pub(crate) balance_after: Credits,
    pub(crate) balance_after_micro: MicroText,
    pub(crate) paid_after: Credits,
    pub(crate) paid_after_micro: MicroText,
    pub(crate) gift_after: Credits,
    pub(crate) gift_after_micro: MicroText,
    pub(crate) credit_used_after: Credits,
    pub(crate) credit_used_after_micro: MicroText,
    /// Unique among the wallet's entries.
    #[schema(required)]
    pub(crate) reference: Option<Box<str>>,
    /// For a refund, the number of the top-up's entry.
    #[schema(required)]
    pub(crate) refund_of: Option<i64>,
    #[schema(required)]
    pub(crate) note: Option<Box<str>>,
    /// The name of the actor who booked the entry. Null for calls.
    #[schema(required)]
    pub(crate) actor: Option<Box<str>>,
    /// The key of the call.
    #[schema(required)]
    pub(crate) key: Option<String>,
    #[schema(required)]
    pub(crate) key_name: Option<Box<str>>,
    #[schema(required)]
    pub(crate) request_id: Option<Box<str>>,
}

impl From<StatementEntry> for EntryView {
    fn from(entry: StatementEntry) -> Self {
        let StatementEntry {
            entry,
            key_name,
            after,
        } = entry;
        let amount = Micro::new(entry.delta.total());
        let total = after.total();
        let (key, request_id) = entry
            .call
            .map(|call| (call.key.to_string(), call.request_id))
            .unzip();
        Self {
            seq: entry.seq,
            kind: entry.kind.as_str(),
            at: entry.at.get(),
            amount: Credits(amount),
            amount_micro: MicroText(amount),
            balance_after: Credits(total),
            balance_after_micro: MicroText(total),
            paid_after: Credits(after.balance),
            paid_after_micro: MicroText(after.balance),
            gift_after: Credits(after.gift_balance),
            gift_after_micro: MicroText(after.gift_balance),
            credit_used_after: Credits(after.credit_used),
            credit_used_after_micro: MicroText(after.credit_used),
            reference: entry.reference,
            refund_of: entry.refund_of,
            note: entry.note,
            actor: entry.actor,
            key,
            key_name,
            request_id,
        }
    }
}

/// The sums of the entries of one month (UTC), for an invoice.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = StatementMonth)]
pub(crate) struct MonthView {
    #[schema(example = "2026-11")]
    pub(crate) month: String,
    /// The balance before the first entry of the month, or of the statement.
    pub(crate) opening: BalanceView,
    /// The balance after the last entry of the month, or of the statement.
    pub(crate) closing: BalanceView,
    pub(crate) top_up: Credits,
    pub(crate) top_up_micro: MicroText,
    pub(crate) gift: Credits,
    pub(crate) gift_micro: MicroText,
    /// Zero or negative, like refunds.
    pub(crate) debit: Credits,
    pub(crate) debit_micro: MicroText,
    pub(crate) refund: Credits,
    pub(crate) refund_micro: MicroText,
    pub(crate) adjustment: Credits,
    pub(crate) adjustment_micro: MicroText,
    /// The sum of the charges for calls, as a positive amount.
    pub(crate) charged: Credits,
    pub(crate) charged_micro: MicroText,
    /// The number of calls that have ended, with or without a charge.
    pub(crate) calls: u64,
    /// The charges by key, highest first.
    pub(crate) keys: Vec<KeyTotalView>,
}

/// The charges for the calls of one key in a month.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = StatementKey)]
pub(crate) struct KeyTotalView {
    pub(crate) key: String,
    #[schema(required)]
    pub(crate) key_name: Option<Box<str>>,
    pub(crate) calls: u64,
    pub(crate) charged: Credits,
    pub(crate) charged_micro: MicroText,
}

impl MonthView {
    pub(crate) fn new(month: String, range: &StatementRange, totals: StatementTotals) -> Self {
        let total = |kind: EntryKind| {
            let found = totals.kinds.iter().find(|total| total.kind == kind);
            found.map_or(Micro::ZERO, |total| total.total)
        };
        let in_both_units = |kind| (Credits(total(kind)), MicroText(total(kind)));
        let (top_up, top_up_micro) = in_both_units(EntryKind::TopUp);
        let (gift, gift_micro) = in_both_units(EntryKind::Gift);
        let (debit, debit_micro) = in_both_units(EntryKind::Debit);
        let (refund, refund_micro) = in_both_units(EntryKind::Refund);
        let (adjustment, adjustment_micro) = in_both_units(EntryKind::Adjustment);
        let (opening, closing) = (&range.opening, &range.closing);
        let charged = Micro::new(closing.charged.get().saturating_sub(opening.charged.get()));
        let calls = totals.keys.iter().map(|key| key.calls).sum();
        Self {
            month,
            opening: BalanceView::at(opening.posted_at.get(), &opening.balances),
            closing: BalanceView::at(closing.posted_at.get(), &closing.balances),
            top_up,
            top_up_micro,
            gift,
            gift_micro,
            debit,
            debit_micro,
            refund,
            refund_micro,
            adjustment,
            adjustment_micro,
            charged: Credits(charged),
            charged_micro: MicroText(charged),
            calls,
            keys: totals.keys.into_iter().map(KeyTotalView::from).collect(),
        }
    }
}

impl From<KeyTotal> for KeyTotalView {
    fn from(total: KeyTotal) -> Self {
        Self {
            key: total.key.to_string(),
            key_name: total.name,
            calls: total.calls,
            charged: Credits(total.charged),
            charged_micro: MicroText(total.charged),
        }
    }
}

/// A page of a wallet's statement, oldest entries first.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Statement)]
pub(crate) struct StatementView {
    pub(crate) wallet: String,
    pub(crate) wallet_name: String,
    /// The balance before the first entry of the statement.
    pub(crate) opening: BalanceView,
    /// The balance after the last entry of the statement.
    pub(crate) closing: BalanceView,
    /// The sums of each month. Only on the first page.
    #[schema(required)]
    pub(crate) months: Option<Vec<MonthView>>,
    pub(crate) data: Vec<EntryView>,
    /// The `cursor` of the next page, or null at the end.
    #[schema(required)]
    pub(crate) next_cursor: Option<String>,
}
