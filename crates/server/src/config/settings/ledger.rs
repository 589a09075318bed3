//! How money is held and made durable.

use std::time::Duration;

use engine::Commit;
use ledger::Micro;
use toml::de::DeValue;

use crate::config::document::{Section, value};

/// `[ledger]`: when money is durable and how much of it is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ledger {
    /// Whether an answer waits for its hold to be durable.
    pub commit: Commit,
    /// How long settlements wait for company before they are written; 0 writes at once.
    pub gather: Duration,
    /// How much of a call's output bound is held at a time; 0 holds all of it.
    pub output_reserve_tokens: u64,
    /// How far open calls may take a wallet below its credit line, each at the most it may cost.
    pub debt_limit: Micro,
    pub refuse_unpriced_tools: bool,
    pub refuse_unpriced_text: bool,
    /// How many admissions may wait for the writer.
    pub queue_max: usize,
    /// How long an admission waits for the writer before it is refused.
    pub queue_wait: Duration,
}

impl Default for Ledger {
    fn default() -> Self {
        Self {
            commit: Commit::BeforeAnswer,
            gather: Duration::from_millis(1),
            output_reserve_tokens: 4_096,
            debt_limit: store::Settings::DEBT_LIMIT,
            refuse_unpriced_tools: false,
            refuse_unpriced_text: false,
            queue_max: 4_096,
            queue_wait: Duration::from_millis(250),
        }
    }
}

impl Ledger {
    pub(crate) fn read(mut section: Section<'_, '_, '_>) -> Self {
        let mut out = Self::default();
        section.set("commit", &mut out.commit, |raw| {
            value::one_of(
                raw,
                &[
                    ("before-answer", Commit::BeforeAnswer),
                    ("behind", Commit::Behind),
                ],
            )
        });
        section.set("gather_ms", &mut out.gather, gather);
        section.set(
            "output_reserve_tokens",
            &mut out.output_reserve_tokens,
            value::count,
        );
        section.set("debt_limit", &mut out.debt_limit, value::credits);
        section.flag("refuse_unpriced_tools", &mut out.refuse_unpriced_tools);
        section.flag("refuse_unpriced_text", &mut out.refuse_unpriced_text);
        section.positive("queue_max", &mut out.queue_max);
        section.millis("queue_wait_ms", &mut out.queue_wait);
        section.end();
        out
    }
}

/// Every settlement waits this long, so a large value is a mistake.
fn gather(raw: &DeValue<'_>) -> Result<Duration, String> {
    const GATHER_MAX: Duration = Duration::from_millis(100);
    match value::millis_or_zero(raw)? {
        long if long > GATHER_MAX => Err("must be at most 100".to_owned()),
        time => Ok(time),
    }
}
