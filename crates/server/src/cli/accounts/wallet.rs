//! `tollgate wallet …`: creates, funds, changes and shows wallets.

use clap::{Args, Subcommand};
use ledger::{ManualKind, Micro, WalletStatus};
use store::{NewEntry, NewWallet, Store, WalletRow, WalletSettings};

use super::limit_change::LimitChange;
use super::statement::{self, StatementArgs};
use super::view::wallet_table;
use crate::cli::context::{Context, actor};
use crate::cli::terminal::CommandError;
use crate::operations::views::WalletView;

#[derive(Debug, Subcommand)]
pub(crate) enum Wallet {
    /// Create a wallet.
    Create {
        /// A unique name.
        name: String,
        /// The initial paid credits.
        #[arg(long, value_name = "CREDITS", default_value = "0", value_parser = credits)]
        balance: Micro,
        /// The initial gift credits; they are spent first.
        #[arg(long, value_name = "CREDITS", default_value = "0", value_parser = credits)]
        gift: Micro,
        /// How many credits may be used beyond the balance.
        #[arg(long, value_name = "CREDITS", default_value = "0", value_parser = credits)]
        credit_limit: Micro,
    },
    /// List all wallets.
    List,
    /// Show one wallet.
    Show {
        /// The wallet, by name or id.
        #[arg(value_name = "NAME_OR_ID")]
        wallet: String,
    },
    /// Add paid credits; a used credit line is repaid first.
    Topup {
        /// The wallet, by name or id.
        #[arg(value_name = "NAME_OR_ID")]
        wallet: String,
        /// The number of credits, above zero.
        #[arg(value_parser = positive_credits)]
        amount: Micro,
        #[command(flatten)]
        reason: Reason,
    },
    /// Add gift credits; they never repay debt.
    Gift {
        /// The wallet, by name or id.
        #[arg(value_name = "NAME_OR_ID")]
        wallet: String,
        /// The number of credits, above zero.
        #[arg(value_parser = positive_credits)]
        amount: Micro,
        #[command(flatten)]
        reason: Reason,
    },
    /// Take paid credits for something other than a call.
    Debit {
        /// The wallet, by name or id.
        #[arg(value_name = "NAME_OR_ID")]
        wallet: String,
        /// The number of credits, above zero.
        #[arg(value_parser = positive_credits)]
        amount: Micro,
        #[command(flatten)]
        reason: Reason,
    },
    /// Take paid credits because their money is paid back.
    Refund {
        /// The wallet, by name or id.
        #[arg(value_name = "NAME_OR_ID")]
        wallet: String,
        /// The number of credits, above zero.
        #[arg(value_parser = positive_credits)]
        amount: Micro,
        /// The top-up that is refunded: its reference, or the number of its entry.
        #[arg(long, value_name = "REFERENCE_OR_NUMBER")]
        of: Option<String>,
        #[command(flatten)]
        reason: Reason,
    },
    /// Correct the balance: an amount above or below zero. Below zero, the credit line may be used.
    Adjust {
        /// The wallet, by name or id.
        #[arg(value_name = "NAME_OR_ID")]
        wallet: String,
        /// How many credits are added; below zero, they are taken.
        #[arg(value_parser = signed_credits, allow_negative_numbers = true)]
        amount: Micro,
        #[command(flatten)]
        reason: Reason,
    },
    /// Show the entries of a wallet with the balance after each, and the totals of each month.
    Statement(StatementArgs),
    /// Give a wallet another name.
    Rename {
        /// The wallet, by name or id.
        #[arg(value_name = "NAME_OR_ID")]
        wallet: String,
        /// A unique name.
        name: String,
    },
    /// Set the credit limit.
    CreditLimit {
        /// The wallet, by name or id.
        #[arg(value_name = "NAME_OR_ID")]
        wallet: String,
        /// The new limit, in credits.
        #[arg(value_parser = credits)]
        amount: Micro,
    },
    /// Set the balance below which an alert for the wallet begins; `none` removes it.
    AlertBelow {
        /// The wallet, by name or id.
        #[arg(value_name = "NAME_OR_ID")]
        wallet: String,
        /// The balance, in credits, or `none`.
        #[arg(value_name = "CREDITS", allow_hyphen_values = true, value_parser = amount_or_none)]
        below: LimitChange<Micro>,
    },
    /// Admit no more calls; open calls are finished and settled.
    Disable {
        /// The wallet, by name or id.
        #[arg(value_name = "NAME_OR_ID")]
        wallet: String,
    },
    /// Admit calls again.
    Enable {
        /// The wallet, by name or id.
        #[arg(value_name = "NAME_OR_ID")]
        wallet: String,
    },
}

/// The reference and note of a manual entry.
#[derive(Debug, Args)]
pub(crate) struct Reason {
    /// A text that is unique among the wallet's entries, such as the id of the payment. A command with the same
    /// reference and amount can be repeated, and books once.
    #[arg(long)]
    reference: Option<String>,
    /// A note that is stored with the entry.
    #[arg(long, default_value = "")]
    note: String,
}

impl Reason {
    fn entry(self, kind: ManualKind, amount: Micro) -> NewEntry {
        NewEntry {
            kind,
            amount,
            reference: self.reference,
            refund_of: None,
            note: self.note,
        }
    }
}

pub(crate) async fn run(command: Wallet, context: &mut Context) -> Result<(), CommandError> {
    let (store, actor) = (context.store()?, actor());
    let row = match command {
        Wallet::List => return list(&store, context).await,
        Wallet::Create {
            name,
            balance,
            gift,
            credit_limit,
        } => {
            let wallet = NewWallet {
                name,
                balance,
                gift,
                credit_limit,
            };
            store.create_wallet(wallet, &actor).await?
        }
        Wallet::Show { wallet } => find(&store, &wallet).await?,
        Wallet::Topup {
            wallet,
            amount,
            reason,
        } => book(&store, &wallet, reason.entry(ManualKind::TopUp, amount)).await?,
        Wallet::Gift {
            wallet,
            amount,
            reason,
        } => book(&store, &wallet, reason.entry(ManualKind::Gift, amount)).await?,
        Wallet::Debit {
            wallet,
            amount,
            reason,
        } => book(&store, &wallet, reason.entry(ManualKind::Debit, amount)).await?,
        Wallet::Refund {
            wallet,
            amount,
            of,
            reason,
        } => {
            let refund = NewEntry {
                refund_of: of,
                ..reason.entry(ManualKind::Refund, amount)
            };
            book(&store, &wallet, refund).await?
        }
        Wallet::Adjust {
            wallet,
            amount,
            reason,
        } => {
            let entry = reason.entry(ManualKind::Adjustment, amount);
            book(&store, &wallet, entry).await?
        }
        Wallet::Statement(args) => return statement::run(args, &store, context).await,
        Wallet::Rename { wallet, name } => {
            let id = find(&store, &wallet).await?.id;
            let settings = WalletSettings {
                name: Some(name),
                ..WalletSettings::default()
            };
            store.update_wallet(id, settings, &actor).await?
        }
        Wallet::CreditLimit { wallet, amount } => {
            let id = find(&store, &wallet).await?.id;
            store.set_credit_limit(id, amount, &actor).await?
        }
        Wallet::AlertBelow { wallet, below } => {
            let id = find(&store, &wallet).await?.id;
            let settings = WalletSettings {
                alert_below: Some(below.into_option()),
                ..WalletSettings::default()
            };
            store.update_wallet(id, settings, &actor).await?
        }
        Wallet::Disable { wallet } => {
            let id = find(&store, &wallet).await?.id;
            store
                .set_wallet_status(id, WalletStatus::Disabled, &actor)
                .await?
        }
        Wallet::Enable { wallet } => {
            let id = find(&store, &wallet).await?.id;
            store
                .set_wallet_status(id, WalletStatus::Active, &actor)
                .await?
        }
    };
    if context.json {
        context.out.json(&WalletView::from(&row))
    } else {
        context.out.table(&wallet_table([&row]))
    }
}

/// Books a manual entry and returns the changed wallet.
async fn book(store: &Store, wallet: &str, entry: NewEntry) -> Result<WalletRow, CommandError> {
    let id = find(store, wallet).await?.id;
    let booked = store.book_entry(id, entry, &actor()).await?;
    Ok(booked.wallet)
}

async fn list(store: &Store, context: &mut Context) -> Result<(), CommandError> {
    let rows = store.wallets().await?;
    if context.json {
        let rows: Vec<_> = rows.iter().map(WalletView::from).collect();
        context.out.json(&rows)
    } else {
        context.out.table(&wallet_table(&rows))
    }
}

pub(crate) async fn find(store: &Store, name_or_id: &str) -> Result<WalletRow, CommandError> {
    let found = store.find_wallet(name_or_id).await?;
    found.ok_or_else(|| CommandError::message(format!("no wallet `{name_or_id}`")))
}

pub(crate) fn credits(text: &str) -> Result<Micro, String> {
    let amount: Micro = text.parse().map_err(|error| {
        format!("write credits with at most 6 decimals, such as 12.5 ({error})")
    })?;
    if amount < Micro::ZERO {
        return Err("must not be negative".to_owned());
    }
    Ok(amount)
}

fn signed_credits(text: &str) -> Result<Micro, String> {
    match text.parse() {
        Ok(Micro::ZERO) => Err("must not be 0".to_owned()),
        Ok(amount) => Ok(amount),
        Err(error) => Err(format!(
            "write credits with at most 6 decimals, such as -12.5 ({error})"
        )),
    }
}

fn amount_or_none(text: &str) -> Result<LimitChange<Micro>, String> {
    LimitChange::read(text, any_credits)
}

pub(crate) fn any_credits(text: &str) -> Result<Micro, String> {
    text.parse()
        .map_err(|error| format!("write credits with at most 6 decimals, such as 12.5 ({error})"))
}

fn positive_credits(text: &str) -> Result<Micro, String> {
    match credits(text)? {
        Micro::ZERO => Err("must be above 0".to_owned()),
        amount => Ok(amount),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_credits_with_six_decimals_at_most() {
        for (text, micro) in [("0", 0), ("12.5", 12_500_000), ("0.000001", 1)] {
            assert_eq!(credits(text), Ok(Micro::new(micro)), "{text}");
        }
        for text in ["", "-1", "0.0000001", "1e3", "ten", "99999999999999999"] {
            assert!(credits(text).is_err(), "{text}");
        }
        assert!(positive_credits("0").is_err());
        assert!(signed_credits("0").is_err());
        assert_eq!(signed_credits("-0.5"), Ok(Micro::new(-500_000)));
        assert!(positive_credits("0.000001").is_ok());
    }
}
