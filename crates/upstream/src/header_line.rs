//! Writes the header lines of requests.

use http::HeaderValue;

pub(crate) const USER_AGENT: &str = concat!("tollgate/", env!("CARGO_PKG_VERSION"));

pub(crate) fn write_line(head: &mut Vec<u8>, name: &str, value: &HeaderValue) {
    for part in [name.as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
        head.extend_from_slice(part);
    }
}
