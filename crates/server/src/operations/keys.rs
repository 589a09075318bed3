//! Creates keys and rotates their secrets.

use ledger::UnixMs;
use store::{
    Actor, Digest, KeyId, KeyLimits, KeyRotation, KeyRow, NewKey, Store, StoreError, WalletId,
};

use super::secret;

#[derive(Debug, Clone)]
pub(crate) struct KeyDraft {
    pub(crate) wallet: WalletId,
    pub(crate) name: Option<String>,
    pub(crate) limits: KeyLimits,
    pub(crate) tags: Vec<String>,
}

impl KeyDraft {
    /// A key without limits.
    pub(crate) fn named(wallet: WalletId, name: &str) -> Self {
        Self {
            wallet,
            name: Some(name.to_owned()),
            limits: KeyLimits::default(),
            tags: Vec::new(),
        }
    }
}

/// Creates a key. Returns it with its secret, of which only the digest and the first characters are stored.
pub(crate) async fn create(
    store: &Store,
    draft: KeyDraft,
    actor: &Actor,
) -> Result<(KeyRow, String), StoreError> {
    let (secret, shown_prefix) = secret::fresh();
    let new = NewKey {
        wallet: draft.wallet,
        name: draft.name,
        digest: Digest::of(secret.as_bytes()),
        shown_prefix,
        limits: draft.limits,
        tags: draft.tags,
    };
    Ok((store.create_key(new, actor).await?, secret))
}

/// Gives a key a new secret and returns both. The old secret works until `old_secret_until`. If that is `None`, the old
/// secret ends at once.
pub(crate) async fn rotate(
    store: &Store,
    key: KeyId,
    old_secret_until: Option<UnixMs>,
    actor: &Actor,
) -> Result<(KeyRow, String), StoreError> {
    let (secret, shown_prefix) = secret::fresh();
    let rotation = KeyRotation {
        digest: Digest::of(secret.as_bytes()),
        shown_prefix,
        old_secret_until,
    };
    Ok((store.rotate_key(key, rotation, actor).await?, secret))
}
