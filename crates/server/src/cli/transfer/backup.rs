//! `tollgate backup`: copies the whole store to a folder, while servers run.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use store::MediaPlace;

use super::database_args::shown;
use super::progress::ProgressBar;
use super::report;
use crate::cli::context::Context;
use crate::cli::ledger::{differences_json, differences_table};
use crate::cli::terminal::CommandError;

/// Copy the whole store to a new folder, while servers run.
///
/// The copy is a consistent snapshot of everything: ledger, journal, tasks, tokens, audit, stored configurations, and
/// the files of a media folder. It is verified. Media in a bucket are not copied. The configuration file and the
/// credentials that it names are not part of the store: back them up separately.
#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// The folder to create. It appears when the backup is complete.
    folder: PathBuf,
    /// Leave out the media.
    #[arg(long)]
    without_media: bool,
}

pub(crate) async fn run(command: Backup, context: &mut Context) -> Result<(), CommandError> {
    let (settings, place) = context.storage_settings()?;
    let (media, left_out) = if command.without_media {
        (None, None)
    } else {
        match place {
            MediaPlace::Folder(folder) => (Some(folder), None),
            MediaPlace::Bucket(bucket) => (None, Some(format!("s3://{}", bucket.name))),
        }
    };
    let mut bar = ProgressBar::new();
    let program = concat!("tollgate ", env!("CARGO_PKG_VERSION"));
    let show = |progress| bar.show(progress);
    let made =
        store::backup_store(&settings, media.as_deref(), &command.folder, program, show).await;
    drop(bar);
    let made = match made {
        Ok(made) => made,
        Err(error) => return Err(report::failed(&error, context)),
    };
    let folder = command.folder.display();
    if context.json {
        let mut output = report::totals_json(&made.totals);
        output["ok"] = json!(made.verified.is_clean());
        output["folder"] = json!(folder.to_string());
        output["from"] = json!(shown(&settings));
        output["rows"] = json!(made.rows);
        output["bytes"] = json!(made.bytes);
        output["media_files"] = json!(made.media_files);
        output["media_left_out"] = json!(left_out);
        output["differences"] = json!(differences_json(&made.verified));
        context.out.json(&output)?;
    } else {
        report::show_totals(&made.totals, context)?;
        let (rows, bytes, files) = (made.rows, made.bytes, made.media_files);
        context.out.line(format!(
            "backup written to {folder}: {rows} rows, {files} media files, {bytes} bytes"
        ))?;
        if let Some(bucket) = left_out {
            let line = format!("not included: the media in {bucket}; the bucket keeps them");
            context.out.line(line)?;
        }
        if !made.verified.is_clean() {
            context.out.table(&differences_table(&made.verified))?;
        }
    }
    if made.verified.is_clean() {
        return Ok(());
    }
    Err(CommandError::message(format!(
        "the backup in {folder} is complete, but `ledger verify` finds {} differences in it",
        made.verified.differences.len()
    )))
}
