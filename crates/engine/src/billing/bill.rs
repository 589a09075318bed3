//! Computes the bill of a call, a session or a task, however it ended.
//!
//! The bill is based on the upstream's usage report if that is plausible (N6), otherwise on our own count.

use std::collections::BTreeMap;
use std::sync::Arc;

use ledger::{Meter, Micro, PriceCard};
use store::{Basis, End, MeterText, PriceVersion};

use crate::billing::route_cost::RouteCost;
use crate::billing::usage_limits::UsageLimits;
use crate::metrics::registry::Metrics;

/// The charge of a call, and whether it is based on the upstream's report or on our own count.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Bill {
    pub(crate) meter: Meter,
    pub(crate) basis: Basis,
    pub(crate) charge: Micro,
    /// Whether the upstream should have reported this usage, but its report is missing or implausible.
    pub(crate) is_missing: bool,
    /// Whether the upstream's report cannot be read or is implausible.
    pub(crate) is_malformed: bool,
}

impl Bill {
    /// A bill based on the upstream's report. Logs an implausible report and returns `None`.
    pub(crate) fn reported(
        meter: Meter,
        price: &PriceCard,
        limits: &UsageLimits,
        model: &str,
    ) -> Option<Self> {
        match price.price(&meter) {
            Ok(charge) if limits.allow(&meter, without_tools(&meter, price, charge)) => {
                Some(Self {
                    meter,
                    basis: Basis::Reported,
                    charge,
                    is_missing: false,
                    is_malformed: false,
                })
            }
            Ok(_) => {
                tracing::error!(
                    model,
                    ?meter,
                    "reported usage is beyond what the model can do"
                );
                None
            }
            // A report that cannot be priced is not billed, because pricing its entry again must give the same amount
            // (V7).
            Err(error) => {
                tracing::error!(model, %error, "reported usage cannot be priced");
                None
            }
        }
    }

    /// How the hold is closed with this bill. `tokens` counts against the tokens per minute; `None` if the hold
    /// reserved none.
    pub(crate) fn end(
        &self,
        price_version: PriceVersion,
        tokens: Option<u64>,
        route_cost: Option<&RouteCost>,
    ) -> End {
        End::Settled {
            charge: self.charge,
            meter: MeterText::from(&self.meter),
            price_version,
            basis: self.basis,
            tokens,
            cost: route_cost.and_then(|cost| cost.of(&self.meter)),
        }
    }

    /// Counts missing and malformed reports and unpriced tools in the metrics. The store counts the charge.
    pub(crate) fn count(&self, model: &Arc<str>, price: &PriceCard, metrics: &Metrics) {
        if self.is_missing {
            metrics.usage_missing.inc();
        }
        if self.is_malformed {
            metrics.usage_malformed.inc();
        }
        for tool in price.unpriced_tools(&self.meter) {
            let calls = self.meter.tools.get(tool).copied().unwrap_or(0);
            metrics.unpriced_tool(model, tool, calls);
        }
    }
}

/// The charge without tool calls, which have a separate limit.
fn without_tools(meter: &Meter, price: &PriceCard, charge: Micro) -> Micro {
    if meter.tools.is_empty() {
        return charge;
    }
    let rest = Meter {
        tools: BTreeMap::new(),
        ..meter.clone()
    };
    price.price(&rest).unwrap_or(charge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_that_were_not_billed_are_counted() {
        let metrics = Metrics::new();
        let price: PriceCard = serde_json::from_str(r#"{"input":"1"}"#).unwrap();
        let bill = |is_missing, is_malformed| Bill {
            meter: Meter::default(),
            basis: Basis::Counted,
            charge: Micro::ZERO,
            is_missing,
            is_malformed,
        };
        for (is_missing, is_malformed, counted) in [
            (false, false, (0, 0)),
            (true, false, (1, 0)),
            (true, true, (2, 1)),
            (false, true, (2, 2)),
        ] {
            bill(is_missing, is_malformed).count(&"a/model".into(), &price, &metrics);
            let found = (metrics.usage_missing.get(), metrics.usage_malformed.get());
            assert_eq!(found, counted);
        }
    }

    #[test]
    fn only_a_plausible_report_is_billed() {
        let price: PriceCard = serde_json::from_str(r#"{"input":"1"}"#).unwrap();
        let limits = UsageLimits::new(100, Micro::new(1), Micro::ZERO);
        let input = |input| Meter {
            input,
            ..Meter::default()
        };
        let bill = Bill::reported(input(400), &price, &limits, "a/model").unwrap();
        assert_eq!(
            (bill.charge, bill.basis),
            (Micro::new(400), Basis::Reported)
        );
        assert!(Bill::reported(input(401), &price, &limits, "a/model").is_none());
        // This card has no price for output.
        let unpriced = Meter {
            output: 1,
            ..Meter::default()
        };
        assert!(Bill::reported(unpriced, &price, &limits, "a/model").is_none());
    }
}
