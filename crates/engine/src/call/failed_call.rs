//! Calls that get no answer, and the errors for refused admissions.

use std::time::Duration;

use ledger::{PriceError, Rates, Refusal};
use protocol::Failure;
use store::AdmitError;

use crate::catalog::Model;
use crate::failures::try_again_soon;

/// A call that gets no answer, and its error.
#[derive(Debug)]
pub struct FailedCall {
    pub failure: Failure,
    /// The state of the key's rate limits, if the ledger was asked for a hold.
    pub rates: Option<Box<Rates>>,
}

impl From<Failure> for FailedCall {
    fn from(failure: Failure) -> Self {
        Self {
            failure,
            rates: None,
        }
    }
}

impl From<&AdmitError> for FailedCall {
    fn from(error: &AdmitError) -> Self {
        Self {
            failure: refusal(error),
            rates: error.rates().map(Box::new),
        }
    }
}

impl FailedCall {
    pub(crate) fn admitted(failure: Failure, rates: Rates) -> Self {
        Self {
            failure,
            rates: Some(Box::new(rates)),
        }
    }
}

/// The failure for a call whose price cannot be computed.
pub(crate) fn unpriceable(model: &Model, error: &PriceError) -> Failure {
    match error {
        // The price does not fit an amount, so no wallet can pay it.
        PriceError::Overflow(_) => Failure::insufficient_quota(),
        PriceError::Unpriced(_) | PriceError::Card { .. } => {
            tracing::error!(model = %model.id, %error, "a call cannot be priced");
            model.unreachable()
        }
    }
}

/// The failure that the client gets when the ledger refuses a hold.
pub(crate) fn refusal(error: &AdmitError) -> Failure {
    match error {
        AdmitError::Busy => try_again_soon("The ledger is busy; try again soon."),
        AdmitError::Unavailable => try_again_soon("The ledger does not answer now."),
        AdmitError::Refused { refusal, .. } => match *refusal {
            Refusal::KeyDisabled | Refusal::KeyExpired => Failure::invalid_api_key(),
            Refusal::WalletDisabled => Failure::wallet_disabled(),
            Refusal::InsufficientQuota => Failure::insufficient_quota(),
            Refusal::DebtLimitReached => Failure::insufficient_for_worst_case(),
            Refusal::KeyLimitReached => Failure::key_limit_reached(),
            Refusal::RequestRate { retry_after_ms } => {
                Failure::rate_limit_exceeded("The key's requests per minute are used up.")
                    .retry_after(Duration::from_millis(retry_after_ms))
            }
            Refusal::TokenRate {
                retry_after_ms: Some(ms),
            } => Failure::rate_limit_exceeded("The key's tokens per minute are used up.")
                .retry_after(Duration::from_millis(ms)),
            // Waiting does not help, because the request is larger than the whole bucket.
            Refusal::TokenRate {
                retry_after_ms: None,
            } => Failure::rate_limit_exceeded(
                "The request is larger than the key's tokens per minute allow at all.",
            )
            .should_retry(false),
            Refusal::Concurrency => Failure::concurrency_limit_exceeded(),
        },
    }
}
