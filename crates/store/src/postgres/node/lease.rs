//! The identity of this process among the nodes: its epoch, and the lease that allows it to open holds.
//!
//! A lease is measured by the database's clock and renewed every quarter of its length. A node opens no hold in the
//! second half of its lease, and a transaction ends within half a lease, because of the database's own timeouts. So a
//! node whose lease has expired never commits a hold. If a node was silent for longer than its lease, another node may
//! have closed its epoch. The node then begins a new one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rand::RngExt as _;
use tokio_postgres::Client;

use crate::error::OpenError;
use crate::postgres::connection::connect::{Role, Target};
use crate::postgres::connection::errors::PgError;
use crate::postgres::connection::ledger_connection::within;
use crate::postgres::writer::transaction::OpenTransaction;
use crate::records::ids::Epoch;
use crate::settings::Server;

/// How long a node that starts waits for another node of the same name to end.
const NAME_WAIT_MAX: Duration = Duration::from_secs(2);
const NAME_WAIT_STEP: Duration = Duration::from_millis(50);
const RENEWAL_MAX: Duration = Duration::from_secs(5);

const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

pub(crate) struct Node {
    name: String,
    lease: Duration,
    /// 0 for a command, which opens no holds.
    epoch: AtomicI64,
    state: Mutex<LeaseState>,
    lost: AtomicBool,
}

/// The lease as this process has observed it, by its own clock.
#[derive(Debug, Clone, Copy)]
struct LeaseState {
    renewed: Instant,
    /// The time since which the database has answered every renewal.
    answered_since: Instant,
}

impl Node {
    fn new(name: String, lease: Duration, epoch: Epoch) -> Self {
        let now = Instant::now();
        Self {
            name,
            lease,
            epoch: AtomicI64::new(epoch.get()),
            state: Mutex::new(LeaseState {
                renewed: now,
                answered_since: now,
            }),
            lost: AtomicBool::new(false),
        }
    }

    /// The identity of a command, which has no name and no epoch.
    pub(crate) fn of_command() -> Self {
        Self::new(String::new(), Duration::ZERO, Epoch::new(0))
    }

    pub(crate) fn epoch(&self) -> Epoch {
        Epoch::new(self.epoch.load(Ordering::Acquire))
    }

    /// Whether this process serves calls. A command does not.
    pub(crate) fn is_serving(&self) -> bool {
        !self.lease.is_zero()
    }

    pub(crate) fn lease(&self) -> Duration {
        self.lease
    }

    /// Whether a transaction may open holds. The lease must last longer than the transaction.
    pub(crate) fn may_open(&self, begun: &OpenTransaction) -> bool {
        let half = i64::try_from(self.lease.as_millis() / 2).unwrap_or(i64::MAX);
        begun
            .lease_until
            .is_some_and(|until| until.ms_since(begun.now) >= half)
    }

    /// Whether an attempt to open a hold may succeed.
    pub(crate) fn is_leased(&self) -> bool {
        !self.lost.load(Ordering::Relaxed) && self.state.lock().renewed.elapsed() < self.lease / 2
    }

    /// Whether the database has answered for the length of a full lease. Before that, the leases of other nodes may
    /// have expired only because the database was unavailable.
    pub(crate) fn has_answered_for_full_lease(&self) -> bool {
        let state = *self.state.lock();
        state.renewed.elapsed() < self.lease / 2 && state.answered_since.elapsed() > self.lease
    }

    fn renewed(&self) {
        self.state.lock().renewed = Instant::now();
    }

    fn unanswered(&self) {
        self.state.lock().answered_since = Instant::now();
    }
}

/// Begins an epoch, and closes earlier epochs of the same node. The client holds the lock on the node's name as long as
/// it is connected.
pub(crate) async fn begin(
    on: &Client,
    server: &Server,
    target: &Target,
) -> Result<Arc<Node>, OpenError> {
    let name = server.node.clone().unwrap_or_else(random_name);
    let refused = |error: tokio_postgres::Error| target.refused(error.into());
    let begun = Instant::now();
    while !take_name(on, &name).await.map_err(refused)? {
        if begun.elapsed() > NAME_WAIT_MAX {
            return Err(OpenError::NodeRunning {
                place: target.place().to_owned(),
                node: name,
            });
        }
        tokio::time::sleep(NAME_WAIT_STEP).await;
    }
    let epoch = begin_epoch(on, &name, server.lease)
        .await
        .map_err(refused)?;
    crate::postgres::tasks::void_claims(on, &name, epoch)
        .await
        .map_err(refused)?;
    Ok(Arc::new(Node::new(name, server.lease, epoch)))
}

fn random_name() -> String {
    format!("node-{:016x}", rand::rng().random::<u64>())
}

/// Takes the name. Returns false if another node of this name is alive: its connection is open and its lease has not
/// expired. A killed process has lost its connection, so its next start need not wait.
async fn take_name(on: &Client, name: &str) -> Result<bool, tokio_postgres::Error> {
    let lock = "SELECT pg_try_advisory_lock(hashtextextended(current_schema() || ' tollgate node ' || $1, 0))";
    if on.query_one(lock, &[&name]).await?.try_get(0)? {
        return Ok(true);
    }
    let alive = format!(
        "SELECT EXISTS (SELECT 1 FROM nodes WHERE name = $1 AND closed_at IS NULL AND lease_until > {NOW})"
    );
    let alive: bool = on.query_one(&alive, &[&name]).await?.try_get(0)?;
    Ok(!alive)
}

async fn begin_epoch(
    on: &Client,
    name: &str,
    lease: Duration,
) -> Result<Epoch, tokio_postgres::Error> {
    let close = format!("UPDATE nodes SET closed_at = {NOW} WHERE name = $1 AND closed_at IS NULL");
    on.execute(&close, &[&name]).await?;
    let insert = format!(
        "INSERT INTO nodes (name, started_at, lease_until) VALUES ($1, {NOW}, {NOW} + $2) RETURNING epoch"
    );
    let row = on.query_one(&insert, &[&name, &ms(lease)]).await?;
    Ok(Epoch::new(row.try_get(0)?))
}

/// Renews the lease until the task is aborted.
pub(crate) async fn keep_lease(node: Arc<Node>, target: Arc<Target>, first: Client) {
    let mut client = Some(first);
    loop {
        tokio::time::sleep(node.lease / 4).await;
        let kept = match renew(&node, &target, &mut client).await {
            Ok(kept) => kept,
            Err(failed) => {
                tracing::warn!(error = %failed, "the node's lease could not be renewed");
                client = None;
                node.unanswered();
                continue;
            }
        };
        if kept {
            node.lost.store(false, Ordering::Relaxed);
            node.renewed();
        } else {
            // Another live node has the same name, so this node must not serve calls.
            node.lost.store(true, Ordering::Relaxed);
        }
    }
}

async fn renew(node: &Node, target: &Target, client: &mut Option<Client>) -> Result<bool, PgError> {
    let on = match client {
        Some(on) if !on.is_closed() => on,
        _ => {
            let made = target.connect(Role::Node).await?;
            // The lock on the name was lost with the old connection.
            if !within(RENEWAL_MAX, take_name(&made, &node.name)).await? {
                return Ok(false);
            }
            client.insert(made)
        }
    };
    let update = format!(
        "UPDATE nodes SET lease_until = {NOW} + $2 WHERE epoch = $1 AND closed_at IS NULL RETURNING lease_until"
    );
    let epoch = node.epoch();
    let renewal = async {
        on.query_opt(&update, &[&epoch.get(), &ms(node.lease)])
            .await
    };
    if within(RENEWAL_MAX, renewal).await?.is_some() {
        return Ok(true);
    }
    // This node was silent for too long, and another node has closed its epoch. The sweeper closes the holds of that
    // epoch.
    let next = within(RENEWAL_MAX, begin_epoch(on, &node.name, node.lease)).await?;
    tracing::error!(
        lost = epoch.get(),
        epoch = next.get(),
        "the node's lease was over; its open holds are abandoned, and it begins a new epoch"
    );
    node.epoch.store(next.get(), Ordering::Release);
    node.unanswered();
    Ok(true)
}

/// Releases the lease, so that another node closes the open holds at once.
pub(crate) async fn release(node: &Node, on: &Client) -> Result<(), PgError> {
    let close =
        format!("UPDATE nodes SET closed_at = {NOW} WHERE epoch = $1 AND closed_at IS NULL");
    within(RENEWAL_MAX, on.execute(&close, &[&node.epoch().get()])).await?;
    Ok(())
}

fn ms(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
