//! Suppresses the wake-up that a connection would send to itself after the last piece of a body.
//!
//! hyper wakes a connection whenever the service takes a piece of a request body, so that the connection reads the next
//! piece. hyper also does so after the last piece, when nothing is left to read. Without this module, every small
//! request would poll its connection one extra time. That costs up to 3 % of a small call (`docs/decisions/079`).

use std::cell::Cell;
use std::ptr;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

thread_local! {
    static WITHHELD_WAKES: Cell<WithheldWakes> = const { Cell::new(WithheldWakes::NONE) };
}

/// The connection whose wake-ups are currently withheld on this thread.
#[derive(Clone, Copy)]
struct WithheldWakes {
    /// The address of its [`WakeTarget`], compared and never dereferenced.
    target: *const (),
    was_woken: bool,
}

impl WithheldWakes {
    const NONE: Self = Self {
        target: ptr::null(),
        was_woken: false,
    };
}

struct WakeTarget {
    task: Waker,
}

impl Wake for WakeTarget {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let target = WITHHELD_WAKES.get().target;
        if ptr::eq(target, Arc::as_ptr(self).cast()) {
            WITHHELD_WAKES.set(WithheldWakes {
                target,
                was_woken: true,
            });
        } else {
            self.task.wake_by_ref();
        }
    }
}

/// The waker of a connection, created once for its task.
#[derive(Default)]
pub(crate) struct ConnectionWaker {
    created: Option<(Arc<WakeTarget>, Waker)>,
}

impl ConnectionWaker {
    /// A waker that wakes `task`, except inside [`withhold_self_wake`].
    pub(crate) fn of(&mut self, task: &Waker) -> &Waker {
        let is_of_task = |(target, _): &(Arc<WakeTarget>, _)| target.task.will_wake(task);
        if !self.created.as_ref().is_some_and(is_of_task) {
            self.created = None;
        }
        let (_, waker) = self.created.get_or_insert_with(|| {
            let target = Arc::new(WakeTarget { task: task.clone() });
            (Arc::clone(&target), Waker::from(target))
        });
        waker
    }
}

/// Runs `act`, and returns whether it tried to wake the connection that is being polled. That wake-up is withheld, and
/// the caller must repeat it if the connection needs it.
pub(crate) fn withhold_self_wake<T>(
    cx: &mut Context<'_>,
    act: impl FnOnce(&mut Context<'_>) -> T,
) -> (T, bool) {
    /// Ends the withholding, also when `act` panics.
    struct Release;

    impl Drop for Release {
        fn drop(&mut self) {
            WITHHELD_WAKES.set(WithheldWakes::NONE);
        }
    }

    let _release = Release;
    WITHHELD_WAKES.set(WithheldWakes {
        target: cx.waker().data(),
        was_woken: false,
    });
    let done = act(cx);
    (done, WITHHELD_WAKES.get().was_woken)
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn task() -> (Waker, Arc<Count>) {
        let count = Arc::new(Count::default());
        (Waker::from(Arc::clone(&count)), count)
    }

    fn woken(count: &Count) -> usize {
        count.0.load(Ordering::Relaxed)
    }

    #[test]
    fn a_connection_does_not_wake_itself_while_that_is_withheld() {
        let (task, count) = task();
        let mut waker = ConnectionWaker::default();
        let own = waker.of(&task).clone();
        assert!(own.will_wake(waker.of(&task)), "created once for a task");
        let cx = &mut Context::from_waker(&own);

        own.wake_by_ref();
        assert_eq!(woken(&count), 1);
        let ((), was_woken) = withhold_self_wake(cx, |cx| cx.waker().wake_by_ref());
        assert_eq!((was_woken, woken(&count)), (true, 1));
        let ((), was_woken) = withhold_self_wake(cx, |_| ());
        assert!(!was_woken);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            withhold_self_wake(cx, |_| panic!("inside"))
        }));
        assert!(panicked.is_err());
        own.wake_by_ref();
        assert_eq!(woken(&count), 2);
    }

    #[test]
    fn other_connections_and_other_threads_wake_as_usual() {
        let ((one, first), (other, second)) = (task(), task());
        let (mut waker, mut other_waker) = (ConnectionWaker::default(), ConnectionWaker::default());
        let (own, foreign) = (waker.of(&one).clone(), other_waker.of(&other).clone());
        let ((), was_woken) = withhold_self_wake(&mut Context::from_waker(&own), |_| {
            foreign.wake_by_ref();
            let own = own.clone();
            std::thread::spawn(move || own.wake()).join().unwrap();
        });
        assert!(!was_woken);
        assert_eq!((woken(&first), woken(&second)), (1, 1));
        // An HTTP/2 stream runs in its own task, whose waker is not the connection's.
        let ((), was_woken) =
            withhold_self_wake(&mut Context::from_waker(&one), |_| own.wake_by_ref());
        assert!(!was_woken);
        assert_eq!(woken(&first), 2);
    }

    #[test]
    fn a_connection_that_moves_to_another_task_wakes_that_task() {
        let ((one, first), (other, second)) = (task(), task());
        let mut waker = ConnectionWaker::default();
        waker.of(&one).wake_by_ref();
        waker.of(&other).wake_by_ref();
        assert_eq!((woken(&first), woken(&second)), (1, 1));
    }
}
