//! The values that callers pass to the store and read back from it.

pub(crate) mod access;
pub(crate) mod accounts;
pub(crate) mod audit;
pub(crate) mod balance_point;
pub(crate) mod calendar;
pub(crate) mod call;
pub(crate) mod catalog;
pub(crate) mod columns;
pub(crate) mod cost;
pub(crate) mod entries;
pub(crate) mod ids;
pub(crate) mod journal;
pub(crate) mod key_query;
pub(crate) mod manual;
pub(crate) mod meter;
pub(crate) mod model_list;
pub(crate) mod names;
pub(crate) mod recovery;
pub(crate) mod settled;
pub(crate) mod statement;
pub(crate) mod tags;
pub(crate) mod task;
pub(crate) mod task_id;
pub(crate) mod task_list;
pub(crate) mod totals;
