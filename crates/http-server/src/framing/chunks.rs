//! Finds the end of a chunked body.

/// The part of a chunked body to which the next byte belongs.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChunkedBody {
    /// The first digit of a size.
    #[default]
    Start,
    Size(u64),
    /// Blanks between the size and an extension or the end of the line.
    Blank(u64),
    Extension(u64),
    SizeLf(u64),
    Data {
        left: u64,
    },
    DataCr,
    DataLf,
    /// The first byte of a trailer, or of the empty line that ends the body.
    LastLine,
    Trailer,
    TrailerLf,
    EndLf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The body continues.
    Inside,
    /// The body has ended.
    End,
    /// The bytes are not a chunked body.
    Unreadable,
}

impl ChunkedBody {
    /// Reads one byte of the framing, or as much of a chunk's data as `bytes` has. Returns the bytes that are left.
    pub(super) fn read<'a>(&mut self, bytes: &'a [u8]) -> (Step, &'a [u8]) {
        if let Self::Data { left } = self {
            let count = bytes
                .len()
                .min(usize::try_from(*left).unwrap_or(usize::MAX));
            *left -= count as u64;
            if *left == 0 {
                *self = Self::DataCr;
            }
            return (Step::Inside, bytes.get(count..).unwrap_or_default());
        }
        let Some((byte, rest)) = bytes.split_first() else {
            return (Step::Inside, bytes);
        };
        if (*self, *byte) == (Self::EndLf, b'\n') {
            return (Step::End, rest);
        }
        let Some(next) = self.next(*byte) else {
            return (Step::Unreadable, rest);
        };
        *self = next;
        (Step::Inside, rest)
    }

    /// The state after this byte; `None` if the byte is not allowed here.
    fn next(self, byte: u8) -> Option<Self> {
        let next = match (self, byte) {
            (Self::Start, _) => Self::Size(digit(byte)?),
            (Self::Size(size) | Self::Blank(size), b' ' | b'\t') => Self::Blank(size),
            (Self::Size(size) | Self::Blank(size), b';') => Self::Extension(size),
            (Self::Size(size) | Self::Blank(size) | Self::Extension(size), b'\r') => {
                Self::SizeLf(size)
            }
            (Self::Size(size), _) => Self::Size(size.checked_mul(16)?.checked_add(digit(byte)?)?),
            (Self::SizeLf(0) | Self::TrailerLf, b'\n') => Self::LastLine,
            (Self::SizeLf(left), b'\n') => Self::Data { left },
            (Self::DataCr, b'\r') => Self::DataLf,
            (Self::DataLf, b'\n') => Self::Start,
            (Self::LastLine, b'\r') => Self::EndLf,
            (Self::Trailer, b'\r') => Self::TrailerLf,
            // Some parsers accept a bare line feed as the end of the line, so it is refused.
            (Self::Extension(_) | Self::LastLine | Self::Trailer, b'\n') => return None,
            (Self::Extension(size), _) => Self::Extension(size),
            (Self::LastLine | Self::Trailer, _) => Self::Trailer,
            _ => return None,
        };
        Some(next)
    }
}

fn digit(byte: u8) -> Option<u64> {
    char::from(byte).to_digit(16).map(u64::from)
}
