//! The arithmetic of money: amounts, prices, estimates, wallets, keys and their limits.
//!
//! Everything here is a pure function of its arguments. The crate has no clock, socket, thread,
//! database or random source: `now` is an argument. The store runs these functions inside its
//! transaction and writes the result, so `SQLite` and `PostgreSQL` share the same arithmetic.
//!
//! Amounts are whole micro-credits in an `i64` ([`Micro`]), products are `i128`, and floats are not
//! used. Overflow is an error: nothing wraps and nothing is clamped.
//!
//! Where to start: [`PriceCard::price`] turns a [`Meter`] into a charge, which it rounds once;
//! [`hold_of`] does the same for the maximum usage of a call. [`admit()`], [`settle`] and
//! [`release`] change a [`Wallet`] and a [`Key`]. A session is charged in [`step()`]s.

mod admit;
mod balance;
mod bucket;
mod close;
mod decimal;
mod estimate;
mod key;
mod manual;
mod meter;
mod micro;
mod price;
mod rate_clock;
mod restore;
mod session;
mod time;
mod wallet;
mod window;

pub use admit::{Rates, Refusal, Reservation, admit, extend};
pub use balance::Balance;
pub use bucket::{Bucket, Rate, Wait};
pub use close::{release, settle, stop_counting};
pub use decimal::DecimalError;
pub use estimate::{TextBound, bound_meter, hold_of};
pub use key::Key;
pub use manual::{ManualError, ManualKind, UnknownManualKind};
pub use meter::Meter;
pub use micro::{Micro, Overflow};
pub use price::{
    CardFault, Exact, Line, Markup, Price, PriceCard, PriceError, PriceKey, PriceValue,
};
pub use rate_clock::{AdmitTime, RateClock};
pub use restore::{regrow, reopen};
pub use session::{BookedStep, Step, step};
pub use time::{DAY_MS, HOUR_MS, MINUTE_MS, UnixMs};
pub use wallet::{Delta, UnknownStatus, Wallet, WalletStatus};
pub use window::{Period, Window};
