//! Lets callers list their tasks one after the other.
//!
//! A list counts and skips rows, and it uses a connection that operators need for their own searches. So callers have
//! one connection at most, and a wallet waits for it in one place only, however many lists it asks for.

use tokio::sync::{Semaphore, SemaphorePermit};

/// The number of lists that all callers together may read at once. The store runs at least two searches at once.
const LISTS_MAX: usize = 1;

#[derive(Debug)]
pub(crate) struct ListTurns(Semaphore);

impl Default for ListTurns {
    fn default() -> Self {
        Self(Semaphore::new(LISTS_MAX))
    }
}

/// The turn of one list, until it is dropped.
#[derive(Debug)]
pub(super) struct ListTurn<'a> {
    _wallet: Option<SemaphorePermit<'a>>,
    _all: Option<SemaphorePermit<'a>>,
}

impl ListTurns {
    /// Waits for the turn of one list. `of_wallet` has the one permit of the list's wallet. The semaphores are never
    /// closed.
    pub(super) async fn turn<'a>(&'a self, of_wallet: &'a Semaphore) -> ListTurn<'a> {
        ListTurn {
            _wallet: of_wallet.acquire().await.ok(),
            _all: self.0.acquire().await.ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn poll<F: Future>(turn: &mut Pin<Box<F>>) -> Poll<F::Output> {
        turn.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_wallet_with_many_lists_delays_another_by_one() {
        let turns = ListTurns::default();
        let [busy, other] = [Semaphore::new(1), Semaphore::new(1)];
        let mut lists: Vec<_> = (0..100).map(|_| Box::pin(turns.turn(&busy))).collect();
        let Poll::Ready(running) = poll(&mut lists.remove(0)) else {
            panic!("the first list does not wait");
        };
        assert!(lists.iter_mut().all(|list| poll(list).is_pending()));
        let mut other = Box::pin(turns.turn(&other));
        assert!(poll(&mut other).is_pending(), "one list at a time");
        drop(running);
        assert!(lists.iter_mut().all(|list| poll(list).is_pending()));
        let Poll::Ready(running) = poll(&mut other) else {
            panic!("the other wallet is next");
        };
        drop(running);
        assert!(poll(&mut lists[0]).is_ready());
    }
}
