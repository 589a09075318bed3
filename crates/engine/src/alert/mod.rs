//! Alerts: what is wrong is noticed once, and told to the webhooks that want to know (`docs/decisions/057`).
//!
//! Everything here runs beside calls. Each node tells what it sees of itself (`signals`); one node of a cluster compares
//! all of that with the open alerts (`watch`); any node delivers (`deliver`).

mod conditions;
mod decide;
mod deliver;
mod error_rate;
mod settings;
mod signals;
mod watch;
mod webhook;

pub use error_rate::{CallCounts, UnusualErrors, unusual_errors};
pub use settings::AlertSettings;
pub use webhook::{WebhookError, check_webhook, send_test};
