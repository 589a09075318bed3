//! Opens slow streams and holds them, so that their memory can be measured.

use std::io::{self, Write as _};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;

use super::client::Client;
use super::drive::AskArgs;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    ask: AskArgs,
}

/// Nobody measures longer; a holder that was forgotten ends by itself.
const HELD_MAX: Duration = Duration::from_secs(120);

/// What is printed when every stream has brought its first content.
pub(crate) const OPEN: &str = "open";

/// Opens the streams, says so, and reads on until they end, or the process is ended.
pub(crate) async fn hold(args: Args) -> io::Result<()> {
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
    let mut output = io::stdout().lock();
    writeln!(output, "{OPEN}")?;
    output.flush()?;
    drop(output);
    let _ = timeout(HELD_MAX, streams.join_all()).await;
    Ok(())
}
