//! The views that the command line prints with `--json` and the admin API returns.

mod alert;
mod audit;
mod call;
mod duration;
mod key;
mod statement;
mod task;
mod token;
mod usage;
mod wallet;

pub(crate) use alert::{AlertView, NewRuleView, RuleTestView, RuleView};
pub(crate) use audit::AuditView;
pub(crate) use call::{CallDetail, CallView};
pub(crate) use key::{KeyView, NewKeyView};
pub(crate) use statement::{EntryView, MonthView, StatementView};
pub(crate) use task::{TaskStatus, TaskView, names_of_tasks};
pub(crate) use token::{NewTokenView, TokenView};
pub(crate) use usage::UsageView;
pub(crate) use wallet::{BalanceView, WalletSpendingView, WalletView};
