//! Measures how much reads of the admin API slow down calls. Each round measures calls first alone, and then during
//! these reads.

use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use tokio::time::sleep;

use super::requests::AdminRead;
use super::timing::AdminClient;
use crate::filled_gateway::FilledGateway;
use crate::load::Measured;

/// The pause between two reads, like that of a person who clicks as fast as the pages load.
const PAUSE: Duration = Duration::from_millis(50);
const CONNECTIONS: u32 = 16;

/// The measurements with and without reads, one of each per round.
#[derive(Default)]
struct Rounds {
    without: Vec<Measured>,
    with: Vec<Measured>,
}

pub(super) async fn measure(
    gateway: &FilledGateway,
    client: &AdminClient,
    requests: &[AdminRead],
    keys: &Path,
    (rounds, seconds): (usize, u64),
) -> io::Result<()> {
    let mut measured = Rounds::default();
    for _ in 0..rounds.max(1) {
        let alone = gateway.calls(keys, CONNECTIONS, seconds).await?;
        measured.without.push(alone);
        let reading = read_on(client, requests);
        tokio::select! {
            read = reading => return read,
            calls = gateway.calls(keys, CONNECTIONS, seconds) => measured.with.push(calls?),
        }
    }
    let mut output = io::stdout();
    writeln!(
        output,
        "\n| text calls, {CONNECTIONS} connections, best and median of {rounds} | calls a second | p50 µs | slice p99 µs |\n|---|--:|--:|--:|"
    )?;
    for (what, rounds) in [
        ("without reads", &measured.without),
        ("beside reads of the admin API", &measured.with),
    ] {
        let per_second = |it: &Measured| it.requests * 1_000_000 / it.elapsed_us.max(1);
        writeln!(
            output,
            "| {what} | {} | {} | {} |",
            most_and_median(rounds, per_second),
            least_and_median(rounds, |it| it.p50_ns / 1_000),
            least_and_median(rounds, |it| it.slice_p99_ns / 1_000),
        )?;
    }
    Ok(())
}

async fn read_on(client: &AdminClient, requests: &[AdminRead]) -> io::Result<()> {
    loop {
        for request in requests {
            client.bytes(&request.path).await?;
            sleep(PAUSE).await;
        }
    }
}

fn sorted(rounds: &[Measured], figure: impl Fn(&Measured) -> u64) -> Vec<u64> {
    let mut figures: Vec<u64> = rounds.iter().map(figure).collect();
    figures.sort_unstable();
    figures
}

fn least_and_median(rounds: &[Measured], figure: impl Fn(&Measured) -> u64) -> String {
    let figures = sorted(rounds, figure);
    let at = |place: usize| figures.get(place).copied().unwrap_or(0);
    format!("{}, {}", at(0), at(figures.len() / 2))
}

fn most_and_median(rounds: &[Measured], figure: impl Fn(&Measured) -> u64) -> String {
    let figures = sorted(rounds, figure);
    let at = |place: usize| figures.get(place).copied().unwrap_or(0);
    format!(
        "{}, {}",
        at(figures.len().saturating_sub(1)),
        at(figures.len() / 2)
    )
}
