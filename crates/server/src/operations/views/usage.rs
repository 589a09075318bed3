//! The view of a row of a usage report.

use ledger::UnixMs;
use serde::Serialize;
use store::{AccountNames, Dimension, Histogram, KeyId, UsageRow, WalletId};
use utoipa::ToSchema;

use super::duration::millis;
use crate::admin::{Credits, MicroText};

/// The usage of one step and group. Members that the report is not grouped by are absent.
#[derive(Debug, Serialize, ToSchema)]
#[expect(
    clippy::option_option,
    reason = "absent if it was not asked for, null if there is none"
)]
pub(crate) struct UsageView {
    /// When the step began. Absent if the report has no steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>)]
    at: Option<UnixMs>,
    /// Empty for calls that did not name a known model.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// Empty for calls that reached no channel. A call that failed counts for the channel that failed last.
    #[serde(skip_serializing_if = "Option::is_none")]
    channel: Option<String>,
    /// Null for callers that were not authenticated.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    wallet: Option<Option<WalletId>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    wallet_name: Option<Option<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    key: Option<Option<KeyId>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    key_name: Option<Option<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoint: Option<String>,
    requests: u64,
    /// Calls with a status of 400 or above, or with an error code.
    errors: u64,
    /// Input tokens of all classes: uncached, cached and written to a cache, and those of pictures and audio.
    input_tokens: u64,
    output_tokens: u64,
    charge: Credits,
    charge_micro: MicroText,
    /// The cost at upstreams, summed over the calls whose cost is known. Null if there are none.
    #[schema(required)]
    cost: Option<Credits>,
    #[schema(required)]
    cost_micro: Option<MicroText>,
    /// The charge of the calls whose cost is known, less their cost.
    #[schema(required)]
    margin: Option<Credits>,
    #[schema(required)]
    margin_micro: Option<MicroText>,
    /// Percentiles deviate from the true values by at most one part in 32.
    #[schema(required)]
    latency_p50_ms: Option<f64>,
    #[schema(required)]
    latency_p95_ms: Option<f64>,
    #[schema(required)]
    first_byte_p50_ms: Option<f64>,
    #[schema(required)]
    first_byte_p95_ms: Option<f64>,
}

impl UsageView {
    pub(crate) fn of(row: &UsageRow, by: &[Dimension], names: &AccountNames) -> Self {
        let of = |dimension| by.contains(&dimension);
        let series = &row.series;
        let wallet_name = series.wallet.and_then(|id| names.wallets.get(&id).cloned());
        let key_name = series.key.and_then(|id| names.keys.get(&id).cloned());
        let percentile = |of: &Histogram, of_hundred| of.percentile(of_hundred).map(millis);
        let totals = &row.totals;
        Self {
            at: row.at,
            model: of(Dimension::Model).then(|| series.model.to_string()),
            channel: of(Dimension::Channel).then(|| series.channel.to_string()),
            wallet: of(Dimension::Wallet).then_some(series.wallet),
            wallet_name: of(Dimension::Wallet).then_some(wallet_name),
            key: of(Dimension::Key).then_some(series.key),
            key_name: of(Dimension::Key).then_some(key_name),
            endpoint: of(Dimension::Endpoint).then(|| series.endpoint.to_string()),
            requests: totals.requests,
            errors: totals.errors,
            input_tokens: totals.input_tokens,
            output_tokens: totals.output_tokens,
            charge: Credits(totals.charge),
            charge_micro: MicroText(totals.charge),
            cost: totals.known_cost().map(Credits),
            cost_micro: totals.known_cost().map(MicroText),
            margin: totals.margin().map(Credits),
            margin_micro: totals.margin().map(MicroText),
            latency_p50_ms: percentile(&totals.latency, 50),
            latency_p95_ms: percentile(&totals.latency, 95),
            first_byte_p50_ms: percentile(&totals.first_byte, 50),
            first_byte_p95_ms: percentile(&totals.first_byte, 95),
        }
    }
}
