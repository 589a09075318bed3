//! The arguments of the load generator.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::request::{Request, Shape};
use super::tally::Window;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) target: TargetArgs,
    #[command(flatten)]
    pub(super) window: Window,
    /// Spreads the start of the connections over this time, so that they do not run in step.
    #[arg(long, default_value_t = 0)]
    pub(super) stagger_ms: u64,
    /// Sends one request with each key, as fast as possible, and measures that.
    #[arg(long)]
    pub(super) each_key_once: bool,
}

/// The target and the request.
#[derive(clap::Args)]
pub(crate) struct TargetArgs {
    #[arg(long)]
    pub(super) address: SocketAddr,
    #[arg(long, default_value = "/v1/chat/completions")]
    pub(super) path: String,
    #[arg(long, default_value = "bench/chat")]
    pub(super) model: String,
    #[arg(long, value_enum, default_value = "plain")]
    pub(super) shape: Shape,
    #[arg(long, default_value_t = 1)]
    pub(super) connections: u32,
    /// A file of API keys, one per line; requests use them in turn.
    #[arg(long)]
    keys: Option<PathBuf>,
}

impl TargetArgs {
    pub(super) fn request(&self) -> Request {
        Request::new(
            self.shape,
            &self.address.to_string(),
            &self.path,
            &self.model,
        )
    }

    pub(super) fn keys(&self) -> io::Result<Vec<String>> {
        self.keys
            .as_deref()
            .map_or_else(|| Ok(vec!["sk-none".to_owned()]), read_keys)
    }
}

fn read_keys(path: &Path) -> io::Result<Vec<String>> {
    let keys: Vec<String> = fs::read_to_string(path)?
        .lines()
        .map(str::to_owned)
        .collect();
    if keys.is_empty() {
        Err(io::Error::other("a file without keys"))
    } else {
        Ok(keys)
    }
}
