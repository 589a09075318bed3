//! Inspects a database without changing it.

use super::connection::connect::{Role, Target};
use super::schema::migrations::{self, SchemaAge};
use crate::error::OpenError;
use crate::records::store_state::StoreState;
use crate::settings::Server;

/// Compares the schema of a database with the program's, and finds out whether there is a wallet.
pub(crate) async fn inspect(server: &Server) -> Result<StoreState, OpenError> {
    let target = Target::of(server)?;
    let connected = target.connect(Role::Reads).await;
    let client = connected.map_err(|failed| target.refused(failed))?;
    match migrations::age(&client, &target).await? {
        SchemaAge::Older { found: 0, .. } => return Ok(StoreState::Absent),
        SchemaAge::Older { found, known } => return Ok(StoreState::Older { found, known }),
        SchemaAge::Same => {}
    }
    let refused = |error: tokio_postgres::Error| target.refused(error.into());
    let wallet = "SELECT EXISTS (SELECT 1 FROM wallets)";
    let row = client.query_one(wallet, &[]).await.map_err(refused)?;
    Ok(StoreState::Current {
        version: migrations::known(),
        is_used: row.try_get(0).map_err(refused)?,
    })
}
