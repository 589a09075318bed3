//! Finds the gateway's binary, and builds it if cargo is available. Also creates the folder of a
//! run.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tempfile::TempDir;
use tokio::process::Command;

const NAME: &str = "tollgate";
const PACKAGE: &str = "tollgate-server";

/// The gateway binary to measure, and the folder for its files.
#[derive(clap::Args)]
pub(crate) struct Program {
    /// The gateway's binary; by default the one next to this program, which is built first.
    #[arg(long, value_name = "PATH")]
    gateway: Option<PathBuf>,
    /// Folder of the gateway's databases during the run; by default next to this program.
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
}

impl Program {
    /// The given binary, or the one next to this program, which is built first if cargo started us.
    pub(crate) async fn binary(&self) -> io::Result<PathBuf> {
        if let Some(binary) = &self.gateway {
            return Ok(binary.clone());
        }
        let own_folder = own_folder()?;
        if let Some(cargo) = std::env::var_os("CARGO") {
            build(Path::new(&cargo), &own_folder).await?;
        }
        let binary = own_folder.join(NAME);
        if binary.is_file() {
            return Ok(binary);
        }
        let hint = format!(
            "no gateway at {}: build it with `cargo build --profile dist -p {PACKAGE}`, name it with \
             `--gateway PATH`, or leave it out with `--no-gateway`",
            binary.display()
        );
        Err(io::Error::other(hint))
    }

    /// Creates a new folder for one run.
    pub(crate) fn folder(&self) -> io::Result<TempDir> {
        let parent = match &self.data {
            Some(folder) => folder.clone(),
            None => own_folder()?,
        };
        TempDir::with_prefix_in("bench-", parent)
    }
}

fn own_folder() -> io::Result<PathBuf> {
    let own = std::env::current_exe()?;
    Ok(own.parent().unwrap_or(Path::new(".")).to_owned())
}

async fn build(cargo: &Path, own_folder: &Path) -> io::Result<()> {
    let profile = match own_folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(profile) => profile,
    };
    let status = Command::new(cargo)
        .args([
            "build",
            "--package",
            PACKAGE,
            "--bin",
            NAME,
            "--profile",
            profile,
        ])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .status()
        .await?;
    if status.success() {
        Ok(())
    } else {
        Err(io::Error::other("the gateway does not build"))
    }
}
