use super::*;
use crate::queue::command_queue::Bounds;

fn sync_queue() -> Arc<SyncQueue> {
    let queue = CommandQueue::new(Bounds {
        gather: Duration::ZERO,
        waiting_max: 1,
        call_wait_max: Duration::ZERO,
        change_wait_max: Duration::ZERO,
    });
    SyncQueue::new(Duration::from_secs(3600), Duration::ZERO, Arc::new(queue))
}

#[tokio::test]
async fn a_waiter_hurries_the_sync_and_gets_its_promise() {
    let sync_queue = sync_queue();
    let batch = Batch::synced_by(1, &sync_queue);
    let durable = batch.durable();
    sync_queue.push(batch, true);
    let thread = std::thread::spawn({
        let sync_queue = Arc::clone(&sync_queue);
        move || sync_queue.run(|| Ok(()))
    });
    assert!(!durable.is_done());
    assert_eq!(durable.wait().await, Ok(()));
    assert!(durable.is_done());
    sync_queue.close();
    thread.join().unwrap();
}

#[tokio::test]
async fn who_waits_before_the_commit_is_not_left_to_the_delay() {
    let sync_queue = sync_queue();
    let (early, late) = (
        Batch::synced_by(1, &sync_queue),
        Batch::synced_by(2, &sync_queue),
    );
    sync_queue.push(early, true);
    let waiter = tokio::spawn({
        let durable = late.durable();
        async move { durable.wait().await }
    });
    while sync_queue.awaited.load(Ordering::Relaxed) < 2 {
        tokio::task::yield_now().await;
    }
    let thread = std::thread::spawn({
        let sync_queue = Arc::clone(&sync_queue);
        move || sync_queue.run(|| Ok(()))
    });
    sync_queue.push(late, true);
    assert_eq!(waiter.await.unwrap(), Ok(()));
    sync_queue.close();
    thread.join().unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_takes_too_long_is_not_confirmed_and_may_still_happen() {
    let batch = Batch::synced_by(1, &sync_queue());
    let durable = batch.durable();
    let waiter = tokio::spawn({
        let durable = durable.clone();
        async move { durable.wait().await }
    });
    assert!(!durable.is_confirmed().await);
    assert!(!durable.is_confirmed().await, "asked again");
    batch.mark_durable();
    assert!(durable.is_confirmed().await);
    assert_eq!(waiter.await.unwrap(), Ok(()));
}

#[tokio::test]
async fn a_failed_sync_promises_nothing_ever_again() {
    let sync_queue = sync_queue();
    let (first, second) = (
        Batch::synced_by(1, &sync_queue),
        Batch::synced_by(2, &sync_queue),
    );
    let (one, two) = (first.durable(), second.durable());
    sync_queue.push(first, true);
    sync_queue.close();
    let mut answers = vec![Ok(()), Err(std::io::Error::other("disk"))];
    sync_queue.run(|| answers.pop().unwrap());
    assert_eq!(one.wait().await, Err(NotDurable));
    sync_queue.push(second, true);
    sync_queue.run(|| Ok(()));
    assert_eq!(two.wait().await, Err(NotDurable));
    assert!(sync_queue.is_broken() && two.is_lost());
}

#[test]
fn a_batch_that_wrote_nothing_needs_no_sync() {
    let sync_queue = sync_queue();
    let batch = Batch::synced_by(1, &sync_queue);
    let durable = batch.durable();
    sync_queue.push(batch, false);
    sync_queue.close();
    sync_queue.run(|| panic!("no sync is needed"));
    assert!(durable.is_done());
}
