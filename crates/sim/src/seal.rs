//! Creates and opens values that only the simulator can create, such as thought signatures and encrypted reasoning.
//!
//! A sealed value binds a text to a kind and a model. When a client sends the value back, the simulator detects whether
//! it was cut, altered, or made for another model or purpose. The value is standard base64 that contains `+` and `/`.
//! `open` also accepts the URL-safe alphabet and missing padding. Messages and Responses seal the opened text again and
//! compare the results, so that they notice a peer that has decoded and re-encoded the value.

use crate::seed::Seed;

const MAGIC: &[u8] = b"sim\xfb\xef\xff";
const CHECK_BYTES: usize = 8;
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(crate) fn seal(kind: &str, model: &str, text: &str) -> String {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&check(kind, model, text.as_bytes()));
    bytes.extend(masked(text.as_bytes()));
    encode(&bytes)
}

/// Returns the sealed text, if the value was made for this kind and model.
pub(crate) fn open(kind: &str, model: &str, sealed: &str) -> Option<String> {
    let bytes = decode(sealed)?;
    let rest = bytes.strip_prefix(MAGIC)?;
    let (given, masked_text) = rest.split_at_checked(CHECK_BYTES)?;
    let text: Vec<u8> = masked(masked_text).collect();
    if given != check(kind, model, &text) {
        return None;
    }
    String::from_utf8(text).ok()
}

fn check(kind: &str, model: &str, text: &[u8]) -> [u8; CHECK_BYTES] {
    let parts = [
        b"the simulator's seal",
        kind.as_bytes(),
        model.as_bytes(),
        text,
    ];
    Seed::of(&parts).next().to_le_bytes()
}

/// Makes a text unreadable. Applying it twice restores the text.
fn masked(bytes: &[u8]) -> impl Iterator<Item = u8> {
    let mut seed = Seed::new(0x7365_616c);
    bytes
        .iter()
        .map(move |byte| byte ^ seed.next().to_le_bytes()[0])
}

/// Encodes bytes as standard base64 with padding.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = (0..3).fold(0_u32, |bits, at| {
            bits << 8 | u32::from(group.get(at).copied().unwrap_or_default())
        });
        for at in 0..4 {
            let sign = (at <= group.len())
                .then(|| ALPHABET.get((bits >> (18 - 6 * at) & 63) as usize))
                .flatten();
            text.push(sign.map_or('=', |sign| char::from(*sign)));
        }
    }
    text
}

/// Decodes base64 of either alphabet, with or without padding.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let signs = text.trim_end_matches('=').as_bytes();
    if signs.len() % 4 == 1 {
        return None;
    }
    let mut bytes = Vec::with_capacity(signs.len() * 3 / 4);
    let mut bits: u32 = 0;
    let mut pending = 0;
    for sign in signs {
        let value = match sign {
            b'-' => 62,
            b'_' => 63,
            _ => ALPHABET.iter().position(|known| known == sign)?,
        };
        bits = bits << 6 | u32::try_from(value).ok()?;
        pending += 6;
        if pending >= 8 {
            pending -= 8;
            bytes.push((bits >> pending).to_le_bytes()[0]);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_standard() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"f", "Zg=="),
            (b"fo", "Zm8="),
            (b"foo", "Zm9v"),
            (b"\xff\xef\xbe", "/+++"),
        ] {
            assert_eq!(encode(bytes), text);
            assert_eq!(decode(text).as_deref(), Some(bytes));
        }
        assert_eq!(decode("_--_").as_deref(), decode("/++/").as_deref());
        for text in ["A", "A*AA", "Zg==Zg", "é"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }

    #[test]
    fn a_seal_opens_only_where_it_was_made_for() {
        let sealed = seal("signature", "sim-chat", "get_weather");
        let url_safe = sealed.replace('+', "-").replace('/', "_");
        for text in [&sealed, &url_safe, sealed.trim_end_matches('=')] {
            let opened = open("signature", "sim-chat", text);
            assert_eq!(opened.as_deref(), Some("get_weather"), "{text}");
        }
        assert!(sealed.contains("++//"));
        for (kind, model) in [("signature", "sim-mini"), ("reasoning", "sim-chat")] {
            assert_eq!(open(kind, model, &sealed), None);
        }
        for altered in [
            sealed.replacen("++", "+A", 1),
            sealed.get(..sealed.len() - 4).unwrap().to_owned(),
            format!("{sealed}AAAA"),
            String::new(),
            "AAAA".to_owned(),
        ] {
            assert_eq!(open("signature", "sim-chat", &altered), None, "{altered}");
        }
    }
}
