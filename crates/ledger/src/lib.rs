//! Money in, money out: amounts, prices, estimates, wallets, keys and their limits.
//!
//! Everything here is a pure function of its arguments. The crate knows no clock, socket, thread,
//! database or random source: `now` is an argument, and a store runs these transitions inside its
//! transaction and writes the result, so that every database shares one arithmetic.
//!
//! Amounts are whole micro-credits in an `i64` ([`Micro`]), products are `i128`, and no float
//! touches either. What does not fit is an error: nothing wraps and nothing is clamped.
//!
//! Where to start: [`PriceCard::price`] turns a [`Meter`] into a charge with the only rounding
//! there is; [`hold`] does the same for the most a call may use; [`admit()`] and its ends
//! ([`settle`], [`release`]) move a [`Wallet`] and a [`Key`]; a session is charged in [`step()`]s.

mod admit;
mod balance;
mod bucket;
mod close;
mod decimal;
mod estimate;
mod key;
mod meter;
mod micro;
mod price;
mod rate_clock;
mod session;
mod time;
mod wallet;

pub use admit::{Ask, Rates, Refusal, admit, extend};
pub use balance::Balance;
pub use bucket::{Bucket, Rate, Wait};
pub use close::{regrow, release, reopen, settle, stop_counting};
pub use decimal::DecimalError;
pub use estimate::{Bound, bound_meter, hold, hold_of, tokens};
pub use key::Key;
pub use meter::Meter;
pub use micro::{Micro, Overflow};
pub use price::{CardFault, Exact, Line, Price, PriceCard, PriceError, PriceKey, PriceValue};
pub use rate_clock::{AdmitTime, RateClock};
pub use session::{Step, Stepped, step};
pub use time::UnixMs;
pub use wallet::{Delta, UnknownStatus, Wallet, WalletStatus};
