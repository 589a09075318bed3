//! Opens slow streams or sessions and holds them, so that their memory can be measured.

use std::io::{self, Write as _};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;

use super::client::Client;
use super::drive::AskArgs;
use super::talk::Talk;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    ask: AskArgs,
}

/// Nobody measures longer; a holder that was forgotten ends by itself.
const HELD_MAX: Duration = Duration::from_secs(120);

/// What is printed when every stream or session has brought its first content.
pub(crate) const OPEN: &str = "open";

/// Opens the streams, says so, and reads on until they end, or the process is ended.
pub(crate) async fn hold(args: Args) -> io::Result<()> {
    if let Some(topic) = args.ask.shape.topic() {
        let talk = Talk::begin(&args.ask, topic).await?;
        say_open()?;
        let _ = timeout(HELD_MAX, talk.listeners.join_all()).await;
        return Ok(());
    }
    let keys = args.ask.keys()?;
    let request = args.ask.request();
    let mut streams = JoinSet::new();
    for key in (0..args.ask.connections)
        .zip(keys.iter().cycle())
        .map(|(_, key)| key)
    {
        let mut client = Client::connect(args.ask.address).await?;
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
