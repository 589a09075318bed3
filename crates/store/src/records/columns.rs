//! The columns of an entry, as they are written, read back and hashed.

use ledger::{Delta, Micro};

use super::cost::Cost;

#[derive(Debug, Clone, Default)]
pub(crate) struct EntryColumns<'a> {
    pub(crate) wallet: i64,
    pub(crate) seq: i64,
    pub(crate) kind: &'a str,
    pub(crate) at: i64,
    pub(crate) closes: Option<i64>,
    pub(crate) part_of: Option<i64>,
    pub(crate) key: Option<i64>,
    pub(crate) held: Option<i64>,
    pub(crate) booked: i64,
    pub(crate) charge: i64,
    pub(crate) delta: Delta,
    pub(crate) opened_at: Option<i64>,
    pub(crate) request_id: Option<&'a str>,
    pub(crate) meter: Option<&'a str>,
    pub(crate) price_version: Option<i64>,
    pub(crate) basis: Option<&'a str>,
    pub(crate) note: Option<&'a str>,
    /// Only manual entries have this and the next two columns.
    pub(crate) reference: Option<&'a str>,
    pub(crate) refund_of: Option<i64>,
    pub(crate) actor: Option<&'a str>,
    pub(crate) cost: Option<i64>,
    pub(crate) cost_version: Option<i64>,
}

impl EntryColumns<'_> {
    /// Sets the cost of the entry. `booked` is the cost that earlier entries of the same hold already have.
    pub(crate) fn set_cost(&mut self, cost: Option<&Cost>, booked: Micro) {
        if let Some(cost) = cost {
            self.cost = Some(cost.beyond(booked).get());
            self.cost_version = Some(cost.version.number().get());
        }
    }
}
