//! `tollgate serve`: runs the gateway.

use super::context::Context;
use super::terminal::CommandError;

pub(super) async fn run(context: &Context) -> Result<(), CommandError> {
    let config = context.config()?;
    Ok(crate::serve::run(&config).await?)
}
