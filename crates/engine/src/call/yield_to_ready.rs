//! Calls that are as far go on together.
//!
//! On its way a call runs through much more code than the first cache of a core holds, and through each
//! piece of it once; much of its time it would wait for instructions. So it gives way at the seams of its
//! work: then all calls that are ready do one piece, one after the other, while its code is at hand.

use std::future::poll_fn;
use std::task::Poll;

/// Lets all that is ready on this thread go first. With nothing else to do it costs next to nothing: unlike
/// [`tokio::task::yield_now`] it does not look for news from the sockets.
pub(crate) async fn yield_to_ready() {
    let mut gave = false;
    poll_fn(|cx| {
        if gave {
            return Poll::Ready(());
        }
        gave = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[tokio::test]
    async fn calls_that_are_as_far_go_on_together() {
        let done = Arc::new(Mutex::new(String::new()));
        let calls = (0..3).map(|_| {
            let done = Arc::clone(&done);
            tokio::spawn(async move {
                for piece in ["read ", "word ", "send "] {
                    done.lock().unwrap().push_str(piece);
                    yield_to_ready().await;
                }
            })
        });
        for call in calls.collect::<Vec<_>>() {
            call.await.unwrap();
        }
        let done = done.lock().unwrap();
        let expected = "read read read word word word send send send ";
        assert_eq!(*done, expected);
    }
}
