//! Pictures and forms for tests, produced without the gateway's code.

use serde_json::Value;
use sim::raster::{self, Format, Raster, Rgba};

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(crate) fn base64(bytes: &[u8]) -> String {
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let sign = ALPHABET[(bits >> (18 - 6 * at) & 63) as usize];
            text.push(if at <= group.len() {
                char::from(sign)
            } else {
                '='
            });
        }
    }
    text
}

pub(crate) fn bytes_of(base64: &Value) -> Vec<u8> {
    let mut bits = 0_u32;
    let mut pending = 0;
    let mut bytes = Vec::new();
    let text = base64.as_str().expect("base64");
    for sign in text.trim_end_matches('=').bytes() {
        let value = ALPHABET.iter().position(|it| *it == sign).unwrap();
        bits = bits << 6 | u32::try_from(value).unwrap();
        pending += 6;
        if pending >= 8 {
            pending -= 8;
            bytes.push((bits >> pending).to_le_bytes()[0]);
        }
    }
    bytes
}

pub(crate) fn decoded(bytes: &[u8]) -> Raster {
    raster::decode(bytes).unwrap()
}

pub(crate) fn encoded(picture: &Raster) -> Vec<u8> {
    raster::encode(picture, Format::Png, 100)
}

pub(crate) fn png(width: u32, height: u32, colour: Rgba) -> Vec<u8> {
    encoded(&Raster::filled(width, height, colour))
}

/// A PNG image of exactly this many bytes. The padding is in a chunk that decoders skip.
pub(crate) fn padded_png(width: u32, height: u32, bytes: usize) -> Vec<u8> {
    let plain = png(width, height, [7, 7, 7, 255]);
    // Split after the signature and the header chunk.
    let (head, rest) = plain.split_at(33);
    let length = bytes - plain.len() - 12;
    let mut kind_and_data = b"paDd".to_vec();
    kind_and_data.resize(4 + length, 0x55);
    let mut padded = head.to_vec();
    padded.extend_from_slice(&u32::try_from(length).unwrap().to_be_bytes());
    padded.extend_from_slice(&kind_and_data);
    padded.extend_from_slice(&crc32(&kind_and_data).to_be_bytes());
    padded.extend_from_slice(rest);
    padded
}

fn crc32(bytes: &[u8]) -> u32 {
    let table: Vec<u32> = (0..256_u32)
        .map(|byte| {
            (0..8).fold(byte, |crc, _| {
                if crc & 1 == 1 {
                    crc >> 1 ^ 0xedb8_8320
                } else {
                    crc >> 1
                }
            })
        })
        .collect();
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        crc >> 8 ^ table[usize::from(crc.to_le_bytes()[0] ^ byte)]
    })
}

/// A multipart form of fields and PNG files. Returns its content type and its body.
pub(crate) fn form(fields: &[(&str, &str)], files: &[(&str, &[u8])]) -> (String, Vec<u8>) {
    const BOUNDARY: &str = "test-boundary-4711";
    let mut body = Vec::new();
    for (name, value) in fields {
        let part = format!(
            "--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
        );
        body.extend_from_slice(part.as_bytes());
    }
    for (name, bytes) in files {
        let part = format!(
            "--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"{name}\"; \
             filename=\"a.png\"\r\ncontent-type: image/png\r\n\r\n"
        );
        body.extend_from_slice(part.as_bytes());
        body.extend_from_slice(bytes);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
    (format!("multipart/form-data; boundary={BOUNDARY}"), body)
}

/// The peak memory of a process, in bytes.
pub(crate) fn peak_memory(pid: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.unwrap().trim().trim_end_matches(" kB");
    kib.parse::<usize>().unwrap() * 1024
}
