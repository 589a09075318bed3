//! A finished call in the form that telemetry needs.

use std::borrow::Cow;
use std::sync::Arc;

use ledger::{Micro, UnixMs};
use store::{JournalRow, KeyId, MeterText, RequestId, Timings, WalletId};

use super::call_trace::CallTrace;

/// The trace, and the parts of a journal row that telemetry may contain: no bodies and no upstream messages.
#[derive(Debug)]
pub(crate) struct FinishedCall {
    pub(super) trace: Box<CallTrace>,
    pub(super) ended_at: UnixMs,
    pub(super) request_id: RequestId,
    pub(super) wallet: Option<WalletId>,
    pub(super) key: Option<KeyId>,
    pub(super) endpoint: Cow<'static, str>,
    pub(super) model: Arc<str>,
    pub(super) channel: Option<Arc<str>>,
    pub(super) upstream_model: Option<Arc<str>>,
    pub(super) status: u16,
    pub(super) code: Option<Cow<'static, str>>,
    pub(super) is_streamed: bool,
    pub(super) hold_end: Option<Cow<'static, str>>,
    pub(super) meter: Option<MeterText>,
    pub(super) charge: Micro,
    pub(super) cost: Option<Micro>,
    pub(super) timings: Timings,
}

impl FinishedCall {
    pub(crate) fn new(trace: Box<CallTrace>, row: &JournalRow) -> Self {
        Self {
            trace,
            ended_at: row.at,
            request_id: row.request_id,
            wallet: row.wallet,
            key: row.key,
            endpoint: row.endpoint.clone(),
            model: Arc::clone(&row.model),
            channel: row.channel.clone(),
            upstream_model: row.upstream_model.clone(),
            status: row.status,
            code: row.code.clone(),
            is_streamed: row.stream,
            hold_end: row.outcome.clone(),
            meter: row.meter.clone(),
            charge: row.charge,
            cost: row.cost,
            timings: row.timings,
        }
    }
}
