//! Copies journal rows into their table, column by column.

use std::borrow::Cow;

use ledger::Micro;
use tokio_postgres::Client;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};

use crate::records::journal::{JournalRow, cut};
use crate::records::meter::MeterText;

const COPY: &str = "COPY calls (n, at, wallet, key, status, request_id, model, endpoint, channel, upstream_model, code,
    stream, outcome, hold, meter, charge, admitted_us, queued_us, upstream_us, first_byte_us, total_us, dropped_params,
    route_notes, request_body, response_body, cost) FROM STDIN BINARY";

/// Copies rows with their numbers, in one statement.
pub(super) async fn copy(
    on: &Client,
    rows: &[JournalRow],
    numbers: &[i64],
) -> Result<(), tokio_postgres::Error> {
    let sink = on.copy_in(COPY).await?;
    let types = [
        Type::INT8,
        Type::INT8,
        Type::TEXT,
        Type::TEXT,
        Type::INT4,
        Type::TEXT,
        Type::TEXT,
        Type::TEXT,
        Type::TEXT,
        Type::TEXT,
        Type::TEXT,
        Type::BOOL,
        Type::TEXT,
        Type::INT8,
        Type::TEXT,
        Type::INT8,
        Type::INT8,
        Type::INT8,
        Type::INT8,
        Type::INT8,
        Type::INT8,
        Type::TEXT,
        Type::TEXT,
        Type::TEXT,
        Type::TEXT,
        Type::INT8,
    ];
    let mut to = std::pin::pin!(BinaryCopyInWriter::new(sink, &types));
    for (row, number) in rows.iter().zip(numbers) {
        let times = &row.timings;
        let columns: [&(dyn ToSql + Sync); 26] = [
            number,
            &row.at.get(),
            &row.wallet.map(|wallet| wallet.to_string()),
            &row.key.map(|key| key.to_string()),
            &i32::from(row.status),
            &plain(&row.request_id),
            &plain(&row.model),
            &plain(&row.endpoint),
            &row.channel.as_deref().map(plain),
            &row.upstream_model.as_deref().map(plain),
            &row.code.as_deref().map(plain),
            &row.stream,
            &row.outcome.as_deref().map(plain),
            &row.hold.map(crate::records::ids::HoldId::get),
            &row.meter.as_ref().map(MeterText::as_str),
            &row.charge.get(),
            &times.admitted_us.map(micros),
            &times.queued_us.map(micros),
            &times.upstream_us.map(micros),
            &times.first_byte_us.map(micros),
            &micros(times.total_us),
            &row.dropped_params.as_deref().map(plain),
            &row.route_notes.as_deref().map(plain),
            &row.request_body.as_deref().map(|body| plain(cut(body))),
            &row.response_body.as_deref().map(|body| plain(cut(body))),
            &row.cost.map(Micro::get),
        ];
        to.as_mut().write(&columns).await?;
    }
    to.finish().await?;
    Ok(())
}

/// Replaces the NUL character, which `PostgreSQL` texts cannot contain.
pub(super) fn plain(text: &str) -> Cow<'_, str> {
    if text.contains('\0') {
        Cow::Owned(text.replace('\0', "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}

fn micros(us: u64) -> i64 {
    i64::try_from(us).unwrap_or(i64::MAX)
}
