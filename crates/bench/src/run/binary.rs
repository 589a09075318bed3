//! Finds the gateway's binary, and builds it if cargo is available.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

const NAME: &str = "tollgate";
const PACKAGE: &str = "tollgate-server";

/// The binary beside this one, built now if cargo started us.
pub(crate) async fn find(beside: &Path) -> io::Result<PathBuf> {
    if let Some(cargo) = std::env::var_os("CARGO") {
        build(Path::new(&cargo), beside).await?;
    }
    let binary = beside.join(NAME);
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

async fn build(cargo: &Path, beside: &Path) -> io::Result<()> {
    let profile = match beside.file_name().and_then(|name| name.to_str()) {
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
