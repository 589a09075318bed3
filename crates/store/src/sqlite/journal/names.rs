//! Assigns numbers to rows, and to names that repeat in many rows.

use ledger::{DAY_MS, UnixMs};
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::cache::GenerationalCache;
use crate::records::ids::{KeyId, WalletId};
use crate::records::journal::{JournalRow, TIME_SHIFT, number_of};

const CACHED_NAMES_MAX: usize = 16_384;

type Words = std::collections::HashMap<Box<str>, i64>;

/// A cache of the names that already have a number.
pub(crate) struct Names<'c> {
    connection: &'c Connection,
    /// The number of the last row, and the day of that number.
    last: i64,
    day: i64,
    wallets: GenerationalCache<WalletId, i64>,
    keys: GenerationalCache<KeyId, i64>,
    words: Words,
}

impl<'c> Names<'c> {
    pub(crate) fn new(connection: &'c Connection) -> Self {
        let last = connection.query_row("SELECT coalesce(max(n), 0) FROM calls", [], |row| {
            row.get(0)
        });
        Self {
            connection,
            last: last.unwrap_or(0),
            day: 0,
            wallets: GenerationalCache::new(CACHED_NAMES_MAX),
            keys: GenerationalCache::new(CACHED_NAMES_MAX),
            words: Words::default(),
        }
    }

    pub(super) fn age(&mut self) {
        self.wallets.age();
        self.keys.age();
    }

    pub(super) fn word_or_null(&mut self, word: Option<&str>) -> rusqlite::Result<Option<i64>> {
        word.map(|word| self.word(word)).transpose()
    }

    /// The first number for `rows` consecutive rows. On a new day, drops the cache, so that names in use are recorded
    /// again.
    pub(super) fn number(&mut self, at: UnixMs, rows: usize) -> i64 {
        let first = number_of(at).max(self.last.saturating_add(1));
        self.last = first.saturating_add_unsigned(rows.saturating_sub(1) as u64);
        self.begin_day();
        first
    }

    /// The number of a row that is copied from another store: its number there, or the next free one.
    pub(crate) fn take_number(&mut self, number: i64) -> i64 {
        self.last = number.max(self.last.saturating_add(1));
        self.begin_day();
        self.last
    }

    fn begin_day(&mut self) {
        let day = day_of(self.last);
        if day != self.day {
            self.day = day;
            self.forget();
        }
    }

    pub(super) fn forget(&mut self) {
        self.wallets.clear();
        self.keys.clear();
        self.words.clear();
    }

    pub(super) fn party(
        &mut self,
        row: &JournalRow,
    ) -> rusqlite::Result<(Option<i64>, Option<i64>)> {
        let Some(wallet_id) = row.wallet else {
            return Ok((None, None));
        };
        let wallet = if let Some(n) = self.wallets.get_mut(wallet_id) {
            *n
        } else {
            let n = self.name(&wallet_id.to_string(), None)?;
            self.wallets.insert(wallet_id, n);
            n
        };
        let Some(key_id) = row.key else {
            return Ok((Some(wallet), None));
        };
        if let Some(n) = self.keys.get_mut(key_id) {
            return Ok((Some(wallet), Some(*n)));
        }
        let n = self.name(&key_id.to_string(), Some(wallet))?;
        self.keys.insert(key_id, n);
        Ok((Some(wallet), Some(n)))
    }

    pub(crate) fn word(&mut self, word: &str) -> rusqlite::Result<i64> {
        self.key(word, None)
    }

    /// The number of a key's id. The number of its wallet is stored with it.
    pub(crate) fn key(&mut self, word: &str, wallet: Option<i64>) -> rusqlite::Result<i64> {
        if let Some(n) = self.words.get(word) {
            return Ok(*n);
        }
        let n = self.name(word, wallet)?;
        // Callers may choose these values, so this cache is bounded like the others.
        if self.words.len() >= CACHED_NAMES_MAX {
            self.words.clear();
        }
        self.words.insert(word.into(), n);
        Ok(n)
    }

    fn name(&self, name: &str, wallet: Option<i64>) -> rusqlite::Result<i64> {
        // Reads first. Most names that are not in the cache were already seen today, and need no write. One statement
        // with `ON CONFLICT` and `RETURNING` would cost several times more for each of them.
        let mut find = self
            .connection
            .prepare_cached("SELECT n, seen FROM names WHERE name = ?1")?;
        let found: Option<(i64, i64)> = find
            .query_row([name], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let Some((n, seen)) = found else {
            let insert = "INSERT INTO names (name, wallet, seen) VALUES (?1, ?2, ?3)";
            self.connection
                .prepare_cached(insert)?
                .execute(params![name, wallet, self.day])?;
            return Ok(self.connection.last_insert_rowid());
        };
        if seen < self.day {
            self.connection
                .prepare_cached("UPDATE names SET seen = ?2 WHERE n = ?1")?
                .execute([n, self.day])?;
        }
        Ok(n)
    }
}

/// The day that is contained in a row's number.
pub(super) fn day_of(number: i64) -> i64 {
    (number >> TIME_SHIFT) / DAY_MS
}
