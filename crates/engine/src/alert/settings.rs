//! Settings of alerts.

use std::time::Duration;

/// The settings of alerts.
#[derive(Debug, Clone)]
pub struct AlertSettings {
    /// How often conditions are checked.
    pub check_every: Duration,
    /// The pauses before the second and later attempts at a delivery.
    pub retry: Vec<Duration>,
}

impl Default for AlertSettings {
    fn default() -> Self {
        Self {
            check_every: Duration::from_secs(5),
            retry: [10, 60, 600, 3_600, 21_600]
                .map(Duration::from_secs)
                .to_vec(),
        }
    }
}
