//! Collects a whole answer, and charges it to a memory budget if it is large.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::time::{Instant, sleep};
use upstream::{Body, CallError};

use crate::memory_budget::{FREE_BYTES, LimitOwner, MemoryBudget, MemoryShare};

/// How long an answer waits until its caller has taken enough of its other answers.
const ROOM_WITHIN: Duration = Duration::from_secs(60);
const ROOM_LOOK_EVERY: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(crate) enum CollectError {
    /// The connection to the upstream broke off.
    Lost(CallError),
    TooLarge,
    /// The budget does not have enough memory for the body.
    NoMemory(LimitOwner),
}

impl From<CallError> for CollectError {
    fn from(error: CallError) -> Self {
        Self::Lost(error)
    }
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct CollectedBody {
    pub(crate) body: Bytes,
    /// The memory that is charged for it; `None` if the body is small.
    pub(crate) share: Option<MemoryShare>,
}

impl CollectedBody {
    /// The body, which keeps the memory until it is dropped.
    pub(crate) fn into_charged(self) -> Bytes {
        match self.share {
            Some(share) => share.charge(self.body),
            None => self.body,
        }
    }
}

/// Collects a body. If it is large, it takes memory from `budget`. If the budget of one caller is used up, the upstream
/// has to wait for a while until that caller has taken other answers.
pub(crate) async fn collect_body(
    mut body: Body,
    bytes_max: usize,
    budget: impl FnOnce() -> MemoryBudget,
) -> Result<CollectedBody, CollectError> {
    let length = body.length_left();
    let length = length.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    if let Some(length) = length {
        if length > bytes_max {
            return Err(CollectError::TooLarge);
        }
        let mut share = None;
        if length > FREE_BYTES {
            let share = share.insert(budget().share());
            cover(share, length).await?;
        }
        let body = body.collect(bytes_max).await?;
        return Ok(CollectedBody { body, share });
    }
    let mut budget = Some(budget);
    let mut share = None;
    let mut first = Bytes::new();
    let mut whole = BytesMut::new();
    while let Some(piece) = body.next().await {
        let piece = piece?;
        let held = first.len() + whole.len() + piece.len();
        if held > bytes_max {
            return Err(CollectError::TooLarge);
        }
        if held > FREE_BYTES {
            if let Some(budget) = budget.take() {
                share = Some(budget().share());
            }
            if let Some(share) = &mut share {
                cover(share, held).await?;
            }
        }
        // Most answers arrive in one read and are not copied.
        if first.is_empty() && whole.is_empty() {
            first = piece;
        } else {
            whole.extend_from_slice(&std::mem::take(&mut first));
            whole.extend_from_slice(&piece);
        }
    }
    let body = if whole.is_empty() {
        first
    } else {
        whole.freeze()
    };
    Ok(CollectedBody { body, share })
}

/// Grows the share to `bytes`. Waits for the limit of a caller, but not for that of the node.
async fn cover(share: &mut MemoryShare, bytes: usize) -> Result<(), CollectError> {
    let missing = bytes.saturating_sub(share.bytes());
    let mut until = None;
    loop {
        let owner = match share.try_grow(missing) {
            Ok(()) => return Ok(()),
            Err(owner) => owner,
        };
        let now = Instant::now();
        let is_over = now >= *until.get_or_insert(now + ROOM_WITHIN);
        if owner == LimitOwner::Node || is_over {
            return Err(CollectError::NoMemory(owner));
        }
        sleep(ROOM_LOOK_EVERY).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_answer_waits_for_its_callers_others_and_not_for_the_node() {
        let node = MemoryBudget::new(20);
        let caller = node.part_of_caller(10);
        let other = caller.take(8).unwrap();
        let start = Instant::now();
        let mut share = caller.share();
        let waits = tokio::spawn(async move { cover(&mut share, 5).await.map(|()| share) });
        sleep(ROOM_WITHIN / 2).await;
        drop(other);
        let share = waits.await.unwrap().unwrap();
        assert!(start.elapsed() < ROOM_WITHIN);

        let mut beside = caller.share();
        let refused = cover(&mut beside, 6).await;
        assert!(matches!(
            refused,
            Err(CollectError::NoMemory(LimitOwner::Caller))
        ));
        assert!(start.elapsed() >= ROOM_WITHIN);

        let (of_others, start) = (node.take(15).unwrap(), Instant::now());
        let refused = cover(&mut beside, 1).await;
        assert!(matches!(
            refused,
            Err(CollectError::NoMemory(LimitOwner::Node))
        ));
        assert_eq!(start.elapsed(), Duration::ZERO);
        drop((share, of_others));
    }
}
