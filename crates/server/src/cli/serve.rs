//! `tollgate serve`: the gateway.

use super::context::Context;
use super::stop::Stop;

pub(super) async fn run(context: &Context) -> Result<(), Stop> {
    let config = context.config()?;
    crate::serve::run(&config)
        .await
        .map_err(|error| Stop::message(error.to_string()))
}
