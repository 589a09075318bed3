//! Opens values that `LiteLLM` has sealed in its database: names of models and providers, and addresses of upstreams.
//!
//! Credentials are sealed in the same way. They are never opened, because they are not imported.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use poly1305::Poly1305;
use poly1305::universal_hash::KeyInit as _;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use salsa20::XSalsa20;
use salsa20::cipher::{KeyIvInit as _, StreamCipher as _};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// The prefix of values in the newer format.
const GCM_MARK: &str = "v2:gcm:";
const GCM_NONCE_BYTES: usize = 12;
const BOX_NONCE_BYTES: usize = 24;
const TAG_BYTES: usize = 16;

/// The key with which values were sealed.
pub(super) struct SealKey([u8; 32]);

impl SealKey {
    /// Derives the key from the salt key of `LiteLLM`: the value of `LITELLM_SALT_KEY`, or else the master key.
    pub(super) fn of(salt_key: &str) -> Self {
        Self(Sha256::digest(salt_key.as_bytes()).into())
    }

    /// Opens a sealed text. `None` if the value was not sealed, or was sealed with another key.
    pub(super) fn open(&self, value: &str) -> Option<String> {
        let plain = match value.strip_prefix(GCM_MARK) {
            Some(sealed) => self.open_gcm(&decoded(sealed)?)?,
            None => self.open_box(&decoded(value)?)?,
        };
        String::from_utf8(plain).ok()
    }

    fn open_gcm(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, rest) = sealed.split_at_checked(GCM_NONCE_BYTES)?;
        let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &self.0).ok()?);
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut rest = rest.to_vec();
        let plain = key.open_in_place(nonce, Aad::empty(), &mut rest).ok()?;
        Some(plain.to_vec())
    }

    /// Opens a secret box of `NaCl`: `XSalsa20`, whose first 32 bytes are the key of `Poly1305`.
    fn open_box(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, rest) = sealed.split_at_checked(BOX_NONCE_BYTES)?;
        let (tag, sealed) = rest.split_at_checked(TAG_BYTES)?;
        let nonce: [u8; BOX_NONCE_BYTES] = nonce.try_into().ok()?;
        let mut stream = XSalsa20::new(&self.0.into(), &nonce.into());
        let mut tag_key = [0; 32];
        stream.apply_keystream(&mut tag_key);
        let expected = Poly1305::new(&tag_key.into()).compute_unpadded(sealed);
        if !bool::from(expected.as_slice().ct_eq(tag)) {
            return None;
        }
        let mut plain = sealed.to_vec();
        stream.apply_keystream(&mut plain);
        Some(plain)
    }
}

/// Decodes either base64 alphabet.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let text = text.trim();
    URL_SAFE
        .decode(text)
        .or_else(|_| STANDARD.decode(text))
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_opened_with_their_key_alone() {
        let key = SealKey::of("salt-key-1");
        let other = SealKey::of("salt-key-2");
        for sealed in [
            "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXqybowonDo4mKAsgSRpzg43XZXgNZf5w=",
            "v2:gcm:AAECAwQFBgcICQoLe9NGIlsKGBNMR013OxFVG2HNc4cveng=",
        ] {
            assert_eq!(key.open(sealed).as_deref(), Some("sk-test"), "{sealed}");
            assert_eq!(other.open(sealed), None, "{sealed}");
            let broken = sealed.replacen("AAEC", "AAED", 1);
            assert_eq!(key.open(&broken), None, "{broken}");
        }
        for plain in ["openai/gpt-large", "", "sk-test", "https://a.example/v1"] {
            assert_eq!(key.open(plain), None, "{plain}");
        }
    }
}
