//! An upstream's answer about a task, charged to the node's memory because it may contain the video itself.

use bytes::Bytes;
use protocol::video::{Delivery, Source};
use upstream::Body;

use crate::call::collect_body::{CollectError, collect_body};
use crate::memory_budget::{FREE_BYTES, MemoryBudget, MemoryShare};

/// A whole answer. Parsing it copies its strings, including a video in base64, so a large answer is charged twice.
#[derive(Debug)]
pub(super) struct PollAnswer {
    body: Bytes,
    copies: MemoryShare,
}

impl PollAnswer {
    pub(super) async fn collect_body(
        body: Body,
        bytes_max: usize,
        budget: &MemoryBudget,
    ) -> Result<Self, CollectError> {
        Self::charged(collect_body(body, bytes_max, budget).await?, budget)
    }

    fn charged(body: Bytes, budget: &MemoryBudget) -> Result<Self, CollectError> {
        let bytes = if body.len() > FREE_BYTES {
            body.len()
        } else {
            0
        };
        let copies = budget.take(bytes).ok_or(CollectError::NoMemory)?;
        Ok(Self { body, copies })
    }

    pub(super) fn body(&self) -> &[u8] {
        &self.body
    }

    /// Drops the answer. The videos that a delivery took from it stay charged as long as they exist.
    pub(super) fn deliver(mut self, delivery: &mut Delivery) {
        for medium in &mut delivery.media {
            if let Source::Base64(text) = &mut medium.source {
                let share = self.copies.split(text.len());
                *text = share.charge(std::mem::take(text));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use protocol::video::{MediaKind, Medium};

    use super::*;

    const LARGE: usize = FREE_BYTES + 1;

    fn delivery(text: &[u8]) -> Delivery {
        Delivery {
            facts: String::new(),
            media: vec![Medium {
                kind: MediaKind::Mp4,
                source: Source::Base64(Bytes::copy_from_slice(text)),
                is_optional: false,
            }],
        }
    }

    #[test]
    fn a_film_in_an_answer_is_charged_until_it_is_gone() {
        let budget = MemoryBudget::new(LARGE);
        let answer = PollAnswer::charged(Bytes::from(vec![b'A'; LARGE]), &budget).unwrap();
        assert!(budget.take(1).is_none());
        let mut delivery = delivery(&answer.body()[..LARGE - 10]);
        answer.deliver(&mut delivery);
        assert!(budget.take(10).is_some());
        assert!(budget.take(11).is_none());
        drop(delivery);
        assert!(budget.take(LARGE).is_some());
    }

    #[test]
    fn an_answer_that_cannot_be_read_within_the_memory_is_not_read() {
        let budget = MemoryBudget::new(LARGE - 1);
        let answer = PollAnswer::charged(Bytes::from(vec![b'A'; LARGE]), &budget);
        assert!(matches!(answer, Err(CollectError::NoMemory)));
        assert!(PollAnswer::charged(Bytes::from(vec![b'A'; FREE_BYTES]), &budget).is_ok());
        assert!(budget.take(LARGE - 1).is_some());
    }
}
