//! Proves that a transaction was committed, by a row that only this transaction can have written.

use tokio_postgres::Client;

use crate::books::Books;

#[derive(Debug)]
pub(crate) enum CommitProof {
    /// A hold that the transaction opened. If it was closed since then, an entry names it.
    Opened { wallet: i64, hold: i64 },
    /// The entry that closed a hold. The sweeper's entry for the same hold may have the same number, but has another
    /// kind.
    Closed {
        wallet: i64,
        hold: i64,
        seq: i64,
        kind: &'static str,
    },
}

impl CommitProof {
    /// The proof for a batch. `None` if no row of the batch is unique to it.
    pub(crate) fn of(books: &Books) -> Option<Self> {
        let opened = books.pending.opened.iter().find_map(|id| {
            let hold = books.holds.get(id)?;
            Some(Self::Opened {
                wallet: hold.wallet,
                hold: id.get(),
            })
        });
        opened.or_else(|| {
            books.pending.postings.iter().find_map(|posting| {
                Some(Self::Closed {
                    wallet: posting.wallet,
                    hold: posting.columns().closes?,
                    seq: posting.seq,
                    kind: posting.kind.as_str(),
                })
            })
        })
    }

    pub(crate) async fn is_there(&self, on: &Client) -> Result<bool, tokio_postgres::Error> {
        let found = match self {
            Self::Opened { wallet, hold } => {
                let seen = "SELECT EXISTS (SELECT 1 FROM holds WHERE wallet = $1 AND id = $2)
                            OR EXISTS (SELECT 1 FROM entries WHERE wallet = $1 AND closes = $2)";
                on.query_one(seen, &[wallet, hold]).await?
            }
            Self::Closed {
                wallet,
                hold,
                seq,
                kind,
            } => {
                let seen = "SELECT EXISTS (SELECT 1 FROM entries
                            WHERE wallet = $1 AND closes = $2 AND seq = $3 AND kind = $4)";
                on.query_one(seen, &[wallet, hold, seq, kind]).await?
            }
        };
        found.try_get(0)
    }
}
