//! What a call may use, as it is held before the call is made.

use ledger::{Ask, Bound, Meter, PriceCard, PriceError};
use protocol::Profile;
use protocol::native::Head;

/// The bounds of one call.
#[derive(Debug)]
pub(crate) struct Estimate {
    /// What is held for at first.
    pub(crate) reserved: Meter,
    /// Output tokens beyond which none can come, so that no hold needs to cover more.
    pub(crate) output_bound: u64,
}

impl Estimate {
    /// A text call: its input as counted, and output up to `reserve_tokens` at first.
    pub(crate) fn text(head: &Head, profile: &Profile, reserve_tokens: u64) -> Self {
        let bound = Bound {
            input_tokens: head.input_tokens,
            // A caller may ask for more than the model can give, never get it.
            output_tokens_max: [head.output_tokens_max, most_output(profile)]
                .into_iter()
                .flatten()
                .min(),
            choices: head.choices,
        };
        Self {
            reserved: ledger::bound_meter(&bound, reserve_tokens),
            output_bound: ledger::bound_meter(&bound, 0).output,
        }
    }

    /// What the ledger is asked for.
    pub(crate) fn ask(&self, price: &PriceCard) -> Result<Ask, PriceError> {
        let tokens = self.reserved.input_total();
        Ok(Ask {
            hold: ledger::hold_of(price, &self.reserved)?,
            tokens: tokens.saturating_add(self.reserved.output_total()),
            counts: true,
        })
    }
}

/// The most a model can put out; its whole context where nothing closer is known.
fn most_output(profile: &Profile) -> Option<u64> {
    profile.max_output_tokens.or(profile.context_tokens)
}
