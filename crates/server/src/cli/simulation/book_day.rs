//! Books the past day of the demo's customers. The ledger admits and settles each call at the time of the call, so that
//! entries, balances and journal agree, and `tollgate ledger verify` passes.

use std::sync::Arc;

use engine::{Engine, Model};
use ledger::{Meter, Micro, Reservation, UnixMs};
use store::{
    Admit, Basis, Close, Cost, End, HoldId, IfLost, JournalRow, KeyRow, MeterText, RequestId,
};

use super::past_day::{Ended, PastCall, calls};
use crate::cli::terminal::CommandError;

/// Books the calls of the last day, made with these keys. Calls whose key is `None` are left out.
pub(super) async fn write(
    engine: &Engine,
    keys: &[Option<KeyRow>],
    now: UnixMs,
) -> Result<(), CommandError> {
    let catalog = engine.catalog();
    for call in calls(now) {
        let (Some(Some(key)), Some(model)) = (
            keys.get(call.caller % keys.len().max(1)),
            catalog.get(call.model),
        ) else {
            continue;
        };
        let request_id: RequestId = engine::ids::fresh("req_");
        let booked = book(engine, key, model, &call, request_id).await?;
        engine
            .store()
            .journal_append(row(&call, key, model, request_id, booked));
    }
    engine.store().flush().await?;
    Ok(())
}

/// The ledger's result for a call: its hold, and the charge and cost of its answer.
struct Booked {
    hold: HoldId,
    answer: Option<Answer>,
}

#[derive(Clone)]
struct Answer {
    meter: MeterText,
    charge: Micro,
    cost: Option<Box<Cost>>,
}

async fn book(
    engine: &Engine,
    key: &KeyRow,
    model: &Model,
    call: &PastCall,
    request_id: RequestId,
) -> Result<Option<Booked>, CommandError> {
    let (end, answer, hold) = match call.ended {
        Ended::Refused(..) => return Ok(None),
        Ended::Failed(..) => (End::Released, None, Micro::new(1_000)),
        Ended::Answered {
            input,
            cached,
            output,
        } => {
            let meter = Meter {
                input,
                cached_input: cached,
                output,
                ..Meter::default()
            };
            let charge = model
                .price
                .price(&meter)
                .map_err(|error| CommandError::message(error.to_string()))?;
            let route = model.routes.first();
            let answer = Answer {
                meter: MeterText::from(&meter),
                charge,
                cost: route.and_then(|route| route.cost.as_ref()?.of(&meter)),
            };
            let end = End::Settled {
                charge,
                meter: answer.meter.clone(),
                price_version: model.price_version,
                basis: Basis::Reported,
                tokens: Some(input + cached + output),
                cost: answer.cost.clone(),
            };
            (end, Some(answer), charge)
        }
    };
    let admitted = engine.store().admit(Admit {
        wallet: key.wallet,
        key: key.id,
        ask: Reservation {
            hold,
            exposure: Micro::ZERO,
            tokens: 0,
            counts_in_flight: true,
        },
        request_id,
        now: call.at,
    });
    let hold = admitted
        .await
        .map_err(|error| CommandError::message(format!("the demo's past day: {error}")))?
        .hold;
    engine.store().close(Close {
        hold,
        end,
        now: call.at,
        if_lost: IfLost::Charge,
    });
    Ok(Some(Booked { hold, answer }))
}

fn row(
    call: &PastCall,
    key: &KeyRow,
    model: &Model,
    request_id: RequestId,
    booked: Option<Booked>,
) -> JournalRow {
    let route = booked.is_some().then(|| model.routes.first()).flatten();
    let (status, code, notes) = match call.ended {
        Ended::Answered { .. } => (200, None, None),
        Ended::Refused(status, code) => (status, Some(code), None),
        Ended::Failed(status, code) => (
            status,
            Some(code),
            Some(format!("sim: {code} (status {status})")),
        ),
    };
    let answer = booked.as_ref().and_then(|booked| booked.answer.clone());
    JournalRow {
        at: call.at,
        request_id,
        wallet: Some(key.wallet),
        key: Some(key.id),
        endpoint: call.endpoint.into(),
        model: Arc::clone(&model.id),
        channel: route
            .filter(|_| status == 200)
            .map(|route| route.channel.name().into()),
        upstream_model: route
            .filter(|_| status == 200)
            .map(|route| Arc::clone(&route.model)),
        status,
        code: code.map(Into::into),
        stream: call.stream,
        outcome: booked.as_ref().map(|booked| {
            if booked.answer.is_some() {
                "settled"
            } else {
                "released"
            }
            .into()
        }),
        hold: booked.map(|booked| booked.hold),
        cost: answer
            .as_ref()
            .and_then(|answer| answer.cost.as_ref().map(|cost| cost.amount)),
        charge: answer.as_ref().map_or(Micro::ZERO, |answer| answer.charge),
        meter: answer.map(|answer| answer.meter),
        timings: call.timings,
        dropped_params: None,
        route_notes: notes.map(Into::into),
        request_body: None,
        response_body: None,
        is_late_charge: false,
    }
}
