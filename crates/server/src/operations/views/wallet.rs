//! Views of a wallet, and of its balance over time.

use ledger::Micro;
use serde::Serialize;
use store::{Balances, WalletRow, WalletSpending};
use utoipa::ToSchema;

use crate::operations::amount::{Credits, MicroText};

/// A wallet, with the members of `GET /v1/balance` and the exposure of its open calls.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Wallet)]
pub(crate) struct WalletView {
    #[schema(example = "wal_0123456789abcdef")]
    pub(crate) id: String,
    pub(crate) name: String,
    /// `active` or `disabled`.
    #[schema(value_type = String, example = "active")]
    pub(crate) status: &'static str,
    /// The credits that can be spent without the credit line.
    pub(crate) available: Credits,
    pub(crate) available_micro: MicroText,
    /// The credits that can be spent, including the credit line.
    pub(crate) total_available: Credits,
    pub(crate) total_available_micro: MicroText,
    /// Paid credits.
    pub(crate) balance: Credits,
    pub(crate) balance_micro: MicroText,
    /// Gift credits, which are spent first.
    pub(crate) gift_balance: Credits,
    pub(crate) gift_balance_micro: MicroText,
    /// Credits held for open calls.
    pub(crate) frozen: Credits,
    pub(crate) frozen_micro: MicroText,
    pub(crate) credit_limit: Credits,
    pub(crate) credit_limit_micro: MicroText,
    pub(crate) credit_used: Credits,
    pub(crate) credit_used_micro: MicroText,
    pub(crate) credit_remaining: Credits,
    pub(crate) credit_remaining_micro: MicroText,
    /// The maximum amount that open calls may cost beyond their holds.
    pub(crate) exposed: Credits,
    pub(crate) exposed_micro: MicroText,
    /// The low-balance alert of the wallet; null if the wallet has no amount of its own.
    #[schema(required)]
    pub(crate) alerts: Option<WalletAlertsView>,
    /// In Unix milliseconds.
    pub(crate) created_at: i64,
}

impl From<&WalletRow> for WalletView {
    fn from(row: &WalletRow) -> Self {
        let wallet = &row.wallet;
        let in_both_units = |amount: Micro| (Credits(amount), MicroText(amount));
        let (available, available_micro) = in_both_units(wallet.available());
        let (total_available, total_available_micro) = in_both_units(wallet.total_available());
        let (balance, balance_micro) = in_both_units(wallet.balance);
        let (gift_balance, gift_balance_micro) = in_both_units(wallet.gift_balance);
        let (frozen, frozen_micro) = in_both_units(wallet.frozen);
        let (credit_limit, credit_limit_micro) = in_both_units(wallet.credit_limit);
        let (credit_used, credit_used_micro) = in_both_units(wallet.credit_used);
        let (credit_remaining, credit_remaining_micro) = in_both_units(wallet.credit_remaining());
        let (exposed, exposed_micro) = in_both_units(wallet.exposed);
        Self {
            id: row.id.to_string(),
            name: row.name.clone(),
            status: wallet.status.as_str(),
            available,
            available_micro,
            total_available,
            total_available_micro,
            balance,
            balance_micro,
            gift_balance,
            gift_balance_micro,
            frozen,
            frozen_micro,
            credit_limit,
            credit_limit_micro,
            credit_used,
            credit_used_micro,
            credit_remaining,
            credit_remaining_micro,
            exposed,
            exposed_micro,
            alerts: row.alert_below.map(|below| WalletAlertsView {
                below: Credits(below),
                below_micro: MicroText(below),
            }),
            created_at: row.created_at.get(),
        }
    }
}

/// The low-balance alert of a wallet.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = WalletAlerts)]
pub(crate) struct WalletAlertsView {
    /// The balance below which the alert begins.
    pub(crate) below: Credits,
    pub(crate) below_micro: MicroText,
}

/// A wallet with the charges for its calls.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = WalletWithSpending)]
pub(crate) struct WalletSpendingView {
    #[serde(flatten)]
    pub(crate) wallet: WalletView,
    /// The charges for its calls since midnight (UTC).
    pub(crate) spent_today: Credits,
    pub(crate) spent_today_micro: MicroText,
    /// The charges for its calls since the first of the month (UTC).
    pub(crate) spent_this_month: Credits,
    pub(crate) spent_this_month_micro: MicroText,
}

impl From<WalletSpending> for WalletSpendingView {
    fn from(spending: WalletSpending) -> Self {
        Self {
            wallet: WalletView::from(&spending.row),
            spent_today: Credits(spending.spent_today),
            spent_today_micro: MicroText(spending.spent_today),
            spent_this_month: Credits(spending.spent_this_month),
            spent_this_month_micro: MicroText(spending.spent_this_month),
        }
    }
}

/// The balance of a wallet at a time, in total and by kind of credits.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Balance)]
pub(crate) struct BalanceView {
    /// The time of the balance, in Unix milliseconds.
    pub(crate) at: i64,
    /// Paid and gift credits, less the used credit line.
    pub(crate) balance: Credits,
    pub(crate) balance_micro: MicroText,
    pub(crate) paid: Credits,
    pub(crate) paid_micro: MicroText,
    pub(crate) gift: Credits,
    pub(crate) gift_micro: MicroText,
    pub(crate) credit_used: Credits,
    pub(crate) credit_used_micro: MicroText,
}

impl BalanceView {
    pub(crate) fn at(at: i64, balances: &Balances) -> Self {
        let total = balances.total();
        Self {
            at,
            balance: Credits(total),
            balance_micro: MicroText(total),
            paid: Credits(balances.balance),
            paid_micro: MicroText(balances.balance),
            gift: Credits(balances.gift_balance),
            gift_micro: MicroText(balances.gift_balance),
            credit_used: Credits(balances.credit_used),
            credit_used_micro: MicroText(balances.credit_used),
        }
    }
}

#[cfg(test)]
mod tests {
    use ledger::UnixMs;
    use serde_json::json;
    use store::WalletId;

    use super::*;

    #[test]
    fn a_wallet_tells_every_amount_twice() {
        let row = WalletRow {
            id: WalletId::parse("wal_0123456789abcdef").unwrap(),
            name: "acme".to_owned(),
            wallet: ledger::Wallet {
                balance: Micro::new(100_000_000),
                gift_balance: Micro::new(5_250_000),
                credit_limit: Micro::new(50_000_000),
                frozen: Micro::new(1),
                exposed: Micro::new(2),
                ..ledger::Wallet::default()
            },
            alert_below: Some(Micro::new(5_500_000)),
            created_at: UnixMs::new(7),
        };
        let expected = json!({
            "id": "wal_0123456789abcdef",
            "name": "acme",
            "status": "active",
            "available": "105.249999",
            "available_micro": "105249999",
            "total_available": "155.249999",
            "total_available_micro": "155249999",
            "balance": "100",
            "balance_micro": "100000000",
            "gift_balance": "5.25",
            "gift_balance_micro": "5250000",
            "frozen": "0.000001",
            "frozen_micro": "1",
            "credit_limit": "50",
            "credit_limit_micro": "50000000",
            "credit_used": "0",
            "credit_used_micro": "0",
            "credit_remaining": "50",
            "credit_remaining_micro": "50000000",
            "exposed": "0.000002",
            "exposed_micro": "2",
            "alerts": {"below": "5.5", "below_micro": "5500000"},
            "created_at": 7,
        });
        assert_eq!(json!(WalletView::from(&row)), expected);
    }
}
