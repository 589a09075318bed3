//! placeholder
#![allow(
    dead_code,
    unused_variables,
    clippy::unused_async,
    clippy::unused_self,
    clippy::todo
)]

use ledger::UnixMs;

use crate::accounts::{KeyHead, KeyRow, WalletRow};
use crate::command::Command;
use crate::error::{AdmitError, OpenError, StoreError};
use crate::ids::{Digest, KeyId, WalletId};
use crate::journal::{JournalEntry, JournalQuery, JournalRow};
use crate::queue::Refused;
use crate::settings::Settings;
use crate::stats::Stats;
use crate::store::Recovery;
use crate::verify::VerifyReport;

#[derive(Debug)]
pub(crate) struct Sqlite {}

impl Sqlite {
    pub(crate) fn open(settings: &Settings) -> Result<(Self, Recovery), OpenError> {
        todo!()
    }
    pub(crate) fn attach(settings: &Settings) -> Result<Self, OpenError> {
        todo!()
    }
    pub(crate) fn push(&self, command: Command) -> Result<(), Refused> {
        todo!()
    }
    pub(crate) fn push_close(&self, command: Command) {
        todo!()
    }
    pub(crate) fn may_admit(&self) -> Result<(), AdmitError> {
        todo!()
    }
    pub(crate) fn now(&self) -> UnixMs {
        todo!()
    }
    pub(crate) fn healthy(&self) -> bool {
        todo!()
    }
    pub(crate) fn stats(&self) -> Stats {
        todo!()
    }
    pub(crate) async fn journal_flush(&self) {
        todo!()
    }
    pub(crate) async fn key_by_digest(
        &self,
        digest: Digest,
    ) -> Result<Option<KeyHead>, StoreError> {
        todo!()
    }
    pub(crate) async fn wallets(&self) -> Result<Vec<WalletRow>, StoreError> {
        todo!()
    }
    pub(crate) async fn find_wallet(
        &self,
        name_or_id: String,
    ) -> Result<Option<WalletRow>, StoreError> {
        todo!()
    }
    pub(crate) async fn keys(&self, wallet: Option<WalletId>) -> Result<Vec<KeyRow>, StoreError> {
        todo!()
    }
    pub(crate) async fn find_key(&self, key: KeyId) -> Result<Option<KeyRow>, StoreError> {
        todo!()
    }
    pub(crate) async fn verify(&self) -> Result<VerifyReport, StoreError> {
        todo!()
    }
    pub(crate) fn journal_append(&self, row: JournalRow) {
        todo!()
    }
    pub(crate) async fn journal(
        &self,
        query: JournalQuery,
    ) -> Result<Vec<JournalEntry>, StoreError> {
        todo!()
    }
}
