//! Creates tokens of the admin API.

use store::{Actor, Digest, NewToken, Role, Store, StoreError, TokenRow};

/// The prefix of every token, by which scanners recognise a leaked one.
const PREFIX: &str = "tga_";

/// The number of characters that may be shown later: the prefix and four of 22 characters.
const SHOWN_CHARS: usize = PREFIX.len() + 4;

/// Creates a token. Returns it with its secret, of which only the digest and the first characters are stored.
pub(crate) async fn create(
    store: &Store,
    name: String,
    role: Role,
    actor: &Actor,
) -> Result<(TokenRow, String), StoreError> {
    let secret: String = engine::ids::fresh(PREFIX);
    let new = NewToken {
        name,
        role,
        digest: Digest::of(secret.as_bytes()),
        shown_prefix: secret.chars().take(SHOWN_CHARS).collect(),
    };
    Ok((store.create_token(new, actor).await?, secret))
}
