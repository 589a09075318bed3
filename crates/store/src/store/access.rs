//! Operations on tokens, sign-in codes and sessions of the admin API.

use crate::backend::{Backend, on};
use crate::clock;
use crate::error::StoreError;
use crate::queue::command::{AccessChange, AccessChanged, Change};
use crate::records::access::{
    NewSession, NewSignInCode, NewToken, SessionRow, TokenQuery, TokenRow,
};
use crate::records::audit::Actor;
use crate::records::ids::{Digest, TokenId};
use crate::store::Store;

/// A change is durable when its method returns.
impl Store {
    /// Creates a token.
    pub async fn create_token(&self, new: NewToken, actor: &Actor) -> Result<TokenRow, StoreError> {
        let id = TokenId::random();
        let made = self.change_access(AccessChange::CreateToken { id, new }, actor);
        made.await?.token()
    }

    /// Revokes a token and ends its sessions. Revoking it again changes nothing.
    pub async fn revoke_token(&self, id: TokenId, actor: &Actor) -> Result<TokenRow, StoreError> {
        let made = self.change_access(AccessChange::RevokeToken(id), actor);
        made.await?.token()
    }

    /// Records that a token was used now. No operator made this change, so it has no audit row.
    pub async fn note_token_used(&self, id: TokenId) -> Result<(), StoreError> {
        let change = AccessChange::NoteTokenUsed(id);
        let made = self.change_access(change, &Actor::cli("")).await;
        made.map(drop)
    }

    /// Tokens, oldest first, including revoked ones.
    pub async fn tokens(&self, query: TokenQuery) -> Result<Vec<TokenRow>, StoreError> {
        on!(self, backend => backend.tokens(query).await)
    }

    /// The token with this digest, unless it is revoked.
    pub async fn token_by_digest(&self, digest: &Digest) -> Result<Option<TokenRow>, StoreError> {
        on!(self, backend => backend.token_by_digest(*digest).await)
    }

    /// Stores a one-time sign-in code.
    pub async fn create_sign_in_code(
        &self,
        new: NewSignInCode,
        actor: &Actor,
    ) -> Result<(), StoreError> {
        let made = self
            .change_access(AccessChange::CreateCode(new), actor)
            .await;
        made.map(drop)
    }

    /// Opens a session. `None` if its sign-in code does not exist, was used, or has expired.
    pub async fn open_session(
        &self,
        new: NewSession,
        actor: &Actor,
    ) -> Result<Option<SessionRow>, StoreError> {
        match self
            .change_access(AccessChange::OpenSession(new), actor)
            .await?
        {
            AccessChanged::Session(row) => Ok(row),
            _ => Err(StoreError::Unavailable),
        }
    }

    /// The session with this digest, unless it has ended.
    pub async fn session(&self, digest: &Digest) -> Result<Option<SessionRow>, StoreError> {
        on!(self, backend => backend.session(*digest).await)
    }

    /// Ends a session.
    pub async fn end_session(&self, digest: Digest, actor: &Actor) -> Result<(), StoreError> {
        let made = self
            .change_access(AccessChange::EndSession(digest), actor)
            .await;
        made.map(drop)
    }

    async fn change_access(
        &self,
        change: AccessChange,
        actor: &Actor,
    ) -> Result<AccessChanged, StoreError> {
        self.change(|reply| Change::Access {
            change: Box::new(change),
            now: clock::now(),
            actor: Box::new(actor.clone()),
            reply,
        })
        .await
    }
}
