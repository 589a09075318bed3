//! Reads a stream a little longer after its client has left, to learn the usage.

use protocol::ByteQueue;
use protocol::native::AnswerSummary;
use tokio::time::timeout;

use crate::call::admission::Admission;
use crate::call::record::ClientOutcome;
use crate::call::stream_source::{Growth, StreamSource};

/// The maximum number of bytes that are read after the client has left. Bytes that are kept until an event or a whole
/// answer is complete do not count, because the usage report is at the end.
const DRAIN_BYTES_MAX: usize = 256 << 10;

/// Reads the rest of a stream for its usage report. The hold keeps growing with the output; if it cannot grow, reading
/// stops.
pub(crate) async fn drain(
    mut source: StreamSource,
    mut admission: Box<Admission>,
    growing: Option<Growth>,
) {
    let drain_time_left = admission.drain_time_left();
    // If the drain time is zero, the call to the upstream is cancelled immediately, even if it has sent more.
    if drain_time_left.is_zero() {
        let gone = ClientOutcome::client_gone();
        return settle_grown(admission, growing, source.translator.summary(), &gone).await;
    }
    let mut unread = ByteQueue::new();
    let mut read_bytes = 0;
    let _ = timeout(drain_time_left, async {
        if let Some(growing) = growing {
            match growing.await {
                Ok(()) => admission.growth_granted(),
                Err(_) => return admission.growth_refused(),
            }
        }
        loop {
            let parsed = match source.upstream.next().await {
                Some(Ok(chunk)) => {
                    read_bytes += chunk.len();
                    source.translator.push(chunk, &mut unread)
                }
                Some(Err(_)) => break,
                // If a stream has no end mark, only its end shows which usage report was the last.
                None => {
                    let _ = source.translator.end(&mut unread);
                    break;
                }
            };
            while unread.pop().is_some() {}
            if admission.grow(source.translator.summary()).await.is_err() {
                break;
            }
            let read_events = read_bytes.saturating_sub(source.translator.held_bytes());
            let is_over = source.translator.summary().ended || read_events > DRAIN_BYTES_MAX;
            if parsed.is_err() || is_over || !source.charge(&unread) {
                break;
            }
        }
    })
    .await;
    let gone = ClientOutcome::client_gone();
    settle_grown(admission, None, source.translator.summary(), &gone).await;
}

/// Settles a call whose client no longer reads. If our own count exceeds the hold, the hold grows first, because the
/// charge is capped at the hold.
pub(crate) async fn settle_grown(
    mut admission: Box<Admission>,
    growing: Option<Growth>,
    summary: &AnswerSummary,
    outcome: &ClientOutcome,
) {
    if let Some(growing) = growing {
        match growing.await {
            Ok(()) => admission.growth_granted(),
            Err(_) => admission.growth_refused(),
        }
    }
    if admission.is_undercharged(summary) {
        // If the ledger refuses, the charge is capped at the hold.
        let _ = admission.grow(summary).await;
    }
    admission.settle(summary, outcome);
}
