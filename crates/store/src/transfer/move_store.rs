//! `tollgate move`: copies a whole store into another database.

use super::contents::StoreContents;
use super::copy::copy;
use super::error::TransferError;
use super::report::{Progress, TransferReport};
use super::side::Side;
use super::tables::TABLES;
use crate::settings::Settings;
use crate::store::Store;
use crate::verify::VerifyReport;

/// Copies a store to an empty database and verifies both. The same call continues an interrupted move. The source is
/// migrated to the schema of this program, but keeps its contents. It cannot be used during the move.
pub async fn move_store(
    from: &Settings,
    to: &Settings,
    mut progress: impl FnMut(Progress),
) -> Result<TransferReport, TransferError> {
    let source = Side::stopped_source(from).await?;
    if from.location == to.location {
        let place = source.place();
        return Err(TransferError::SamePlace { place });
    }
    let destination = Side::destination(to).await?;
    let task = Transfer::check(source, destination).await?;
    let report = task.run(&mut progress).await?;
    close_orphans(to, report)
}

/// A transfer whose destination has been checked.
pub(super) struct Transfer {
    source: Side,
    destination: Side,
    contents: StoreContents,
    is_begun: bool,
    already_done: bool,
}

impl Transfer {
    /// Refuses a destination with other contents. Writes nothing yet.
    pub(super) async fn check(source: Side, destination: Side) -> Result<Self, TransferError> {
        let contents = StoreContents::of(&source).await?;
        let unfinished = destination.unfinished().await?;
        let is_begun = unfinished.is_some();
        let already_done = match unfinished {
            Some(begun) if begun == contents.fingerprint() => false,
            Some(_) => {
                let place = destination.place();
                return Err(TransferError::OtherSource { place });
            }
            None => is_complete(&destination, &contents).await?,
        };
        Ok(Self {
            source,
            destination,
            contents,
            is_begun,
            already_done,
        })
    }

    /// Copies everything, compares source and destination, and removes the mark from the destination.
    pub(super) async fn run(
        self,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<TransferReport, TransferError> {
        let Self {
            source,
            mut destination,
            contents,
            is_begun,
            already_done,
        } = self;
        let fingerprint = contents.fingerprint();
        // Marks the destination first. The verification takes long, and the mark keeps nodes from using the destination
        // meanwhile.
        if !already_done {
            destination.begin(&fingerprint).await?;
        }
        let verified = verify_source(&source, &destination, &contents, progress).await;
        if verified.is_err() && !already_done && !is_begun {
            // An error here is ignored, because the error of the verification is more important.
            drop(destination.remove_marks().await);
        }
        let verified = verified?;
        let mut report = TransferReport {
            tables: TABLES
                .iter()
                .map(|table| table.name)
                .zip(contents.counts.iter().copied())
                .collect(),
            already_done,
            totals: contents.totals,
            ..TransferReport::default()
        };
        if !already_done {
            report.resumed = copy(&source, &mut destination, &contents, progress).await?;
        }
        let copied = StoreContents::of(&destination).await?;
        if let Some(difference) = contents.difference(&copied) {
            return Err(TransferError::Differs(difference));
        }
        let copied = verify(&destination, contents.rows(), &contents, progress).await?;
        if copied != verified {
            return Err(TransferError::Differs(
                "the heads of the wallets".to_owned(),
            ));
        }
        report.heads = copied.heads;
        report.abandoned = destination.orphans().await?;
        if !already_done {
            destination.finish(source.last_epoch().await?).await?;
        }
        Ok(report)
    }
}

/// Whether everything was copied to this destination before. Refuses a database with any other contents.
async fn is_complete(destination: &Side, source: &StoreContents) -> Result<bool, TransferError> {
    let found = StoreContents::of(destination).await?;
    if found.rows() == 0 {
        return Ok(false);
    }
    if source.difference(&found).is_none() {
        return Ok(true);
    }
    Err(TransferError::NotEmpty {
        place: destination.place(),
        tables: found.filled(),
    })
}

/// Verifies the source. Fails if a node began to use the destination before it was marked.
async fn verify_source(
    source: &Side,
    destination: &Side,
    contents: &StoreContents,
    progress: &mut dyn FnMut(Progress),
) -> Result<VerifyReport, TransferError> {
    destination.refuse_live_node().await?;
    verify(source, 0, contents, progress).await
}

async fn verify(
    side: &Side,
    done: u64,
    contents: &StoreContents,
    progress: &mut dyn FnMut(Progress),
) -> Result<VerifyReport, TransferError> {
    progress(Progress {
        step: "verify",
        done,
        total: contents.rows(),
    });
    let report = side.verify().await?;
    if report.is_clean() {
        return Ok(report);
    }
    Err(TransferError::Unclean {
        place: side.place(),
        report: Box::new(report),
    })
}

/// Closes the calls that were open in the source, as the next start of a server would. A later `ledger verify` then
/// sees the destination in its final state.
pub(super) fn close_orphans(
    to: &Settings,
    report: TransferReport,
) -> Result<TransferReport, TransferError> {
    if report.abandoned > 0 {
        // The retention time of the server is not known here, so no journal rows are deleted.
        let settings = Settings {
            journal_retention_days: 0,
            ..to.clone()
        };
        drop(Store::open(&settings)?);
    }
    Ok(report)
}
