//! Views of calls, for lists and for the explanation of one call.

use ledger::UnixMs;
use serde::Serialize;
use store::{AccountNames, EntryRow, JournalRow, KeyId, TokenCounts, WalletId};
use utoipa::ToSchema;

use super::duration::millis;
use crate::admin::{Credits, MicroText};
use crate::operations::calls::{Explanation, Priced, RouteNotes};

/// A call in a list.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct CallView {
    request_id: String,
    /// When the call ended.
    #[schema(value_type = i64)]
    at: UnixMs,
    /// Null if the caller was not authenticated.
    #[schema(value_type = Option<String>, required)]
    wallet: Option<WalletId>,
    #[schema(required)]
    wallet_name: Option<String>,
    #[schema(value_type = Option<String>, required)]
    key: Option<KeyId>,
    #[schema(required)]
    key_name: Option<String>,
    endpoint: String,
    model: String,
    /// The channel that answered. If the call failed, the last one that was tried.
    #[schema(required)]
    channel: Option<String>,
    status: u16,
    /// The error code, if the call failed.
    #[schema(required)]
    code: Option<String>,
    stream: bool,
    /// How the hold ended: `settled`, `released` or `abandoned`.
    #[schema(required)]
    outcome: Option<String>,
    /// Input tokens of all classes: uncached, cached and written to a cache, and those of pictures and audio. Null if
    /// nothing was measured.
    #[schema(required)]
    input_tokens: Option<u64>,
    #[schema(required)]
    output_tokens: Option<u64>,
    charge: Credits,
    charge_micro: MicroText,
    /// The cost of the call at its upstream, if it is known.
    #[schema(required)]
    cost: Option<Credits>,
    #[schema(required)]
    cost_micro: Option<MicroText>,
    #[schema(required)]
    first_byte_ms: Option<f64>,
    total_ms: f64,
}

impl CallView {
    pub(crate) fn of(row: &JournalRow, names: &AccountNames) -> Self {
        let meter = row.meter.as_ref().and_then(|meter| meter.read().ok());
        let tokens = meter.map(|meter| TokenCounts::from(&meter));
        let input = |tokens: TokenCounts| {
            let classes = [
                tokens.cached_input,
                tokens.cache_write,
                tokens.cache_write_1h,
            ];
            classes.into_iter().fold(tokens.input, u64::saturating_add)
        };
        Self {
            request_id: row.request_id.to_string(),
            at: row.at,
            wallet: row.wallet,
            wallet_name: row.wallet.and_then(|id| names.wallets.get(&id).cloned()),
            key: row.key,
            key_name: row.key.and_then(|id| names.keys.get(&id).cloned()),
            endpoint: row.endpoint.to_string(),
            model: row.model.to_string(),
            channel: row.channel.as_deref().map(ToOwned::to_owned),
            status: row.status,
            code: row.code.as_deref().map(ToOwned::to_owned),
            stream: row.stream,
            outcome: row.outcome.as_deref().map(ToOwned::to_owned),
            input_tokens: tokens.map(input),
            output_tokens: tokens.map(|tokens| tokens.output),
            charge: Credits(row.charge),
            charge_micro: MicroText(row.charge),
            cost: row.cost.map(Credits),
            cost_micro: row.cost.map(MicroText),
            first_byte_ms: row.timings.first_byte_us.map(millis),
            total_ms: millis(row.timings.total_us),
        }
    }
}

/// One call explained: how long each stage took, which routes were tried, what was charged and why.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CallDetail {
    #[serde(flatten)]
    call: CallView,
    /// The upstream's name for the model.
    #[schema(required)]
    upstream_model: Option<String>,
    /// The model that the caller named, if its fallbacks were tried too.
    #[schema(required)]
    named_model: Option<String>,
    timings: TimingsView,
    /// The routes that were tried or passed over, in order.
    attempts: Vec<AttemptView>,
    /// Messages of upstreams that the caller did not see.
    #[schema(required)]
    upstream_text: Option<String>,
    /// Members of the request that could not be converted for the route.
    dropped_params: Vec<String>,
    /// The entry that closed the hold of the call.
    #[schema(required)]
    settlement: Option<SettlementView>,
    #[schema(required)]
    price: Option<PriceView>,
    /// Redacted. Null unless bodies are stored (`journal.bodies`).
    #[schema(required)]
    request_body: Option<String>,
    #[schema(required)]
    response_body: Option<String>,
}

/// Milliseconds from the arrival of the call.
#[derive(Debug, Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "members carry their unit")]
struct TimingsView {
    #[schema(required)]
    admitted_ms: Option<f64>,
    /// The time that the admission waited for the ledger.
    #[schema(required)]
    queued_ms: Option<f64>,
    /// Until the head of the upstream's answer arrived.
    #[schema(required)]
    upstream_ms: Option<f64>,
    #[schema(required)]
    first_byte_ms: Option<f64>,
    total_ms: f64,
}

/// A route that was tried or passed over.
#[derive(Debug, Serialize, ToSchema)]
struct AttemptView {
    channel: String,
    /// The upstream's name for the model, if the route answered or the client left while it was tried.
    #[schema(required)]
    model: Option<String>,
    /// Why the route failed or was passed over, or how its answer failed.
    #[schema(required)]
    reason: Option<String>,
    /// Whether it was not tried, because it was at its limit, or because a fallback model cannot serve the request.
    /// `channel` is then the id of that model.
    passed_over: bool,
    /// The model that the route belongs to, if it is not the one that the caller named.
    #[schema(required)]
    fallback: Option<String>,
}

/// The ledger entry that ends a call.
#[derive(Debug, Serialize, ToSchema)]
struct SettlementView {
    /// The number of the entry among those of its wallet.
    seq: i64,
    /// `settled`, `released` or `abandoned`.
    kind: String,
    #[schema(required)]
    held: Option<Credits>,
    #[schema(required)]
    held_micro: Option<MicroText>,
    charge: Credits,
    charge_micro: MicroText,
    /// For a session, the amount that earlier steps have booked.
    #[schema(required)]
    booked_before: Option<Credits>,
    #[schema(required)]
    booked_before_micro: Option<MicroText>,
    /// `reported` by the upstream, or `counted` by the gateway.
    #[schema(required)]
    basis: Option<String>,
    #[schema(value_type = i64)]
    at: UnixMs,
    #[schema(required)]
    note: Option<String>,
}

/// How a charge was computed: the lines, their exact sum, and the rounding.
#[derive(Debug, Serialize, ToSchema)]
struct PriceView {
    version: i64,
    model: String,
    lines: Vec<PriceLineView>,
    /// The exact sum of the lines, in credits.
    #[schema(required)]
    exact: Option<String>,
    /// The sum, rounded up once to a micro-credit.
    #[schema(required)]
    charge: Option<Credits>,
    #[schema(required)]
    charge_micro: Option<MicroText>,
}

/// One line of a price.
#[derive(Debug, Serialize, ToSchema)]
struct PriceLineView {
    name: String,
    quantity: u64,
    /// In credits for `per` units. Null if this quantity has no price.
    #[schema(required)]
    price: Option<String>,
    per: u64,
    /// The exact amount, in credits.
    #[schema(required)]
    amount: Option<String>,
}

impl CallDetail {
    pub(crate) fn of(explanation: &Explanation, names: &AccountNames) -> Self {
        let row = &explanation.row;
        let notes = RouteNotes::of(row);
        let timings = &row.timings;
        let attempts = notes.attempts.into_iter().map(|attempt| AttemptView {
            channel: attempt.channel,
            model: attempt.model,
            reason: attempt.reason,
            passed_over: attempt.is_passed_over,
            fallback: attempt.fallback,
        });
        let dropped = row.dropped_params.iter().flat_map(|names| names.split(','));
        Self {
            call: CallView::of(row, names),
            upstream_model: row.upstream_model.as_deref().map(ToOwned::to_owned),
            named_model: notes.named_model,
            timings: TimingsView {
                admitted_ms: timings.admitted_us.map(millis),
                queued_ms: timings.queued_us.map(millis),
                upstream_ms: timings.upstream_us.map(millis),
                first_byte_ms: timings.first_byte_us.map(millis),
                total_ms: millis(timings.total_us),
            },
            attempts: attempts.collect(),
            upstream_text: notes.upstream_text,
            dropped_params: dropped.map(|name| name.trim().to_owned()).collect(),
            settlement: explanation.entry.as_ref().map(settlement),
            price: explanation.price.as_ref().map(price),
            request_body: row.request_body.as_deref().map(ToOwned::to_owned),
            response_body: row.response_body.as_deref().map(ToOwned::to_owned),
        }
    }
}

fn settlement(entry: &EntryRow) -> SettlementView {
    let call = entry.call.as_deref();
    let usage = call.and_then(|call| call.usage.as_ref());
    SettlementView {
        seq: entry.seq,
        kind: entry.kind.as_str().to_owned(),
        held: call.map(|call| Credits(call.held)),
        held_micro: call.map(|call| MicroText(call.held)),
        charge: Credits(entry.charge),
        charge_micro: MicroText(entry.charge),
        booked_before: call.map(|call| Credits(call.booked)),
        booked_before_micro: call.map(|call| MicroText(call.booked)),
        basis: usage.map(|usage| usage.basis.as_str().to_owned()),
        at: entry.at,
        note: entry.note.as_deref().map(ToOwned::to_owned),
    }
}

fn price(priced: &Priced) -> PriceView {
    let lines = priced.lines.iter().map(|line| PriceLineView {
        name: line.component.clone(),
        quantity: line.quantity,
        price: line.price.map(|price| price.to_string()),
        per: line.per,
        amount: line.amount.map(|amount| amount.to_string()),
    });
    PriceView {
        version: priced.version.version.get(),
        model: priced.version.model.to_string(),
        lines: lines.collect(),
        exact: priced.exact.map(|exact| exact.to_string()),
        charge: priced.price.map(Credits),
        charge_micro: priced.price.map(MicroText),
    }
}
