//! Reads and writes digests as hexadecimal digits.

use std::fmt::Write as _;

use store::Digest;

/// The bytes in hexadecimal, in lower case.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut digits, byte| {
        // Writing into a String cannot fail.
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

/// Parses a digest of 64 hexadecimal digits. `None` for any other text.
pub(super) fn digest(digits: &str) -> Option<Digest> {
    let digits = digits.as_bytes();
    if digits.len() != 64 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(Digest::new(bytes))
}
