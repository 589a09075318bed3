//! Charges a request body to memory as it arrives.
//!
//! A length is only a claim, and a claim costs its maker nothing; so memory is charged for what has
//! arrived. Small bodies take from the whole node. Large ones take from their key, their wallet and
//! the part of the node that is not kept for small ones, and a wallet without credit gets none.

use engine::{Caller, Engine, LimitOwner, MemoryShare};
use protocol::{Code, Failure};

/// Bodies up to this size are small: they are charged to the node alone, and read before the wallet
/// is looked at, so that what is wrong with them is told first.
const SMALL_BYTES_MAX: usize = 64 << 10;
/// A large body is charged in steps of this size.
const STEP_BYTES: usize = 64 << 10;

/// Who pays for a body with memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Payer<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) caller: &'a Caller,
}

/// What one body takes while it is read.
#[derive(Debug)]
pub(crate) struct BodyCharge<'a> {
    payer: Payer<'a>,
    share: MemoryShare,
    is_large: bool,
}

impl<'a> BodyCharge<'a> {
    /// Begins with nothing. A body that announces more than there is room for is refused now;
    /// `held_bytes` is what will be in memory of the announced bytes at one time.
    pub(crate) async fn begin(
        payer: Payer<'a>,
        length: Option<usize>,
        held_bytes: usize,
    ) -> Result<Self, Failure> {
        let small_bodies = payer.engine.small_bodies();
        let mut charge = Self {
            payer,
            share: small_bodies.share(),
            is_large: false,
        };
        match length {
            Some(bytes) if bytes > SMALL_BYTES_MAX => {
                charge.enlarge(bytes.min(held_bytes)).await?;
            }
            Some(bytes) => small_bodies.has_room(bytes).map_err(refused)?,
            None => {}
        }
        Ok(charge)
    }

    /// Charges what is missing for so many bytes that are held now.
    pub(crate) async fn cover(&mut self, held_bytes: usize) -> Result<(), Failure> {
        if held_bytes <= self.share.bytes() {
            return Ok(());
        }
        if !self.is_large && held_bytes > SMALL_BYTES_MAX {
            self.enlarge(held_bytes).await?;
        }
        let missing = held_bytes - self.share.bytes();
        // A whole step, unless there is no room for it any more.
        if self.is_large && missing < STEP_BYTES && self.share.grow(STEP_BYTES) {
            return Ok(());
        }
        self.share.try_grow(missing).map_err(refused)
    }

    /// Gives back what is held no longer.
    pub(crate) fn release_beyond(&mut self, held_bytes: usize) {
        if held_bytes < self.share.bytes() {
            self.share.resize(held_bytes);
        }
    }

    /// What was taken, to be kept as long as the body is.
    pub(crate) fn into_share(self) -> MemoryShare {
        self.share
    }

    /// From now on the body is charged as a large one, which will hold so many bytes at least.
    async fn enlarge(&mut self, bytes: usize) -> Result<(), Failure> {
        let Payer { engine, caller } = self.payer;
        // In a box, so that the many small bodies do not keep room for it.
        Box::pin(engine.check_funds(caller)).await?;
        let bodies = caller.large_bodies();
        bodies.has_room(bytes).map_err(refused)?;
        let mut share = bodies.share();
        share.try_grow(self.share.bytes()).map_err(refused)?;
        self.share = share;
        self.is_large = true;
        Ok(())
    }
}

fn refused(ceiling: LimitOwner) -> Failure {
    match ceiling {
        LimitOwner::Node => {
            Failure::unavailable("The service has no memory left for request bodies.")
        }
        LimitOwner::Caller => Failure::new(
            Code::ConcurrencyLimitExceeded,
            "Large requests of this key or wallet take as much memory as they may.",
        ),
    }
    .retry_after(1)
}
