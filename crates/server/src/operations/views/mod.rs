//! What the command line prints with `--json` and the admin API answers, one struct for each thing.

mod audit;
mod call;
mod key;
mod task;
mod time;
mod token;
mod usage;

pub(crate) use audit::AuditView;
pub(crate) use call::{CallDetail, CallView};
pub(crate) use key::{KeyView, NewKeyView};
pub(crate) use task::{TaskStatus, TaskView, names_of_tasks};
pub(crate) use token::{NewTokenView, TokenView};
pub(crate) use usage::UsageView;
