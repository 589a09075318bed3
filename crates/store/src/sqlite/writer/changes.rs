//! Administrative changes in the ledger: wallets and price versions.
//!
//! Each change checks first, then writes its rows and the row of the audit, and changes the books last. So a change
//! that fails leaves the books as they were, and `atomically` takes back what it wrote.

use ledger::UnixMs;
use rusqlite::{OptionalExtension as _, params};

use super::ledger::Ledger;
use crate::books::{Audited, Opening, changed};
use crate::chain::Head;
use crate::error::StoreError;
use crate::queue::command::{CostedRoute, WalletChange};
use crate::records::accounts::{NewWallet, WalletRow};
use crate::records::audit::Actor;
use crate::records::cost::CostVersion;
use crate::records::ids::{PriceVersion, WalletId};
use crate::sqlite::rows::{WALLET, wallet_row};

impl Ledger<'_> {
    pub(crate) fn create_wallet(
        &mut self,
        id: WalletId,
        new: NewWallet,
        now: UnixMs,
        actor: &Actor,
    ) -> Result<WalletRow, StoreError> {
        let opening = Opening::of(&new)?;
        let (name, wallet) = (new.name, opening.wallet);
        let taken = "SELECT 1 FROM wallets WHERE name = ?1";
        if self.connection.prepare_cached(taken)?.exists([&name])? {
            return Err(StoreError::Taken {
                what: "wallet",
                name,
            });
        }
        let insert = "INSERT INTO wallets (id, name, status, credit_limit, created_at, head)
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        self.connection.prepare_cached(insert)?.execute(params![
            id,
            name,
            wallet.status.as_str(),
            wallet.credit_limit.get(),
            now.get(),
            Head::of_wallet(id),
        ])?;
        let n = self.connection.last_insert_rowid();
        let row = WalletRow {
            id,
            name,
            wallet,
            created_at: now,
        };
        self.audit(&Audited::wallet_created(&row), now, actor)?;
        self.books.open_wallet(n, id, opening, now);
        Ok(row)
    }

    /// Changes a wallet and posts an entry that says why. A change that fails has changed nothing.
    pub(crate) fn change_wallet(
        &mut self,
        id: WalletId,
        change: WalletChange,
        now: UnixMs,
        actor: &Actor,
    ) -> Result<WalletRow, StoreError> {
        let missing = || StoreError::NotFound {
            what: "wallet",
            id: id.to_string(),
        };
        let select = format!("SELECT {WALLET}, w.n FROM wallets w WHERE w.id = ?1");
        let found = self
            .connection
            .prepare_cached(&select)?
            .query_row([id], |row| Ok((wallet_row(row)?, row.get("n")?)));
        let (stored, n) = found.optional()?.ok_or_else(missing)?;
        self.load_wallet(n)?;
        let row = self.books.wallets.get_mut(n).ok_or_else(missing)?;
        let before = row.wallet;
        let wallet = changed(before, change.clone())?;
        // The batch writes the amounts of a wallet. Values that people set are written here.
        let update = "UPDATE wallets SET status = ?2, credit_limit = ?3 WHERE n = ?1";
        self.connection.prepare_cached(update)?.execute(params![
            n,
            wallet.status.as_str(),
            wallet.credit_limit.get(),
        ])?;
        let audited = Audited::wallet_changed(id, &before, &wallet, &change);
        self.audit(&audited, now, actor)?;
        let changed = self.books.change_wallet(n, change, now);
        let wallet = changed.ok_or_else(missing)??;
        Ok(WalletRow { wallet, ..stored })
    }

    pub(crate) fn price_version(
        &mut self,
        model: &str,
        card: &str,
        now: UnixMs,
    ) -> Result<PriceVersion, StoreError> {
        let select = "SELECT id FROM price_versions WHERE model = ?1 AND card = ?2";
        let known = self
            .connection
            .prepare_cached(select)?
            .query_row([model, card], |row| row.get(0))
            .optional()?;
        if let Some(id) = known {
            return Ok(PriceVersion::new(id, model, card));
        }
        let insert = "INSERT INTO price_versions (model, card, created_at) VALUES (?1, ?2, ?3)";
        self.connection
            .prepare_cached(insert)?
            .execute(params![model, card, now.get()])?;
        self.books.pending.wrote = true;
        let id = self.connection.last_insert_rowid();
        Ok(PriceVersion::new(id, model, card))
    }

    pub(crate) fn cost_version(
        &mut self,
        route: &CostedRoute,
        now: UnixMs,
    ) -> Result<CostVersion, StoreError> {
        let (model, channel, card) = (&*route.model, &*route.channel, &*route.card);
        let select = "SELECT id FROM cost_versions WHERE model = ?1 AND channel = ?2 AND card = ?3";
        let known = self
            .connection
            .prepare_cached(select)?
            .query_row([model, channel, card], |row| row.get(0))
            .optional()?;
        if let Some(id) = known {
            return Ok(CostVersion::new(id, model, channel, card));
        }
        let insert =
            "INSERT INTO cost_versions (model, channel, card, created_at) VALUES (?1, ?2, ?3, ?4)";
        self.connection.prepare_cached(insert)?.execute(params![
            model,
            channel,
            card,
            now.get()
        ])?;
        self.books.pending.wrote = true;
        let id = self.connection.last_insert_rowid();
        Ok(CostVersion::new(id, model, channel, card))
    }
}
