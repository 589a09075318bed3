//! `tollgate restore`: restores a backup to an empty database.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use store::MediaPlace;

use super::database_args::shown;
use super::progress::ProgressBar;
use super::report;
use crate::cli::context::Context;
use crate::cli::terminal::CommandError;

/// Restore a backup to the configured store, which must be empty.
///
/// The database may be of another kind than the one that was backed up. Nothing is overwritten, no server may run, and
/// the result is verified. If the command is interrupted, run it again: it continues where it stopped. Calls that were
/// open at the time of the backup are closed at no charge.
#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// The folder that `tollgate backup` has written.
    folder: PathBuf,
    /// Leave out the media.
    #[arg(long)]
    without_media: bool,
}

pub(crate) async fn run(command: Restore, context: &mut Context) -> Result<(), CommandError> {
    let (settings, place) = context.storage_settings()?;
    let media = if command.without_media {
        None
    } else {
        match place {
            MediaPlace::Folder(folder) => Some(folder),
            MediaPlace::Bucket(_) => None,
        }
    };
    let mut bar = ProgressBar::new();
    let show = |progress| bar.show(progress);
    let restored = store::restore_store(&command.folder, &settings, media.as_deref(), show).await;
    drop(bar);
    let (restored, media_files) = match restored {
        Ok(restored) => restored,
        Err(error) => return Err(report::failed(&error, context)),
    };
    let to = shown(&settings);
    if context.json {
        let mut output = report::report_json(&restored);
        output["from"] = json!(command.folder.display().to_string());
        output["to"] = json!(to);
        output["media_files"] = json!(media_files);
        return context.out.json(&output);
    }
    report::show(&restored, context)?;
    let line = if restored.already_done {
        format!(
            "{to} already has everything of {}",
            command.folder.display()
        )
    } else {
        format!("restored and verified: {to}")
    };
    context.out.line(line)?;
    match media {
        Some(folder) => {
            let line = format!(
                "media files restored to {}: {media_files}",
                folder.display()
            );
            context.out.line(line)
        }
        None => context.out.line("media were not restored"),
    }
}
