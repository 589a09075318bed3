//! Opens slow streams or sessions and keeps them open, so that their memory can be measured.

use std::io::{self, Write as _};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;

use super::args::TargetArgs;
use super::client::Client;
use super::sessions::RunningSessions;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    target: TargetArgs,
}

/// A process that nobody kills ends after this time, which is longer than any measurement.
const HELD_MAX: Duration = Duration::from_secs(120);

/// Printed when every stream has delivered its first content, or every session its first frame.
pub(crate) const OPEN: &str = "open";

/// Opens the streams or sessions, prints [`OPEN`], and keeps them open until they end, `HELD_MAX` has passed or the
/// process is killed.
pub(crate) async fn hold(args: Args) -> io::Result<()> {
    if let Some(kind) = args.target.shape.session_kind() {
        let sessions = RunningSessions::begin(&args.target, kind).await?;
        say_open()?;
        let _ = timeout(HELD_MAX, sessions.listeners.join_all()).await;
        return Ok(());
    }
    let keys = args.target.keys()?;
    let request = args.target.request();
    let mut streams = JoinSet::new();
    for key in (0..args.target.connections)
        .zip(keys.iter().cycle())
        .map(|(_, key)| key)
    {
        let mut client = Client::connect(args.target.address).await?;
        client.open_stream(&request, key).await?;
        streams.spawn(async move { client.read_on().await });
    }
    say_open()?;
    let _ = timeout(HELD_MAX, streams.join_all()).await;
    Ok(())
}

fn say_open() -> io::Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "{OPEN}")?;
    output.flush()
}
