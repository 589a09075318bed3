//! Operations that verify the ledger, and that read its entries and the journal.

use super::Store;
use crate::backend::{Backend, on};
use crate::chain::WalletHead;
use crate::error::StoreError;
use crate::records::entries::{EntryQuery, EntryRow};
use crate::records::journal::{JournalEntry, JournalPage, JournalQuery, JournalRow};
use crate::usage::{UsageQuery, UsageRow};
use crate::verify::VerifyReport;

impl Store {
    /// Verifies amounts, holds, chains, prices and tasks against each other, in one snapshot of the live database.
    pub async fn verify(&self) -> Result<VerifyReport, StoreError> {
        self.verify_with(Vec::new()).await
    }

    /// Like [`Self::verify`]. Also checks that every head in `noted` is still part of its wallet's chain.
    pub async fn verify_with(&self, noted: Vec<WalletHead>) -> Result<VerifyReport, StoreError> {
        on!(self, backend => backend.verify(noted).await)
    }

    /// Entries in the order in which they were posted, a page at a time.
    pub async fn entries(&self, query: EntryQuery) -> Result<Vec<EntryRow>, StoreError> {
        on!(self, backend => backend.entries(query).await)
    }

    /// Adds a row to the journal. Never waits: a row that does not fit into the queue is dropped and counted.
    pub fn journal_append(&self, row: impl Into<Box<JournalRow>>) {
        let row = row.into();
        on!(self, backend => backend.journal_append(row));
    }

    /// Rows of the journal, newest first.
    pub async fn journal(&self, query: JournalQuery) -> Result<Vec<JournalEntry>, StoreError> {
        on!(self, backend => backend.journal(query).await)
    }

    /// A page of the journal, found within a short time. A page may have few rows or none, and still contain the
    /// position where the search continues.
    pub async fn journal_page(&self, query: JournalQuery) -> Result<JournalPage, StoreError> {
        on!(self, backend => backend.journal_page(query).await)
    }

    /// Counts calls. This is fast regardless of their number, because the journal's writers maintain the sums.
    pub async fn usage(&self, query: UsageQuery) -> Result<Vec<UsageRow>, StoreError> {
        let rows = on!(self, backend => backend.usage(query).await)?;
        rows.ok_or_else(|| {
            let advice =
                "the report is too large: choose a longer step, a shorter time or fewer dimensions";
            StoreError::Invalid(advice.to_owned())
        })
    }
}
