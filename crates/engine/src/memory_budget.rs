//! The memory budget of the node for request bodies and large answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use protocol::{Code, Failure};

use crate::failures::no_memory_for;

/// Answers, events of streams and the parts of rewritten requests are not charged to the memory budget up to this size.
pub(crate) const FREE_BYTES: usize = 256 << 10;

/// A budget of bytes that bodies may take.
#[derive(Debug, Clone)]
pub struct MemoryBudget(Arc<BudgetState>);

#[derive(Debug)]
struct BudgetState {
    left: AtomicUsize,
    /// The budget that contains this one. Every charge counts against both.
    whole: Option<MemoryBudget>,
    ceiling: LimitOwner,
}

/// The owner of the limit that refused a charge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitOwner {
    /// The node has no memory left.
    Node,
    /// One key or one wallet has reached its limit.
    Caller,
}

impl LimitOwner {
    /// The failure of a request or session that needs more memory.
    pub fn failure(self) -> Failure {
        match self {
            Self::Node => {
                Failure::unavailable("The service has no memory left for request bodies.")
            }
            Self::Caller => Failure::new(
                Code::ConcurrencyLimitExceeded,
                "The requests and answers of this key or wallet already take all the memory they may.",
            ),
        }
        .retry_soon()
    }
}

impl LimitOwner {
    /// The failure of a call that has no memory for `what`.
    pub(crate) fn failure_for(self, what: &str) -> Failure {
        match self {
            Self::Node => no_memory_for(what),
            Self::Caller => self.failure(),
        }
    }
}

impl MemoryBudget {
    /// Creates a budget of this many bytes.
    pub fn new(bytes: usize) -> Self {
        Self::of(bytes, None, LimitOwner::Node)
    }

    /// Creates a budget of one wallet that is not part of another budget.
    pub(crate) fn of_caller(bytes: usize) -> Self {
        Self::of(bytes, None, LimitOwner::Caller)
    }

    /// Creates a part of this budget with at most `bytes`, for one kind of work. Its charges count against both.
    pub(crate) fn part(&self, bytes: usize) -> Self {
        Self::of(bytes, Some(self.clone()), LimitOwner::Node)
    }

    /// Creates a part of this budget for one key or one wallet.
    pub(crate) fn part_of_caller(&self, bytes: usize) -> Self {
        Self::of(bytes, Some(self.clone()), LimitOwner::Caller)
    }

    fn of(bytes: usize, whole: Option<Self>, ceiling: LimitOwner) -> Self {
        let left = AtomicUsize::new(bytes);
        Self(Arc::new(BudgetState {
            left,
            whole,
            ceiling,
        }))
    }

    /// An empty share that can grow.
    pub fn share(&self) -> MemoryShare {
        MemoryShare {
            budget: self.clone(),
            bytes: 0,
        }
    }

    /// Checks whether `bytes` could be taken now, without taking them.
    pub fn has_room(&self, bytes: usize) -> Result<(), LimitOwner> {
        let BudgetState {
            left,
            whole,
            ceiling,
        } = &*self.0;
        if left.load(Ordering::Relaxed) < bytes {
            return Err(*ceiling);
        }
        whole.as_ref().map_or(Ok(()), |whole| whole.has_room(bytes))
    }

    /// Takes `bytes`, or nothing if there are not enough left.
    pub fn take(&self, bytes: usize) -> Option<MemoryShare> {
        let mut share = self.share();
        share.grow(bytes).then_some(share)
    }

    /// Takes the memory for the many small parts of a request that is rewritten, unless it is little.
    pub(crate) fn take_for_parts(&self, bytes: usize) -> Result<Option<MemoryShare>, Failure> {
        if bytes <= FREE_BYTES {
            return Ok(None);
        }
        let mut share = self.share();
        share.try_grow(bytes).map_err(LimitOwner::failure)?;
        Ok(Some(share))
    }

    fn try_take(&self, bytes: usize) -> Result<(), LimitOwner> {
        let BudgetState {
            left,
            whole,
            ceiling,
        } = &*self.0;
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            left.checked_sub(bytes)
        })
        .map_err(|_| *ceiling)?;
        let taken = whole.as_ref().map_or(Ok(()), |whole| whole.try_take(bytes));
        if taken.is_err() {
            left.fetch_add(bytes, Ordering::Relaxed);
        }
        taken
    }

    fn give_back(&self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        self.0.left.fetch_add(bytes, Ordering::Relaxed);
        if let Some(whole) = &self.0.whole {
            whole.give_back(bytes);
        }
    }
}

/// A part of the budget that has been charged. Dropping it returns the bytes.
#[derive(Debug)]
pub struct MemoryShare {
    budget: MemoryBudget,
    bytes: usize,
}

impl MemoryShare {
    /// Takes more bytes. If that is not possible, returns `false` and changes nothing.
    pub fn grow(&mut self, bytes: usize) -> bool {
        self.try_grow(bytes).is_ok()
    }

    /// Takes more bytes. If that is not possible, returns the owner of the limit and changes nothing.
    pub fn try_grow(&mut self, bytes: usize) -> Result<(), LimitOwner> {
        self.budget.try_take(bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Grows or shrinks the share to this size. If that is not possible, returns `false` and changes nothing.
    pub fn resize(&mut self, bytes: usize) -> bool {
        if bytes > self.bytes {
            return self.grow(bytes - self.bytes);
        }
        self.give_back(self.bytes - bytes);
        true
    }

    /// Splits off this many bytes, or all if the share has fewer.
    pub(crate) fn split(&mut self, bytes: usize) -> Self {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Self {
            budget: self.budget.clone(),
            bytes,
        }
    }

    /// Ties the share to a body, and gives it back to the budget when the last clone of the body is dropped. The part
    /// that exceeds the size of the body is given back immediately.
    pub fn charge(mut self, body: Bytes) -> Bytes {
        self.give_back(self.bytes.saturating_sub(body.len()));
        Bytes::from_owner(ChargedBody { body, _share: self })
    }

    /// The number of bytes that the share holds.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl MemoryShare {
    fn give_back(&mut self, bytes: usize) {
        self.bytes -= bytes;
        self.budget.give_back(bytes);
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        self.give_back(self.bytes);
    }
}

struct ChargedBody {
    body: Bytes,
    _share: MemoryShare,
}

impl AsRef<[u8]> for ChargedBody {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_returns_with_the_last_clone_of_its_body() {
        let budget = MemoryBudget::new(10);
        let body = budget
            .take(8)
            .unwrap()
            .charge(Bytes::from_static(b"12345678"));
        let clone = body.slice(2..4);
        drop(body);
        assert!(budget.take(3).is_none());
        drop(clone);
        assert!(budget.take(10).is_some());
    }

    #[test]
    fn a_body_keeps_no_more_than_its_size() {
        let budget = MemoryBudget::new(10);
        let body = budget.take(10).unwrap().charge(Bytes::from_static(b"123"));
        assert!(budget.take(8).is_none());
        assert!(budget.take(7).is_some());
        drop(body);
        assert!(budget.take(10).is_some());
    }

    #[test]
    fn a_refused_growth_takes_nothing() {
        let budget = MemoryBudget::new(10);
        let mut share = budget.take(4).unwrap();
        assert!(!share.grow(7));
        assert!(share.grow(6));
        assert_eq!(share.bytes(), 10);
    }

    #[test]
    fn a_part_takes_from_the_whole_and_leaves_it_the_rest() {
        let whole = MemoryBudget::new(10);
        let part = whole.part(6);
        assert!(part.take(7).is_none());
        let share = part.take(6).unwrap();
        assert!(whole.take(5).is_none());
        let other = whole.take(4).unwrap();
        drop(share);
        // If the whole budget refuses a charge, the bytes are returned to the part.
        let more = whole.take(1).unwrap();
        assert!(part.take(6).is_none());
        assert!(part.take(5).is_some());
        drop((other, more));
        assert!(part.take(6).is_some() && whole.take(10).is_some());
    }

    #[test]
    fn a_refusal_tells_whose_limit_it_was() {
        let node = MemoryBudget::new(10);
        let wallet = node.part_of_caller(6);
        let key = wallet.part_of_caller(4);
        let mut share = key.share();
        assert_eq!(key.has_room(5), Err(LimitOwner::Caller));
        assert_eq!(share.try_grow(5), Err(LimitOwner::Caller));
        assert_eq!(key.has_room(4), Ok(()));
        let others = node.take(7).unwrap();
        assert_eq!(key.has_room(4), Err(LimitOwner::Node));
        assert_eq!(share.try_grow(4), Err(LimitOwner::Node));
        assert_eq!(share.try_grow(3), Ok(()));
        drop((share, others));
        assert!(node.take(10).is_some(), "nothing is lost by refusals");
    }

    #[test]
    fn a_share_can_be_parted() {
        let budget = MemoryBudget::new(10);
        let mut share = budget.take(8).unwrap();
        let body = share.split(5).charge(Bytes::from_static(b"12345"));
        assert_eq!((share.bytes(), share.split(9).bytes()), (3, 3));
        drop(share);
        assert!(budget.take(6).is_none());
        drop(body);
        assert!(budget.take(10).is_some());
    }

    #[test]
    fn a_share_follows_what_is_held() {
        let budget = MemoryBudget::new(10);
        let mut share = budget.take(0).unwrap();
        assert!(share.resize(9));
        assert!(!share.resize(11));
        assert_eq!(share.bytes(), 9);
        assert!(share.resize(2));
        assert!(budget.take(8).is_some());
    }
}
