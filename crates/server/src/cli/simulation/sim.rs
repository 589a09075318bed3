//! `tollgate sim`: runs only the simulated upstreams.

use std::net::SocketAddr;

use clap::Args;
use serde_json::json;
use sim::Sim as Upstream;

use crate::cli::context::Context;
use crate::cli::terminal::CommandError;
use crate::serve::until_stopped;

#[derive(Debug, Args)]
pub(crate) struct Sim {
    /// The address at which to listen; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8089")]
    listen: SocketAddr,
}

pub(crate) async fn run(command: Sim, context: &mut Context) -> Result<(), CommandError> {
    let stopped = until_stopped();
    let started = Upstream::start(command.listen).await;
    let upstream = started.map_err(|error| {
        CommandError::message(format!("cannot listen on {}: {error}", command.listen))
    })?;
    let base_url = format!("{}/v1", upstream.url());
    if context.json {
        let answer = json!({ "address": upstream.address(), "base_url": base_url });
        context.out.json(&answer)?;
    } else {
        context
            .out
            .line(format!("simulated upstreams on {base_url}"))?;
        context.out.line("in a configuration:")?;
        let channel =
            format!("[[channel]]\nname = \"sim\"\npreset = \"sim\"\nbase_url = \"{base_url}\"");
        context.out.line(channel)?;
    }
    stopped.await;
    upstream.stop().await;
    Ok(())
}
