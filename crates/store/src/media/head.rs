//! The metadata of a medium.

use std::time::Duration;

use ledger::UnixMs;
use object_store::ObjectMeta;

/// A medium that exists and has not expired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediaHead {
    pub bytes: u64,
    /// The quoted `etag` value, which changes with the bytes.
    pub etag: String,
    pub kept_at: UnixMs,
    pub expires_at: UnixMs,
    /// The storage's own tag, for requesting exactly these bytes again.
    pub(super) mark: Option<String>,
}

impl MediaHead {
    pub(super) fn of(meta: &ObjectMeta, expiry: Duration) -> Self {
        let kept_at = UnixMs::new(meta.last_modified.timestamp_millis());
        let etag = match &meta.e_tag {
            Some(mark) if mark.ends_with('"') => mark.clone(),
            Some(mark) => format!("\"{mark}\""),
            None => format!("\"{:x}-{:x}\"", kept_at.get(), meta.size),
        };
        Self {
            bytes: meta.size,
            etag,
            kept_at,
            expires_at: kept_at.plus_ms(millis(expiry)),
            mark: meta.e_tag.clone(),
        }
    }
}

pub(super) fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
