//! Opens the database for a node, or for a command while nodes may be running.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_postgres::Client;

use super::connect::{Role, Target};
use crate::error::OpenError;
use crate::postgres::node::lease::{self, Node};
use crate::postgres::node::sweeper::{Sweeper, Swept};
use crate::postgres::schema::migrations::{self, SchemaAge};
use crate::settings::STEP_MAX;
use crate::settings::{Server, Settings};
use crate::stats::Counters;

/// The interval at which a process checks whether the schema or the nodes are ready.
const SCHEMA_WAIT_STEP: Duration = Duration::from_millis(50);

/// A database that is ready for a node.
pub(crate) struct Opened {
    pub(crate) node: Arc<Node>,
    pub(crate) swept: Swept,
    /// Holds the lock on the node's name, and renews its lease.
    pub(crate) keeper: Client,
}

/// Opens the database for a node: migrates it and begins a new epoch. Closes the holds of this node's earlier epochs,
/// and of all other epochs that are closed.
pub(crate) async fn for_node(
    target: &Arc<Target>,
    server: &Server,
    settings: &Settings,
    counters: &Arc<Counters>,
) -> Result<Opened, OpenError> {
    let refused = |failed| target.refused(failed);
    let mut keeper = target.connect(Role::Node).await.map_err(refused)?;
    older_nodes_stop(&keeper, target, settings).await?;
    migrations::migrate(&mut keeper, target).await?;
    let node = lease::begin(&keeper, server, target).await?;
    let claims = target.connect(Role::Node).await.map_err(refused)?;
    let mut sweeper = Sweeper::new(target, ledger_role(server, settings), counters);
    let swept = sweeper.sweep(&claims).await.map_err(refused)?;
    Ok(Opened {
        node,
        swept,
        keeper,
    })
}

/// Opens the database for a command. Migrates it only if no node is alive.
pub(crate) async fn for_command(target: &Target, settings: &Settings) -> Result<(), OpenError> {
    let refused = |failed| target.refused(failed);
    let mut client = target.connect(Role::Node).await.map_err(refused)?;
    let begun = Instant::now();
    while let SchemaAge::Older { found, known } = migrations::age(&client, target).await? {
        if found == 0
            || !has_live_node(&client)
                .await
                .map_err(|error| refused(error.into()))?
        {
            return migrations::migrate(&mut client, target).await;
        }
        if begun.elapsed() > settings.lock_wait_max {
            return Err(OpenError::OlderSchema {
                place: target.place().to_owned(),
                found,
                known,
            });
        }
        tokio::time::sleep(SCHEMA_WAIT_STEP).await;
    }
    Ok(())
}

/// Waits until all live nodes of earlier versions have stopped, because their entries have no chains or balances.
async fn older_nodes_stop(
    on: &Client,
    target: &Target,
    settings: &Settings,
) -> Result<(), OpenError> {
    let begun = Instant::now();
    while let SchemaAge::Older { found, .. } = migrations::age(on, target).await? {
        let keeps_balances = found == 0 || found >= migrations::BALANCES_KEPT_SINCE;
        let live = has_live_node(on);
        if keeps_balances || !live.await.map_err(|error| target.refused(error.into()))? {
            return Ok(());
        }
        if begun.elapsed() > settings.lock_wait_max {
            return Err(OpenError::OlderNodes {
                place: target.place().to_owned(),
            });
        }
        tokio::time::sleep(SCHEMA_WAIT_STEP).await;
    }
    Ok(())
}

async fn has_live_node(on: &Client) -> Result<bool, tokio_postgres::Error> {
    Ok(live_node(on).await?.is_some())
}

/// A node whose lease has not expired.
pub(crate) struct LiveNode {
    pub(crate) name: String,
    /// The time until its lease expires, if it is not renewed.
    pub(crate) lease_ms: i64,
}

/// Finds the live node whose lease lasts longest.
pub(crate) async fn live_node(on: &Client) -> Result<Option<LiveNode>, tokio_postgres::Error> {
    let live = "WITH now AS (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS ms)
                SELECT name, lease_until - now.ms FROM nodes, now WHERE closed_at IS NULL AND lease_until > now.ms
                ORDER BY lease_until DESC LIMIT 1";
    let found = on.query_opt(live, &[]).await?;
    let node = |row: tokio_postgres::Row| {
        Ok(LiveNode {
            name: row.try_get(0)?,
            lease_ms: row.try_get(1)?,
        })
    };
    found.map(node).transpose()
}

/// The role of the ledger's connections, whose transactions must end within half a lease.
pub(crate) fn ledger_role(server: &Server, settings: &Settings) -> Role {
    Role::Ledger {
        lock_wait: settings.queue_wait_max.min(STEP_MAX),
        step: (server.lease / 4).min(STEP_MAX),
    }
}
