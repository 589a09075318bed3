//! JSON strings: reading what stands between the quotes, and writing our own.

/// Writes `text` as a JSON string.
///
/// U+0085, U+2028 and U+2029 are escaped too: some clients split event-stream lines there.
pub fn write_string(out: &mut Vec<u8>, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    for c in text.chars() {
        match c {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' => {
                out.extend_from_slice(b"\\u");
                let code = u32::from(c);
                for shift in [12, 8, 4, 0] {
                    let digit = (code >> shift) & 0xf;
                    out.extend(HEX.get(digit as usize));
                }
            }
            c => {
                let mut buffer = [0; 4];
                out.extend_from_slice(c.encode_utf8(&mut buffer).as_bytes());
            }
        }
    }
    out.push(b'"');
}
