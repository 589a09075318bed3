//! Wakes that a connection need not hear.
//!
//! hyper wakes a connection when a piece of its request's body is taken, so that it reads the next one;
//! also behind the last piece, when there is nothing left to read. Every small request would cost its
//! connection one more turn in which nothing happens.

use std::cell::Cell;
use std::ptr;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

thread_local! {
    static KEPT: Cell<Kept> = const { Cell::new(Kept::NOTHING) };
}

/// Whose wakes are kept back on this thread.
#[derive(Clone, Copy)]
struct Kept {
    /// Compared, never followed.
    sleeper: *const (),
    was_woken: bool,
}

impl Kept {
    const NOTHING: Self = Self {
        sleeper: ptr::null(),
        was_woken: false,
    };
}

/// Who is woken in the end.
struct Sleeper {
    task: Waker,
}

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let sleeper = KEPT.get().sleeper;
        if ptr::eq(sleeper, Arc::as_ptr(self).cast()) {
            KEPT.set(Kept {
                sleeper,
                was_woken: true,
            });
        } else {
            self.task.wake_by_ref();
        }
    }
}

/// The waker of a connection, made once for its task.
#[derive(Default)]
pub(crate) struct Wakes {
    made: Option<(Arc<Sleeper>, Waker)>,
}

impl Wakes {
    /// What wakes `task`, except inside [`held`].
    pub(crate) fn of(&mut self, task: &Waker) -> &Waker {
        let is_of_task = |(sleeper, _): &(Arc<Sleeper>, _)| sleeper.task.will_wake(task);
        if !self.made.as_ref().is_some_and(is_of_task) {
            self.made = None;
        }
        let (_, waker) = self.made.get_or_insert_with(|| {
            let sleeper = Arc::new(Sleeper { task: task.clone() });
            (Arc::clone(&sleeper), Waker::from(sleeper))
        });
        waker
    }
}

/// Runs `act` with its context, and tells whether it woke the very connection that runs it, which has
/// not heard of it.
pub(crate) fn held<T>(cx: &mut Context<'_>, act: impl FnOnce(&mut Context<'_>) -> T) -> (T, bool) {
    /// Also when `act` panics, all is heard again.
    struct Open;

    impl Drop for Open {
        fn drop(&mut self) {
            KEPT.set(Kept::NOTHING);
        }
    }

    let _open = Open;
    KEPT.set(Kept {
        sleeper: cx.waker().data(),
        was_woken: false,
    });
    let done = act(cx);
    (done, KEPT.get().was_woken)
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
    fn a_connection_does_not_hear_itself_while_it_is_held() {
        let (task, count) = task();
        let mut wakes = Wakes::default();
        let own = wakes.of(&task).clone();
        assert!(own.will_wake(wakes.of(&task)), "made once for a task");
        let cx = &mut Context::from_waker(&own);

        own.wake_by_ref();
        assert_eq!(woken(&count), 1);
        let ((), was_woken) = held(cx, |cx| cx.waker().wake_by_ref());
        assert_eq!((was_woken, woken(&count)), (true, 1));
        let ((), was_woken) = held(cx, |_| ());
        assert!(!was_woken);
        let panicked = catch_unwind(AssertUnwindSafe(|| held(cx, |_| panic!("inside"))));
        assert!(panicked.is_err());
        own.wake_by_ref();
        assert_eq!(woken(&count), 2);
    }

    #[test]
    fn others_are_woken_at_once_and_so_is_it_by_other_threads() {
        let ((one, first), (other, second)) = (task(), task());
        let (mut wakes, mut others) = (Wakes::default(), Wakes::default());
        let (own, foreign) = (wakes.of(&one).clone(), others.of(&other).clone());
        let ((), was_woken) = held(&mut Context::from_waker(&own), |_| {
            foreign.wake_by_ref();
            let own = own.clone();
            std::thread::spawn(move || own.wake()).join().unwrap();
        });
        assert!(!was_woken);
        assert_eq!((woken(&first), woken(&second)), (1, 1));
        // A task that is served by the connection and is none itself, as with HTTP/2.
        let ((), was_woken) = held(&mut Context::from_waker(&one), |_| own.wake_by_ref());
        assert!(!was_woken);
        assert_eq!(woken(&first), 2);
    }

    #[test]
    fn a_connection_that_moves_to_another_task_wakes_that() {
        let ((one, first), (other, second)) = (task(), task());
        let mut wakes = Wakes::default();
        wakes.of(&one).wake_by_ref();
        wakes.of(&other).wake_by_ref();
        assert_eq!((woken(&first), woken(&second)), (1, 1));
    }
}
