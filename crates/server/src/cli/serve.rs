//! `tollgate serve`: the gateway.

use super::context::Context;
use super::terminal::Stop;

pub(super) async fn run(context: &Context) -> Result<(), Stop> {
    let config = context.config()?;
    Ok(crate::serve::run(&config).await?)
}
