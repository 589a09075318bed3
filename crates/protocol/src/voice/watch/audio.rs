//! Computes durations of audio with integers.

/// Ticks per second. It is a multiple of every sample rate of these protocols, also at two bytes
/// per sample.
pub(super) const TICKS_PER_SECOND: u64 = 28_224_000;
const TICKS_PER_MS: u64 = TICKS_PER_SECOND / 1000;

/// The encoding of audio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// A fixed number of bytes per second.
    Bytes { per_second: u64 },
    /// One packet, which contains its own duration.
    Opus,
}

impl Default for Format {
    /// 16 bits at 24 kHz.
    fn default() -> Self {
        Self::Bytes { per_second: 48_000 }
    }
}

impl Format {
    /// The duration of audio, in ticks.
    pub(super) fn ticks(self, audio: &[u8]) -> u64 {
        match self {
            Self::Bytes { per_second } => {
                bytes_ticks(u64::try_from(audio.len()).unwrap_or(u64::MAX), per_second)
            }
            Self::Opus => opus_ticks(audio),
        }
    }

    /// The duration of base64 audio, in ticks.
    pub(super) fn ticks_of_base64(self, text: &str) -> u64 {
        match self {
            Self::Bytes { per_second } => bytes_ticks(base64_bytes(text), per_second),
            Self::Opus => {
                let (first, known) = first_bytes(text);
                opus_ticks(first.get(..known).unwrap_or_default())
            }
        }
    }
}

fn bytes_ticks(bytes: u64, per_second: u64) -> u64 {
    let ticks = u128::from(bytes) * u128::from(TICKS_PER_SECOND);
    let ticks = ticks.div_ceil(u128::from(per_second.max(1)));
    u64::try_from(ticks).unwrap_or(u64::MAX)
}

/// The number of bytes that base64 decodes to. White space, control characters and padding do not
/// count.
pub(super) fn base64_bytes(text: &str) -> u64 {
    // This function reads every frame of audio. With a counter of one byte, the compiler can compare
    // sixteen bytes in one instruction.
    let no_signs = |block: &[u8]| -> u8 {
        let is_none = |byte: &u8| *byte <= b' ' || *byte == b'=';
        block.iter().map(|byte| u8::from(is_none(byte))).sum()
    };
    let blocks = text.as_bytes().chunks(usize::from(u8::MAX));
    let none: u64 = blocks.map(|block| u64::from(no_signs(block))).sum();
    let signs = u64::try_from(text.len()).unwrap_or(u64::MAX) - none;
    signs / 4 * 3 + signs % 4 * 3 / 4
}

/// Decodes the first three bytes, which hold the duration of an Opus packet, and returns how many
/// there are.
fn first_bytes(text: &str) -> ([u8; 3], usize) {
    let mut bits = 0u32;
    let mut signs = 0;
    for byte in text.bytes().filter(|it| !it.is_ascii_whitespace()) {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => break,
        };
        bits = bits << 6 | u32::from(value);
        signs += 1;
        if signs == 4 {
            break;
        }
    }
    bits <<= 6 * (4 - signs);
    let [_, first, second, third] = bits.to_be_bytes();
    let known = match signs {
        0 | 1 => 0,
        2 => 1,
        3 => 2,
        _ => 3,
    };
    ([first, second, third], known)
}

/// The duration of an Opus packet, from its first byte and the count of frames (RFC 6716, 3.1).
fn opus_ticks(packet: &[u8]) -> u64 {
    let Some(toc) = packet.first() else {
        return 0;
    };
    let config = toc >> 3;
    // In tenths of a millisecond.
    let table: [u64; 4] = match config {
        0..12 => [100, 200, 400, 600],
        12..16 => [100, 200, 100, 200],
        _ => [25, 50, 100, 200],
    };
    let frame = table.get(usize::from(config & 3)).copied().unwrap_or(200);
    let frames = match toc & 3 {
        0 => 1,
        1 | 2 => 2,
        _ => packet.get(1).map_or(1, |count| u64::from(count & 0x3f)),
    };
    frame * frames * TICKS_PER_MS / 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_seconds_at_every_rate() {
        for rate in [8000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000] {
            assert_eq!(bytes_ticks(rate * 2, rate * 2), TICKS_PER_SECOND, "{rate}");
            assert_eq!(TICKS_PER_SECOND % (rate * 2), 0, "{rate}");
        }
        assert_eq!(bytes_ticks(7, 7), TICKS_PER_SECOND);
        assert_eq!(bytes_ticks(u64::MAX, 0), u64::MAX);
    }

    #[test]
    fn base64_is_counted_without_decoding() {
        for (text, bytes) in [
            ("", 0),
            ("QQ==", 1),
            ("QUI=", 2),
            ("QUJD", 3),
            ("QUJDRA==", 4),
            ("QUJD\nRA==\n", 4),
            ("QQ", 1),
            ("QUI", 2),
            ("====", 0),
            (" \t\n\x0c\r=", 0),
        ] {
            assert_eq!(base64_bytes(text), bytes, "{text:?}");
        }
        let line = format!("{}\r\n", "QUJD".repeat(19));
        assert_eq!(base64_bytes(&line.repeat(1000)), 57_000);
        assert_eq!(base64_bytes(&"\n".repeat(1000)), 0);
    }

    #[test]
    fn the_duration_of_an_opus_packet_is_read() {
        let ms = |ms_tenths: u64| ms_tenths * TICKS_PER_MS / 10;
        for (packet, tenths) in [
            (&[][..], 0),
            (&[0b0000_0000][..], 100),
            (&[0b0000_1001], 400),
            (&[0b0001_1000], 600),
            (&[0b0110_0000], 100),
            (&[0b0110_1000], 200),
            (&[0b1000_0000], 25),
            (&[0b1111_1000], 200),
            (&[0b1111_1011, 3], 600),
            (&[0b1111_1011, 0b1100_0011], 600),
            (&[0b1111_1010, 9], 400),
        ] {
            assert_eq!(opus_ticks(packet), ms(tenths), "{packet:?}");
        }
        // 0xf8 0xff 0xfe, the silence that encoders send.
        assert_eq!(Format::Opus.ticks_of_base64("+P/+"), ms(200));
        assert_eq!(Format::Opus.ticks_of_base64("+AM="), ms(200));
        assert_eq!(Format::Opus.ticks_of_base64("+w\nM="), ms(600));
        assert_eq!(Format::Opus.ticks_of_base64(""), 0);
    }
}
