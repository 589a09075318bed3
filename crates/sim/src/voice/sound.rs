//! Creates tones in the audio formats of speech. As MP3, they are silent.

use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Codec {
    Mp3 { bit_rate: u32 },
    Wav,
    Pcm,
    Mulaw,
    Alaw,
}

impl Codec {
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Mp3 { .. } => "audio/mpeg",
            Self::Wav => "audio/wav",
            Self::Pcm => "audio/pcm",
            Self::Mulaw => "audio/basic",
            Self::Alaw => "audio/alaw",
        }
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.content_type())
    }
}

pub(super) fn tone(codec: Codec, rate: u32, pitch: u32, millis: u64) -> Vec<u8> {
    let samples = u64::from(rate) * millis / 1000;
    match codec {
        Codec::Mp3 { bit_rate } => mp3(rate, bit_rate, millis),
        Codec::Pcm => pcm(rate, pitch, samples),
        Codec::Wav => {
            let data = pcm(rate, pitch, samples);
            let mut wav = header(rate, data.len());
            wav.extend_from_slice(&data);
            wav
        }
        Codec::Mulaw => wave(rate, pitch, samples).map(mulaw).collect(),
        Codec::Alaw => wave(rate, pitch, samples).map(alaw).collect(),
    }
}

/// Samples of a triangle wave, which needs only integer arithmetic.
fn wave(rate: u32, pitch: u32, samples: u64) -> impl Iterator<Item = i16> {
    const PEAK: i64 = 8000;
    (0..samples).map(move |at| {
        let phase = (at * u64::from(pitch) * 4 * 1000 / u64::from(rate.max(1))) % 4000;
        let phase = i64::try_from(phase).unwrap_or_default();
        let level = match phase {
            0..1000 => phase,
            1000..3000 => 2000 - phase,
            _ => phase - 4000,
        };
        i16::try_from(level * PEAK / 1000).unwrap_or_default()
    })
}

fn pcm(rate: u32, pitch: u32, samples: u64) -> Vec<u8> {
    wave(rate, pitch, samples)
        .flat_map(i16::to_le_bytes)
        .collect()
}

/// The header of a WAV file with one 16-bit channel.
pub(super) fn header(rate: u32, data_bytes: usize) -> Vec<u8> {
    let data = u32::try_from(data_bytes).unwrap_or(u32::MAX);
    let mut out = Vec::with_capacity(44);
    out.extend_from_slice(b"RIFF");
    out.extend_from_slice(&data.saturating_add(36).to_le_bytes());
    out.extend_from_slice(b"WAVEfmt ");
    out.extend_from_slice(&16u32.to_le_bytes());
    out.extend_from_slice(&1u16.to_le_bytes());
    out.extend_from_slice(&1u16.to_le_bytes());
    out.extend_from_slice(&rate.to_le_bytes());
    out.extend_from_slice(&(rate * 2).to_le_bytes());
    out.extend_from_slice(&2u16.to_le_bytes());
    out.extend_from_slice(&16u16.to_le_bytes());
    out.extend_from_slice(b"data");
    out.extend_from_slice(&data.to_le_bytes());
    out
}

/// Creates frames of silence. All frames are complete, so that players accept the file.
fn mp3(rate: u32, bit_rate: u32, millis: u64) -> Vec<u8> {
    const FIRST: [u32; 14] = [
        32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320,
    ];
    const SECOND: [u32; 14] = [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];
    // The MPEG version that supports this rate, its table of bit rates, the index of the rate, and the samples per
    // frame.
    let (version, table, index, samples) = match rate {
        44_100 => (0xfb, FIRST, 0, 1152),
        48_000 => (0xfb, FIRST, 1, 1152),
        22_050 => (0xf3, SECOND, 0, 576),
        16_000 => (0xf3, SECOND, 2, 576),
        8_000 => (0xe3, SECOND, 2, 576),
        _ => (0xf3, SECOND, 1, 576),
    };
    let wanted = bit_rate / 1000;
    let place = table.iter().rposition(|it| *it <= wanted).unwrap_or(0);
    let kilobits = table.get(place).copied().unwrap_or(64);
    let bytes = samples / 8 * kilobits * 1000 / rate.max(1);
    let place = u8::try_from(place + 1).unwrap_or(1);
    let mut frame = vec![0xff, version, place << 4 | index << 2, 0xc0];
    frame.resize(usize::try_from(bytes).unwrap_or(417), 0);
    let frames = (u64::from(rate) * millis / 1000).div_ceil(u64::from(samples));
    frame.repeat(usize::try_from(frames).unwrap_or(0).max(1))
}

/// Encodes a sample as G.711 µ-law.
fn mulaw(sample: i16) -> u8 {
    const BIAS: i32 = 0x84;
    let sign = if sample < 0 { 0x80 } else { 0 };
    let level = i32::from(sample).abs().min(32_635) + BIAS;
    let exponent = (level >> 7).ilog2().min(7);
    let mantissa = (level >> (exponent + 3)) & 0x0f;
    let code = sign | (exponent << 4) | u32::try_from(mantissa).unwrap_or_default();
    !u8::try_from(code).unwrap_or_default()
}

/// Encodes a sample as G.711 A-law.
fn alaw(sample: i16) -> u8 {
    let sign = if sample < 0 { 0 } else { 0x80 };
    let level = i32::from(sample).abs().min(32_767) >> 4;
    let code = if level < 16 {
        u32::try_from(level).unwrap_or_default()
    } else {
        let exponent = (level >> 4).ilog2() + 1;
        let mantissa = (level >> (exponent - 1)) & 0x0f;
        exponent << 4 | u32::try_from(mantissa).unwrap_or_default()
    };
    (u8::try_from(code & 0x7f).unwrap_or_default() | sign) ^ 0x55
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_tone_follows_its_time() {
        for (codec, rate, millis, bytes) in [
            (Codec::Pcm, 24_000, 500, 24_000),
            (Codec::Wav, 16_000, 250, 44 + 8_000),
            (Codec::Mulaw, 8_000, 1000, 8_000),
            (Codec::Alaw, 8_000, 10, 80),
            // 21 frames, each of 24 ms and 384 bytes.
            (Codec::Mp3 { bit_rate: 128_000 }, 24_000, 500, 21 * 384),
        ] {
            assert_eq!(tone(codec, rate, 440, millis).len(), bytes, "{codec}");
        }
    }

    #[test]
    fn silence_and_peaks_are_coded_as_the_tables_say() {
        for (sample, code) in [(0, 0xff), (32_124, 0x80), (-32_124, 0x00), (-1, 0x7f)] {
            assert_eq!(mulaw(sample), code, "{sample}");
        }
        for (sample, code) in [(0, 0xd5), (32_256, 0xaa), (-32_256, 0x2a)] {
            assert_eq!(alaw(sample), code, "{sample}");
        }
    }
}
