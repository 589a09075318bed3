//! Collects a whole answer, and charges it to the node's memory budget if it is large.

use bytes::{Bytes, BytesMut};
use upstream::{Body, CallError};

use crate::memory_budget::{FREE_BYTES, MemoryBudget};

#[derive(Debug)]
pub(crate) enum CollectError {
    /// The connection to the upstream broke off.
    Lost(CallError),
    TooLarge,
    /// The node does not have enough memory for the body.
    NoMemory,
}

impl From<CallError> for CollectError {
    fn from(error: CallError) -> Self {
        Self::Lost(error)
    }
}

pub(crate) async fn collect_body(
    mut body: Body,
    bytes_max: usize,
    budget: &MemoryBudget,
) -> Result<Bytes, CollectError> {
    let length = body.length_left();
    let length = length.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    if let Some(length) = length {
        if length > bytes_max {
            return Err(CollectError::TooLarge);
        }
        if length <= FREE_BYTES {
            return Ok(body.collect(bytes_max).await?);
        }
        let share = budget.take(length).ok_or(CollectError::NoMemory)?;
        return Ok(share.charge(body.collect(bytes_max).await?));
    }
    let mut share = budget.take(0).ok_or(CollectError::NoMemory)?;
    let mut first = Bytes::new();
    let mut whole = BytesMut::new();
    while let Some(piece) = body.next().await {
        let piece = piece?;
        let held = first.len() + whole.len() + piece.len();
        if held > bytes_max {
            return Err(CollectError::TooLarge);
        }
        if held > FREE_BYTES && !share.resize(held) {
            return Err(CollectError::NoMemory);
        }
        // Most answers arrive in one read and are not copied.
        if first.is_empty() && whole.is_empty() {
            first = piece;
        } else {
            whole.extend_from_slice(&std::mem::take(&mut first));
            whole.extend_from_slice(&piece);
        }
    }
    let whole = if whole.is_empty() {
        first
    } else {
        whole.freeze()
    };
    Ok(if share.bytes() > 0 {
        share.charge(whole)
    } else {
        whole
    })
}
