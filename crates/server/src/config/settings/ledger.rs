//! `[ledger]`: how much money is held, and when it is durable.

use std::time::Duration;

use engine::Commit;
use ledger::Micro;

use crate::config::document::Section;
use crate::config::document::setting::{
    count, credits, flag, millis, millis_up_to, one_of, positive, settings,
};

settings! {
    /// When money is durable, and how much of it is held.
    pub struct Ledger in "ledger" {
        /// `before-answer` delays an answer until its hold survives a power cut. `behind` does not: a power
        /// cut may then lose the last milliseconds, but the ledger stays consistent.
        pub commit: Commit = one_of(
            "commit",
            &[("before-answer", Commit::BeforeAnswer), ("behind", Commit::Behind)],
        ),
        /// How long settlements are collected before they are written together. 0 writes each at once, and 100 is the
        /// maximum. Under load, while no call waits for them, they are collected ten times as long.
        pub gather: Duration = millis_up_to("gather_ms", 1, 100),
        /// The number of output tokens that a hold covers at a time; 0 covers the whole output limit of the call at
        /// once.
        pub output_reserve_tokens: u64 = count("output_reserve_tokens", 4_096),
        /// How far a wallet can fall below its credit line, in credits. A call is refused (402) if the open
        /// calls and this one, each at its highest possible cost, could take the wallet further
        /// (docs/decisions/023).
        pub debt_limit: Micro = credits("debt_limit", Micro::new(10_000_000)),
        /// Whether requests that offer a built-in tool without a price (`price.tools` of the model) are refused,
        /// instead of being served and counted in a metric. Sessions then take no built-in tools. Tools: `web_search`, `web_fetch`,
        /// `code_execution`, `file_search`, `image_generation`, `maps`, `mcp`, `x_search`; vendors' own names
        /// (`google_search`, `code_interpreter`) mean the same. Tools that we do not know are refused too.
        pub refuse_unpriced_tools: bool = flag("refuse_unpriced_tools", false),
        /// Whether realtime sessions are refused if their model has no `input` and `output` price for text
        /// tokens, instead of including text in the price of the minute.
        pub refuse_unpriced_text: bool = flag("refuse_unpriced_text", false),
        /// The maximum number of admissions that wait for the ledger. Further ones are refused.
        pub queue_max: usize = positive("queue_max", 4_096),
        /// How long an admission waits for the ledger before it is refused.
        pub queue_wait: Duration = millis("queue_wait_ms", 250),
    }
}
