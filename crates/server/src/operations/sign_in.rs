//! Creates links that sign somebody in to the console once.

use std::time::Duration;

use store::{Actor, Digest, NewSignInCode, Role, Store, StoreError};

/// How long a link is valid.
pub(crate) const LIFETIME: Duration = Duration::from_secs(600);

/// Creates a code that signs its holder in, once and within ten minutes. The session has this role, and the name of the
/// actor who created the code.
pub(crate) async fn create_code(
    store: &Store,
    role: Role,
    actor: &Actor,
) -> Result<String, StoreError> {
    let code: String = engine::ids::fresh("tgc_");
    let new = NewSignInCode {
        digest: Digest::of(code.as_bytes()),
        name: actor.name.clone(),
        role,
        lifetime: LIFETIME,
    };
    store.create_sign_in_code(new, actor).await?;
    Ok(code)
}

/// A link to the console that signs in with `code`. The code is in the fragment, which browsers never send to a server.
pub(crate) fn link(console_url: &str, code: &str) -> String {
    format!(
        "{}/#/sign-in?code={code}",
        console_url.trim_end_matches('/')
    )
}
