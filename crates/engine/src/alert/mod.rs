//! Alerts: detects problems and reports each once, to the webhooks whose rules ask for it (`docs/decisions/057`).
//!
//! No call waits for any of this. Each node reports its own state (`signals`), one node of a cluster compares all
//! reports with the open alerts (`checker`), and every node delivers alerts (`deliver`).

mod checker;
mod conditions;
mod decide;
mod deliver;
mod error_rate;
mod settings;
mod signals;
mod webhook;

pub use error_rate::{CallCounts, UnusualErrors, unusual_errors};
pub use settings::AlertSettings;
pub use webhook::{WebhookError, check_webhook, send_test};
