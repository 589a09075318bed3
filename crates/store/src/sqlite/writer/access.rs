//! Changes tokens, sign-in codes and sessions in the transaction of the ledger's batch.

use ledger::UnixMs;
use rusqlite::{OptionalExtension as _, params};

use super::ledger::Ledger;
use crate::books::{NewAuditRow, checked_code, checked_token, no_token};
use crate::error::StoreError;
use crate::queue::command::{AccessChange, AccessChanged};
use crate::records::access::{
    NewSession, NewSignInCode, NewToken, OpenedBy, SIGN_IN_CODE_ACTOR, SessionRow, TokenRow, end_of,
};
use crate::records::audit::{Actor, Role};
use crate::records::ids::{Digest, TokenId};
use crate::sqlite::reads::access::{TOKEN, session, token_row};

impl Ledger<'_> {
    pub(crate) fn change_access(
        &mut self,
        change: AccessChange,
        now: UnixMs,
        actor: &Actor,
    ) -> Result<AccessChanged, StoreError> {
        self.books.pending.wrote = true;
        match change {
            AccessChange::CreateToken { id, new } => {
                let row = self.create_token(id, &new, now)?;
                self.audit(&NewAuditRow::token_created(&row), now, actor)?;
                Ok(AccessChanged::Token(row))
            }
            AccessChange::RevokeToken(id) => {
                let row = self.revoke_token(id, now, actor)?;
                Ok(AccessChanged::Token(row))
            }
            AccessChange::NoteTokenUsed(id) => {
                let update = "UPDATE admin_tokens SET last_used_at = ?2 WHERE id = ?1";
                let mut update = self.connection.prepare_cached(update)?;
                update.execute(params![id, now.get()])?;
                Ok(AccessChanged::Done)
            }
            AccessChange::CreateCode(new) => {
                self.create_code(&new, now, actor)?;
                Ok(AccessChanged::Done)
            }
            AccessChange::OpenSession(new) => {
                Ok(AccessChanged::Session(self.open_session(new, now, actor)?))
            }
            AccessChange::EndSession(digest) => {
                if let Some(row) = session(self.connection, &digest, now)? {
                    let delete = "DELETE FROM admin_sessions WHERE digest = ?1";
                    let mut delete = self.connection.prepare_cached(delete)?;
                    delete.execute([digest.as_bytes()])?;
                    self.audit(&NewAuditRow::session_ended(&row), now, actor)?;
                }
                Ok(AccessChanged::Done)
            }
        }
    }

    fn create_token(
        &mut self,
        id: TokenId,
        new: &NewToken,
        now: UnixMs,
    ) -> Result<TokenRow, StoreError> {
        checked_token(new)?;
        let insert = "INSERT INTO admin_tokens (id, name, role, digest, shown_prefix, created_at)
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        self.connection.prepare_cached(insert)?.execute(params![
            id,
            new.name,
            new.role.as_str(),
            new.digest.as_bytes(),
            new.shown_prefix,
            now.get(),
        ])?;
        self.find_token(id)?.ok_or_else(|| no_token(id))
    }

    fn revoke_token(
        &mut self,
        id: TokenId,
        now: UnixMs,
        actor: &Actor,
    ) -> Result<TokenRow, StoreError> {
        let row = self.find_token(id)?.ok_or_else(|| no_token(id))?;
        if row.revoked_at.is_some() {
            return Ok(row);
        }
        let update = "UPDATE admin_tokens SET revoked_at = ?2 WHERE id = ?1";
        let mut update = self.connection.prepare_cached(update)?;
        update.execute(params![id, now.get()])?;
        let delete = "DELETE FROM admin_sessions WHERE token = (SELECT digest FROM admin_tokens WHERE id = ?1)";
        self.connection.prepare_cached(delete)?.execute([id])?;
        self.audit(&NewAuditRow::token_revoked(&row), now, actor)?;
        Ok(TokenRow {
            revoked_at: Some(now),
            ..row
        })
    }

    fn find_token(&self, id: TokenId) -> Result<Option<TokenRow>, StoreError> {
        let select = format!("SELECT {TOKEN} FROM admin_tokens WHERE id = ?1");
        let mut select = self.connection.prepare_cached(&select)?;
        Ok(select.query_row([id], token_row).optional()?)
    }

    fn create_code(
        &mut self,
        new: &NewSignInCode,
        now: UnixMs,
        actor: &Actor,
    ) -> Result<(), StoreError> {
        checked_code(new)?;
        let forget = "DELETE FROM sign_in_codes WHERE expires_at <= ?1";
        self.connection
            .prepare_cached(forget)?
            .execute([now.get()])?;
        let expires_at = end_of(now, new.lifetime);
        let insert =
            "INSERT INTO sign_in_codes (digest, name, role, expires_at) VALUES (?1, ?2, ?3, ?4)";
        self.connection.prepare_cached(insert)?.execute(params![
            new.digest.as_bytes(),
            new.name,
            new.role.as_str(),
            expires_at.get(),
        ])?;
        self.audit(
            &NewAuditRow::code_created(new, expires_at.get()),
            now,
            actor,
        )
    }

    fn open_session(
        &mut self,
        new: NewSession,
        now: UnixMs,
        actor: &Actor,
    ) -> Result<Option<SessionRow>, StoreError> {
        let forget = "DELETE FROM admin_sessions WHERE expires_at <= ?1";
        self.connection
            .prepare_cached(forget)?
            .execute([now.get()])?;
        let expires_at = end_of(now, new.lifetime);
        let (row, is_link) = match new.opened_by {
            OpenedBy::Token {
                digest,
                actor,
                name,
                role,
            } => {
                let row = SessionRow {
                    token: Some(digest),
                    actor,
                    name,
                    role,
                    expires_at,
                };
                (row, false)
            }
            OpenedBy::Code(code) => match self.use_code(&code, now)? {
                Some((name, role)) => {
                    let row = SessionRow {
                        token: None,
                        actor: SIGN_IN_CODE_ACTOR.to_owned(),
                        name,
                        role,
                        expires_at,
                    };
                    (row, true)
                }
                None => return Ok(None),
            },
        };
        let insert = "INSERT INTO admin_sessions (digest, token, actor, name, role, expires_at)
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        self.connection.prepare_cached(insert)?.execute(params![
            new.digest.as_bytes(),
            row.token.as_ref().map(Digest::as_bytes),
            row.actor,
            row.name,
            row.role.as_str(),
            expires_at.get(),
        ])?;
        let by_link = Actor {
            id: row.actor.clone(),
            name: row.name.clone(),
            role: row.role,
            request_id: actor.request_id.clone(),
        };
        let actor = if is_link { &by_link } else { actor };
        self.audit(&NewAuditRow::session_opened(&row), now, actor)?;
        Ok(Some(row))
    }

    /// Deletes a sign-in code. Returns its name and role, or `None` if it is unknown or has expired.
    fn use_code(&self, code: &Digest, now: UnixMs) -> Result<Option<(String, Role)>, StoreError> {
        let delete = "DELETE FROM sign_in_codes WHERE digest = ?1 RETURNING name, role, expires_at";
        let mut delete = self.connection.prepare_cached(delete)?;
        let used = delete.query_row([code.as_bytes()], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get::<_, i64>(2)?))
        });
        let used = used.optional()?;
        Ok(used
            .filter(|(_, _, expires_at)| *expires_at > now.get())
            .map(|(name, role, _)| (name, role)))
    }
}
