//! Extends the hold of a call as its output grows, and the hold of a session step by step.

use ledger::{Meter, Micro, Reservation, Step};
use protocol::ToolCalls;
use protocol::native::AnswerSummary;
use store::{AdmitError, Extend, SessionStep};

use super::{Admission, PendingGrowth};
use crate::billing::estimate::reserve_tools;
use crate::billing::metering::Metering;
use crate::clock;

/// The number of tokens by which our count may be too high, in addition to a share of the hold.
const SLACK_TOKENS: u64 = 16;
/// The step by which a hold grows if the settings define none.
const OUTPUT_STEP_TOKENS: u64 = 4_096;

impl Admission {
    /// Whether the output is close to the limit of the hold, so that the hold should grow.
    pub(crate) fn wants_more(&self, summary: &AnswerSummary) -> bool {
        let ahead = self
            .observed_output(summary)
            .saturating_add(self.output_step() / 4);
        self.reserved_output < self.output_bound && ahead >= self.reserved_output
            || self.is_uncovered(summary)
            || self.wants_more_tools(summary)
    }

    /// Whether the output exceeds what the hold covers. A small excess is tolerated: our own count may be slightly too
    /// high, and an answer that respects its limit must not need a larger hold.
    pub(crate) fn is_uncovered(&self, summary: &AnswerSummary) -> bool {
        let slack = (self.reserved_output / 4).min(self.output_step() / 4);
        let covered = self.reserved_output.saturating_add(slack + SLACK_TOKENS);
        self.output_bound > 0 && self.observed_output(summary) > covered
    }

    /// The number of output tokens so far: our own count, or an interim report of the upstream, which includes
    /// reasoning that is not shown. The report counts only up to the bound.
    fn observed_output(&self, summary: &AnswerSummary) -> u64 {
        let reported = summary
            .interim_usage
            .map_or(0, |usage| usage.output_total());
        let counted = self.metering.observed_output(summary);
        counted.max(reported.min(self.output_bound))
    }

    /// The number of output tokens by which the hold grows in one step.
    fn output_step(&self) -> u64 {
        match self.engine().settings.output_reserve_tokens {
            // The first hold covers the whole bound. Output beyond the bound is covered in steps.
            0 => OUTPUT_STEP_TOKENS,
            step => step,
        }
    }

    /// Extends the hold if the output requires it. An error means that the hold was not extended.
    pub(crate) async fn grow(&mut self, summary: &AnswerSummary) -> Result<(), AdmitError> {
        if !self.wants_more(summary) {
            return Ok(());
        }
        let Some(step) = self.next_step(summary) else {
            return Ok(());
        };
        let grown = self.engine().store.clone().extend(step).await;
        match grown {
            Ok(_) => self.growth_granted(),
            Err(_) => self.growth_refused(),
        }
        grown.map(drop)
    }

    /// Whether a complete answer without a usage report has more output than the hold covers. The charge of such an
    /// answer is capped at the hold, so the hold must grow before the settlement. Up to the bound, every counted token
    /// is charged. Beyond it, a small excess is ignored, because our count may be slightly too high.
    pub(crate) fn is_undercharged(&self, summary: &AnswerSummary) -> bool {
        let within_bound = self.observed_output(summary).min(self.output_bound);
        summary.report().is_none()
            && (self.reserved_output < within_bound || self.is_uncovered(summary))
    }

    fn wants_more_tools(&self, summary: &AnswerSummary) -> bool {
        let uncovered = |(tool, calls)| calls > self.reserved_tools.get(tool);
        self.model.price.prices_tools() && summary.tools.iter().any(uncovered)
    }

    /// The next extension of the hold: one step of output and the tools that were used, priced as at admission.
    pub(crate) fn next_step(&mut self, summary: &AnswerSummary) -> Option<Extend> {
        let step = self.output_step();
        let observed = self.observed_output(summary);
        let mut output_target = self.reserved_output.max(observed).checked_add(step)?;
        if observed <= self.output_bound {
            output_target = output_target
                .min(self.output_bound)
                .max(self.reserved_output);
        }
        let tokens = output_target - self.reserved_output;
        let mut tools = self.reserved_tools;
        tools.raise(&summary.tools);
        let price = |output: u64, tools: &ToolCalls| {
            let mut meter = Meter {
                output,
                ..self.reserved_input.clone()
            };
            reserve_tools(&mut meter, &self.model.price, tools);
            ledger::hold_of(&self.model.price, &meter).ok()
        };
        // Only the difference between two prices is added, because the hold already contains the input and the
        // rounding.
        let now = price(self.reserved_output, &self.reserved_tools)?;
        let output = self.reserved_output.checked_add(tokens)?;
        let dearer = price(output, &tools)?.checked_sub(now)?;
        let from_surplus = dearer.min(self.surplus);
        // The exposure already included the output, but not the tools.
        let of_output = price(output, &self.reserved_tools)?.checked_sub(now)?;
        let more = Reservation {
            hold: dearer.checked_sub(from_surplus)?,
            exposure: dearer.checked_sub(of_output)?,
            tokens,
            counts_in_flight: self.held.counts_in_flight,
        };
        self.growing = Some(PendingGrowth {
            more,
            from_surplus,
            tools,
        });
        Some(Extend {
            hold: self.hold,
            more,
            now: clock::now(),
        })
    }

    /// Sets the usage of a session so far. The session is settled on this usage, however it ends.
    pub(crate) fn set_session_usage(&mut self, meter: Meter) {
        self.metering = Metering::Session(Box::new(meter));
    }

    pub(crate) fn covers(&self, meter: &Meter) -> bool {
        let price = self.model.price.price(meter);
        price.is_ok_and(|price| price <= self.held.hold)
    }

    /// The next step of a session: books the usage so far and extends the hold to `wanted`, or at least to `least`.
    /// `None` if the amounts do not fit.
    pub(crate) fn step(
        &mut self,
        used: &Meter,
        least: &Meter,
        wanted: &Meter,
    ) -> Option<SessionStep> {
        let price = |meter: &Meter| self.model.price.price(meter).ok();
        let further = self.held.hold.checked_add(Micro::new(1))?;
        let least = price(least)?.max(further);
        let step = Step {
            used: price(used)?,
            wanted: price(wanted)?.max(least),
            least,
        };
        let more = Reservation {
            hold: step.wanted.checked_sub(self.held.hold)?,
            exposure: Micro::ZERO,
            tokens: 0,
            counts_in_flight: self.held.counts_in_flight,
        };
        self.growing = Some(PendingGrowth {
            more,
            from_surplus: Micro::ZERO,
            tools: self.reserved_tools,
        });
        Some(SessionStep {
            hold: self.hold,
            step,
            meter: used.into(),
            cost: self.cost(used),
            price_version: self.model.price_version,
            now: clock::now(),
        })
    }

    /// Sets the total amount that a session's hold covers, counted from the start of the session.
    pub(crate) fn set_session_hold(&mut self, hold: Micro) {
        self.growing = None;
        self.held.hold = hold;
    }

    pub(crate) fn growth_granted(&mut self) {
        if let Some(PendingGrowth {
            more,
            from_surplus,
            tools,
        }) = self.growing.take()
        {
            self.surplus = self.surplus.checked_sub(from_surplus).unwrap_or_default();
            self.reserved_output = self.reserved_output.saturating_add(more.tokens);
            self.reserved_tools = tools;
            self.held = self.held.extended(&more).unwrap_or(self.held);
        }
    }

    pub(crate) fn growth_refused(&mut self) {
        self.growing = None;
    }
}
