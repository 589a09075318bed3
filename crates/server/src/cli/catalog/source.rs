//! Reads a catalog from a file or a URL.

use std::time::Duration;

use upstream::{AddressPolicy, FetchLimits, Guarded, Timeouts};

use crate::cli::terminal::{CommandError, with_sources};
use crate::config::Config;

/// The size limit of a catalog, larger than any known one.
const BYTES_MAX: u64 = 64 << 20;
const FETCHED_WITHIN: Duration = Duration::from_secs(60);

/// Reads the text of a file or URL. A URL is fetched only if its address is public or `[outbound]` allows it.
pub(super) async fn read(place: &str, config: &Config) -> Result<String, CommandError> {
    let failed = |why: String| CommandError::message(format!("{place}: {why}"));
    if !place.starts_with("http://") && !place.starts_with("https://") {
        let size = std::fs::metadata(place).map_err(|error| failed(error.to_string()))?;
        if size.len() > BYTES_MAX {
            return Err(failed(format!("is larger than {BYTES_MAX} bytes")));
        }
        return std::fs::read_to_string(place).map_err(|error| failed(error.to_string()));
    }
    let policy = AddressPolicy {
        allow: config.outbound.allow.clone(),
        nat64: config.outbound.nat64,
        own_hosts: Vec::new(),
        listeners: Vec::new(),
    };
    let limits = FetchLimits {
        times: Timeouts {
            first_byte: FETCHED_WITHIN,
            idle: FETCHED_WITHIN,
            total: FETCHED_WITHIN,
            ..Timeouts::default()
        },
        bytes_max: BYTES_MAX,
    };
    let client = Guarded::new(policy);
    let fetched = async { client.get(place, None, limits).await?.body.collect().await };
    let body = fetched
        .await
        .map_err(|error| failed(with_sources(&error)))?;
    String::from_utf8(body.into()).map_err(|_| failed("is not text".to_owned()))
}
