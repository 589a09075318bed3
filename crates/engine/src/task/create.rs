//! Creates tasks: reads and checks the request, writes the row and the hold, and then sends the request.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use ledger::{Meter, Rates, Reservation};
use protocol::video::{CreationRequest, Draft, Task};
use protocol::{ByteQueue, Failure, Kind, native};
use store::{Admit, NewTask, OpenedTask, TaskId, TaskRow};
use upstream::{ExternalUrl, Protocol};

use super::billing;
use super::claimed::running_state;
use super::lookup::unavailable;
use super::protocols::{TaskProtocol, VideoEndpoint};
use super::send::{CREATION_LEASE, CreationFailure, Sender};
use crate::call::answer::{Answer, AnswerBody};
use crate::call::arrival::Arrival;
use crate::call::failed_call::{FailedCall, unpriceable};
use crate::call::open_record::OpenRecord;
use crate::call::progress::Progress;
use crate::call::record::ClientOutcome;
use crate::call::route_plan::RoutePlan;
use crate::caller_urls::Funds;
use crate::catalog::{Model, Route};
use crate::clock;
use crate::engine::Engine;
use crate::text::capability_check::refuse_unpriced_tools;

/// The lifetime of a task whose request does not set one (T11).
const LIFETIME: Duration = Duration::from_secs(24 * 3600);

/// A video request of an authenticated caller, with its body.
#[derive(Debug)]
pub struct VideoCall {
    pub arrival: Arrival,
    pub ask: VideoEndpoint,
    pub body: Bytes,
}

impl Engine {
    /// Creates a task. The creation continues even if the caller leaves, because a task that the upstream has accepted
    /// must be known here.
    pub async fn create_video(self: &Arc<Self>, call: VideoCall) -> Result<Answer, FailedCall> {
        let engine = Arc::clone(self);
        let created = self.tasks.spawn(create(engine, call)).await;
        created.unwrap_or_else(|_| Err(Failure::internal().into()))
    }
}

/// A request that is ready for admission.
struct Prepared {
    wire_protocol: Protocol,
    protocol: TaskProtocol,
    request: Box<dyn CreationRequest>,
    model: Arc<Model>,
    plan: RoutePlan,
    /// The upstream's id for the draft task that this task continues.
    draft: Option<Box<str>>,
    bound: Meter,
    ask: Reservation,
}

async fn create(engine: Arc<Engine>, call: VideoCall) -> Result<Answer, FailedCall> {
    let progress = Arc::new(Progress::new(&engine));
    let mut record = OpenRecord::begin(progress, &call.arrival);
    let prepared = match prepare(&engine, &call, &mut record).await {
        Ok(prepared) => prepared,
        Err(failure) => return Err(record.refuse(failure)),
    };
    let id = TaskId::random(clock::steady());
    let new = new_task(&engine, id, &call, &prepared);
    record.ask_ledger();
    let opened = match engine.store.open_task(new.clone()).await {
        Ok(opened) => opened,
        Err(error) => return Err(record.refuse(&error)),
    };
    record.update_record(|record| record.admitted(opened.hold));
    let rates = opened.rates;
    let row = row(new, &opened);
    let answer = {
        let name = id.to_string();
        let task = engine.task_of(&row, &name);
        answer(prepared.protocol.video.write_accepted(&task), rates)
    };
    let is_blocking = prepared.protocol.video.is_blocking();
    let mut sender = Sender {
        engine: Arc::clone(&engine),
        protocol: prepared.protocol,
        request: prepared.request,
        endpoint: call.ask.endpoint(),
        model: prepared.model,
        plan: prepared.plan,
        draft: prepared.draft,
        row,
        request_id: call.arrival.request_id,
    };
    if is_blocking {
        // The creation is answered here. Later failures are shown only by the task, because clients would retry a
        // failed creation.
        record.update_record(|record| record.start_answer(None));
        record.journal(|record| record.opened());
        engine
            .tasks
            .spawn(async move { sender.send_after_answer().await });
        return Ok(answer);
    }
    match sender.send(&mut record).await {
        Ok(()) => {
            record.update_record(|record| record.start_answer(None));
            record.journal(|record| record.opened());
            Ok(answer)
        }
        Err(CreationFailure { failure, end }) => {
            let outcome = ClientOutcome::failed(&failure);
            record.journal(|record| record.ended_early(&outcome, end));
            Err(FailedCall::admitted(failure, rates))
        }
    }
}

/// Refuses everything that can be refused before money moves.
async fn prepare(
    engine: &Engine,
    call: &VideoCall,
    record: &mut OpenRecord,
) -> Result<Prepared, Failure> {
    let request = call.ask.read(&call.body)?;
    record.update_record(|record| record.set_model(request.model(), false));
    if let Some(url) = request.callback_url() {
        ExternalUrl::parse_any(url).map_err(|refusal| {
            Failure::invalid(format!("`callback_url`: {refusal}.")).param("callback_url")
        })?;
    }
    let wire_protocol = call.ask.protocol();
    let protocol = TaskProtocol::find(wire_protocol.as_str()).ok_or_else(Failure::internal)?;
    let catalog = engine.catalog();
    let model = catalog.find(request.model(), &call.arrival.key)?;
    let speaks = |route: &Route| route.channel.speaks(wire_protocol);
    let is_made = model.kind == Kind::Video && call.ask.suits(model.profile.base);
    if !is_made || !model.routes.iter().any(|route| speaks(route)) {
        let message = format!("The model `{}` makes no videos on this endpoint.", model.id);
        return Err(Failure::model_not_supported(message));
    }
    request.check(&model.profile)?;
    if engine.settings.refuse_unpriced_tools {
        refuse_unpriced_tools(model, request.tools())?;
    }
    let draft = match request.draft() {
        Some(draft) => Some(engine.draft(call, wire_protocol, &*request, draft).await?),
        None => None,
    };
    let carries = |route: &Route| {
        let at_home = |draft: &store::TaskUpstream| *draft.channel == *route.channel.name();
        speaks(route) && draft.as_ref().is_none_or(at_home)
    };
    let is_private = |route: &Route| route.channel.spec().private_network;
    if model
        .routes
        .iter()
        .any(|route| carries(route) && is_private(route))
    {
        let links = native::fetchable_media_urls(&call.body, engine.caller_urls_max())?;
        engine
            .check_caller_urls(&call.arrival.key, Funds::Unknown, links)
            .await?;
    }
    let mut plan = RoutePlan::new(model, carries)?;
    plan.reserve(0, record)?;
    let bound = request.bound(&model.profile);
    let debt_limit = engine.settings.debt_limit;
    let (bound, ask) = billing::reservation_for(&model.price, &bound, debt_limit)
        .map_err(|error| unpriceable(model, &error))?;
    Ok(Prepared {
        wire_protocol,
        protocol,
        request,
        model: Arc::clone(model),
        plan,
        draft: draft.map(|draft| draft.id),
        bound,
        ask,
    })
}

impl Engine {
    /// The upstream of the draft task that this request continues.
    async fn draft(
        &self,
        call: &VideoCall,
        wire_protocol: Protocol,
        request: &dyn CreationRequest,
        id: &str,
    ) -> Result<store::TaskUpstream, Failure> {
        let no_such =
            || Failure::invalid("The draft is no task of yours.").param("content.draft_task.id");
        let id = TaskId::parse(id).map_err(|_| no_such())?;
        let found = self.store.find_task(call.arrival.key.wallet, id).await;
        let found = found.map_err(|error| unavailable(&error))?;
        let task = found.filter(|task| *task.protocol == *wire_protocol.as_str());
        let task = task.ok_or_else(no_such)?;
        request.check_draft(&Draft {
            model: &task.model,
            status: &task.status,
            memo: task.memo.as_deref(),
        })?;
        task.upstream.ok_or_else(no_such)
    }

    /// The view of a task for its protocol.
    pub(super) fn task_of<'a>(&'a self, row: &'a TaskRow, name: &'a str) -> Task<'a> {
        Task {
            id: name,
            model: &row.model,
            upstream_model: row.upstream.as_ref().map_or("", |upstream| &upstream.model),
            hidden: &[],
            created_ms: row.created_at.get(),
            now_ms: clock::steady().get(),
            memo: row.memo.as_deref(),
            public_url: self.public_url(),
        }
    }
}

fn new_task(engine: &Engine, id: TaskId, call: &VideoCall, prepared: &Prepared) -> NewTask {
    let name = id.to_string();
    let now = clock::steady();
    let memo = prepared.request.memo();
    let first = prepared.protocol.video.write_first(&Task {
        id: &name,
        model: &prepared.model.id,
        upstream_model: "",
        hidden: &[],
        created_ms: now.get(),
        now_ms: now.get(),
        memo: memo.as_deref(),
        public_url: engine.public_url(),
    });
    NewTask {
        id,
        admit: Admit {
            wallet: call.arrival.key.wallet,
            key: call.arrival.key.key,
            ask: prepared.ask,
            request_id: (&*call.arrival.request_id).into(),
            now,
        },
        protocol: prepared.wire_protocol.as_str().into(),
        endpoint: call.arrival.endpoint.into(),
        model: (&*prepared.model.id).into(),
        price_version: prepared.model.price_version,
        bound: Box::new(prepared.bound.clone()),
        memo: memo.map(Into::into),
        callback_url: prepared.request.callback_url().map(Into::into),
        running_state: running_state(first),
        lease: CREATION_LEASE,
        lifetime: prepared.request.lifetime().unwrap_or(LIFETIME),
    }
}

/// The row of a new task, as `Sender` needs it.
fn row(new: NewTask, opened: &OpenedTask) -> TaskRow {
    let lifetime_ms = i64::try_from(new.lifetime.as_millis()).unwrap_or(i64::MAX);
    TaskRow {
        claim: opened.claim,
        wallet: new.admit.wallet,
        key: Some(new.admit.key),
        hold: opened.hold,
        protocol: new.protocol,
        endpoint: new.endpoint,
        model: new.model,
        price_version: new.price_version,
        bound: new.bound,
        memo: new.memo,
        upstream: None,
        delivery: None,
        polls: 0,
        missing: 0,
        missing_since: None,
        created_at: new.admit.now,
        expires_at: ledger::UnixMs::new(new.admit.now.get().saturating_add(lifetime_ms)),
        claimed_at: new.admit.now,
    }
}

fn answer(body: Vec<u8>, rates: Rates) -> Answer {
    Answer {
        content_type: HeaderValue::from_static("application/json"),
        rates,
        dropped: None,
        body: AnswerBody::Whole(ByteQueue::from(body)),
    }
}
