//! Requests that give a length beside a transfer encoding.
//!
//! The HTTP library takes the chunks for the truth and forgets the length. Whoever stands before us may
//! have done the opposite, and would see other requests than we do; so the heads are read along, and such a
//! request is refused (reliability 4, "framing").

const LENGTH: &[u8] = b"content-length:";
const ENCODING: &[u8] = b"transfer-encoding:";

/// What a connection has shown of the head that is being read.
#[derive(Debug, Default)]
pub(crate) struct Head {
    /// How the current line begins.
    line: [u8; ENCODING.len()],
    line_bytes: usize,
    place: Place,
    has_length: bool,
    has_encoding: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Place {
    #[default]
    Before,
    Inside,
    Behind,
}

impl Head {
    /// Reads on; what stands behind the head is left alone. Behind the end, a new head begins.
    pub(crate) fn read(&mut self, mut bytes: &[u8]) {
        if self.place == Place::Behind {
            *self = Self::default();
        }
        while self.place != Place::Behind {
            let Some(end) = memchr::memchr(b'\n', bytes) else {
                return self.keep(bytes);
            };
            self.keep(bytes.get(..end).unwrap_or_default());
            self.end_line();
            bytes = bytes.get(end + 1..).unwrap_or_default();
        }
    }

    /// Whether its message has two ends.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.has_length && self.has_encoding
    }

    fn keep(&mut self, bytes: &[u8]) {
        // Most lines are told from both by their first letter.
        let is_other =
            |byte: &u8| byte.is_ascii_alphabetic() && !matches!(byte | 0x20, b'c' | b't');
        let bytes = match bytes {
            [first, ..] if self.line_bytes == 0 && is_other(first) => std::slice::from_ref(first),
            _ => bytes,
        };
        let room = self.line.get_mut(self.line_bytes..).unwrap_or_default();
        let kept = room.len().min(bytes.len());
        for (place, byte) in room.iter_mut().zip(bytes) {
            *place = byte.to_ascii_lowercase();
        }
        self.line_bytes += kept;
    }

    fn end_line(&mut self) {
        let line = self.line.get(..self.line_bytes).unwrap_or_default();
        match (line, self.place) {
            // Empty lines may stand before a request.
            (b"" | b"\r", Place::Before) => {}
            (b"" | b"\r", _) => self.place = Place::Behind,
            _ => {
                self.place = Place::Inside;
                self.has_length |= line.starts_with(LENGTH);
                self.has_encoding |= line.starts_with(ENCODING);
            }
        }
        self.line_bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_with_both_is_doubtful_however_it_is_cut() {
        for (message, doubtful) in [
            ("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", false),
            (
                "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                false,
            ),
            (
                "POST / HTTP/1.1\r\ncontent-length: 5\r\nTRANSFER-ENCODING: chunked\r\n\r\n0\r\n\r\n",
                true,
            ),
            (
                "\r\nPOST / HTTP/1.1\nTransfer-Encoding: chunked\nA: b\nContent-Length:5\n\n",
                true,
            ),
            (
                "POST / HTTP/1.1\r\nX-Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
                false,
            ),
            // A line that only begins like an empty one ends no head.
            (
                "POST / HTTP/1.1\r\nContent-Length: 5\r\n\rTransfer: x\r\nTransfer-Encoding: chunked\r\n\r\n",
                true,
            ),
            // What stands in the body is no header.
            (
                "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nContent-Length: 5\r\n\r\n",
                false,
            ),
        ] {
            for cut in 0..=message.len() {
                let mut head = Head::default();
                head.read(&message.as_bytes()[..cut]);
                if head.place != Place::Behind {
                    head.read(&message.as_bytes()[cut..]);
                }
                assert_eq!(head.is_doubtful(), doubtful, "{message:?} cut at {cut}");
            }
        }
    }

    #[test]
    fn the_next_head_is_judged_by_itself() {
        let mut head = Head::default();
        head.read(b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n");
        head.read(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
        assert!(!head.is_doubtful());
    }
}
