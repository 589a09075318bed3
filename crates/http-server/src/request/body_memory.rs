//! Charges a request body to memory budgets as it arrives (`docs/decisions/027`).
//!
//! A `Content-Length` costs the client nothing and may be false, so only bytes that have arrived are charged. Small
//! bodies are charged to their wallet and the node. Large bodies are charged to their key, their wallet and the part of
//! the node's memory that is not reserved for small bodies. A large body of a wallet without credits is refused.

use engine::{Caller, Engine, LimitOwner, MemoryShare};
use protocol::Failure;

/// The maximum size of a small body. Small bodies are not charged to their key. They are read before the wallet is
/// checked, so that errors in the body are reported first.
const SMALL_BYTES_MAX: usize = 64 << 10;
/// A large body is charged in steps of this size.
const STEP_BYTES: usize = 64 << 10;

/// The caller to whose limits the memory of a body is charged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemoryAccount<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) caller: &'a Caller,
}

/// The memory that a body has taken while it is read.
#[derive(Debug)]
pub(crate) struct BodyCharge<'a> {
    account: MemoryAccount<'a>,
    share: MemoryShare,
    is_large: bool,
}

impl<'a> BodyCharge<'a> {
    /// Charges nothing yet, but refuses a body whose announced length does not fit. At most `held_bytes` of it will be
    /// in memory at the same time.
    pub(crate) async fn begin(
        account: MemoryAccount<'a>,
        length: Option<usize>,
        held_bytes: usize,
    ) -> Result<Self, Failure> {
        let small_bodies = account.caller.small_bodies();
        let mut charge = Self {
            account,
            share: small_bodies.share(),
            is_large: false,
        };
        match length {
            Some(bytes) if bytes > SMALL_BYTES_MAX => {
                charge.enlarge(bytes.min(held_bytes)).await?;
            }
            Some(bytes) => small_bodies.has_room(bytes).map_err(LimitOwner::failure)?,
            None => {}
        }
        Ok(charge)
    }

    /// Charges the bytes that are held but not charged yet.
    pub(crate) async fn cover(&mut self, held_bytes: usize) -> Result<(), Failure> {
        if held_bytes <= self.share.bytes() {
            return Ok(());
        }
        if !self.is_large && held_bytes > SMALL_BYTES_MAX {
            self.enlarge(held_bytes).await?;
        }
        let missing = held_bytes - self.share.bytes();
        // Charge a whole step, unless there is no room for it.
        if self.is_large && missing < STEP_BYTES && self.share.grow(STEP_BYTES) {
            return Ok(());
        }
        self.share.try_grow(missing).map_err(LimitOwner::failure)
    }

    /// Frees the memory of bytes that are no longer held.
    pub(crate) fn release_beyond(&mut self, held_bytes: usize) {
        if held_bytes < self.share.bytes() {
            self.share.resize(held_bytes);
        }
    }

    /// The memory that was taken, which the body keeps until it is dropped.
    pub(crate) fn into_share(self) -> MemoryShare {
        self.share
    }

    /// Charges the body as a large one from now on. It will hold at least this many bytes.
    async fn enlarge(&mut self, bytes: usize) -> Result<(), Failure> {
        let MemoryAccount { engine, caller } = self.account;
        // Boxed, so that the futures of the many small bodies stay small.
        Box::pin(engine.check_funds(caller)).await?;
        let bodies = caller.large_bodies();
        bodies.has_room(bytes).map_err(LimitOwner::failure)?;
        let mut share = bodies.share();
        share
            .try_grow(self.share.bytes())
            .map_err(LimitOwner::failure)?;
        self.share = share;
        self.is_large = true;
        Ok(())
    }
}
