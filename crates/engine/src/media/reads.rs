//! Limits the number of concurrent readers of media, and the time that each may take.
//!
//! Reading media needs no key, so nothing else limits it. Every reader holds a file or a connection to the bucket, and
//! a piece of the file in memory.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use protocol::Failure;
use upstream::client_network;

use crate::failures::try_again_soon;

/// One client network may take the number of reader slots divided by this, and at least one slot.
const ADDRESS_SHARE: usize = 4;

#[derive(Debug, Default)]
pub(crate) struct MediaReads(Mutex<Readers>);

#[derive(Debug, Default)]
struct Readers {
    count: usize,
    by_network: HashMap<IpAddr, usize>,
}

/// The slot of one reader. Dropping it frees the slot.
#[derive(Debug)]
pub struct MediaRead {
    reads: Arc<MediaReads>,
    /// The network of the reader, if readers of its address are counted.
    from: Option<IpAddr>,
    until: Instant,
}

impl MediaReads {
    pub(super) fn enter(
        reads: &Arc<Self>,
        from: Option<IpAddr>,
        reads_max: usize,
        within: Duration,
    ) -> Result<MediaRead, Failure> {
        let mut readers = reads.0.lock();
        if readers.count >= reads_max {
            let message = "This node serves as many files as it may.";
            return Err(try_again_soon(message));
        }
        let from = from.map(client_network);
        if let Some(network) = from {
            let count = readers.by_network.entry(network).or_default();
            if *count >= (reads_max / ADDRESS_SHARE).max(1) {
                let message = "Too many files are read from this address at once.";
                return Err(Failure::rate_limit_exceeded(message).retry_soon());
            }
            *count += 1;
        }
        readers.count += 1;
        Ok(MediaRead {
            reads: Arc::clone(reads),
            from,
            until: Instant::now() + within,
        })
    }
}

impl MediaRead {
    /// Whether the reader's time is up.
    pub(super) fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }
}

impl Drop for MediaRead {
    fn drop(&mut self) {
        let mut readers = self.reads.0.lock();
        readers.count = readers.count.saturating_sub(1);
        let Some(network) = self.from else { return };
        if let Some(count) = readers.by_network.get_mut(&network) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                readers.by_network.remove(&network);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WITHIN: Duration = Duration::from_secs(1_800);

    fn address(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    #[test]
    fn readers_are_bounded_in_all_and_by_address() {
        let reads = Arc::default();
        let enter = |from| MediaReads::enter(&reads, from, 8, WITHIN);
        let status = |from| enter(from).unwrap_err().status();
        let mut inside = Vec::new();
        for last in [1, 1, 2, 2] {
            inside.push(enter(Some(address(last))).unwrap());
        }
        assert_eq!(status(Some(address(1))), 429);
        // `None` stands for a caller behind a proxy, whose address many callers share. Only the limit for all readers
        // applies.
        for _ in 0..4 {
            inside.push(enter(None).unwrap());
        }
        assert_eq!(status(Some(address(3))), 503);
        assert_eq!(status(None), 503);
        inside.remove(0);
        assert_eq!(status(Some(address(2))), 429);
        inside.push(enter(Some(address(1))).unwrap());
        inside.clear();
        let readers = reads.0.lock();
        assert_eq!((readers.count, readers.by_network.len()), (0, 0));
    }

    #[test]
    fn addresses_of_one_ipv6_subscriber_share_their_places() {
        let reads = Arc::default();
        let enter = |address: &str| MediaReads::enter(&reads, address.parse().ok(), 8, WITHIN);
        let _inside = ["2001:db8::1", "2001:db8::2"].map(|address| enter(address).unwrap());
        assert_eq!(enter("2001:db8::3").unwrap_err().status(), 429);
        assert!(enter("2001:db8:0:1::1").is_ok());
    }

    #[test]
    fn a_single_place_is_had_by_anybody() {
        let reads = Arc::default();
        let enter = || MediaReads::enter(&reads, Some(address(1)), 1, WITHIN);
        let first = enter().unwrap();
        assert_eq!(enter().unwrap_err().status(), 503);
        drop(first);
        drop(enter().unwrap());
    }

    #[test]
    fn a_reader_has_its_time() {
        let reads = Arc::default();
        let enter = |within| MediaReads::enter(&reads, None, 8, within).unwrap();
        assert!(!enter(WITHIN).is_over());
        assert!(enter(Duration::ZERO).is_over());
    }
}
