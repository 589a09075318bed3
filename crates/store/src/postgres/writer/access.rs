//! Changes tokens, sign-in codes and sessions, each in a transaction of its own.

use ledger::UnixMs;

use super::audit::audit;
use super::change_lock::ChangeError;
use crate::books::{NewAuditRow, checked_code, checked_token, no_token};
use crate::postgres::connection::ledger_connection::Session;
use crate::postgres::reads::access::{TOKEN, session_of, token_row};
use crate::queue::command::{AccessChange, AccessChanged};
use crate::records::access::{
    NewSession, NewSignInCode, NewToken, OpenedBy, SIGN_IN_CODE_ACTOR, SessionRow, TokenRow, end_of,
};
use crate::records::audit::{Actor, Role};
use crate::records::ids::{Digest, TokenId};

pub(super) async fn change_access(
    session: &Session,
    change: &AccessChange,
    now: UnixMs,
    actor: &Actor,
) -> Result<AccessChanged, ChangeError> {
    let client = &session.client;
    match change {
        AccessChange::CreateToken { id, new } => {
            let row = create_token(session, *id, new, now).await?;
            audit(session, &NewAuditRow::token_created(&row), now, actor).await?;
            Ok(AccessChanged::Token(row))
        }
        AccessChange::RevokeToken(id) => {
            let row = revoke_token(session, *id, now, actor).await?;
            Ok(AccessChanged::Token(row))
        }
        AccessChange::NoteTokenUsed(id) => {
            let update = "UPDATE admin_tokens SET last_used_at = $2 WHERE id = $1";
            client
                .execute(update, &[&id.to_string(), &now.get()])
                .await?;
            Ok(AccessChanged::Done)
        }
        AccessChange::CreateCode(new) => {
            create_code(session, new, now, actor).await?;
            Ok(AccessChanged::Done)
        }
        AccessChange::OpenSession(new) => {
            let row = open_session(session, new, now, actor).await?;
            Ok(AccessChanged::Session(row))
        }
        AccessChange::EndSession(digest) => {
            if let Some(row) = session_of(client, digest).await? {
                let delete = "DELETE FROM admin_sessions WHERE digest = $1";
                client
                    .execute(delete, &[&digest.as_bytes().as_slice()])
                    .await?;
                audit(session, &NewAuditRow::session_ended(&row), now, actor).await?;
            }
            Ok(AccessChanged::Done)
        }
    }
}

async fn create_token(
    session: &Session,
    id: TokenId,
    new: &NewToken,
    now: UnixMs,
) -> Result<TokenRow, ChangeError> {
    checked_token(new)?;
    let insert = format!(
        "INSERT INTO admin_tokens (id, name, role, digest, shown_prefix, created_at)
         VALUES ($1, $2, $3, $4, $5, $6) RETURNING {TOKEN}"
    );
    let made = session
        .client
        .query_one(
            &insert,
            &[
                &id.to_string(),
                &new.name,
                &new.role.as_str(),
                &new.digest.as_bytes().as_slice(),
                &new.shown_prefix,
                &now.get(),
            ],
        )
        .await?;
    Ok(token_row(&made)?)
}

async fn revoke_token(
    session: &Session,
    id: TokenId,
    now: UnixMs,
    actor: &Actor,
) -> Result<TokenRow, ChangeError> {
    let client = &session.client;
    // Locks the row, so that two concurrent revocations write one audit row.
    let select = format!("SELECT {TOKEN} FROM admin_tokens WHERE id = $1 FOR UPDATE");
    let found = client.query_opt(&select, &[&id.to_string()]).await?;
    let row = token_row(&found.ok_or_else(|| no_token(id))?)?;
    if row.revoked_at.is_some() {
        return Ok(row);
    }
    let update = "UPDATE admin_tokens SET revoked_at = $2 WHERE id = $1";
    client
        .execute(update, &[&id.to_string(), &now.get()])
        .await?;
    let delete =
        "DELETE FROM admin_sessions WHERE token = (SELECT digest FROM admin_tokens WHERE id = $1)";
    client.execute(delete, &[&id.to_string()]).await?;
    audit(session, &NewAuditRow::token_revoked(&row), now, actor).await?;
    Ok(TokenRow {
        revoked_at: Some(now),
        ..row
    })
}

async fn create_code(
    session: &Session,
    new: &NewSignInCode,
    now: UnixMs,
    actor: &Actor,
) -> Result<(), ChangeError> {
    checked_code(new)?;
    let client = &session.client;
    let forget = "DELETE FROM sign_in_codes WHERE expires_at <= $1";
    client.execute(forget, &[&now.get()]).await?;
    let expires_at = end_of(now, new.lifetime).get();
    let insert =
        "INSERT INTO sign_in_codes (digest, name, role, expires_at) VALUES ($1, $2, $3, $4)";
    let digest = new.digest.as_bytes().as_slice();
    client
        .execute(
            insert,
            &[&digest, &new.name, &new.role.as_str(), &expires_at],
        )
        .await?;
    let audited = NewAuditRow::code_created(new, expires_at);
    Ok(audit(session, &audited, now, actor).await?)
}

async fn open_session(
    session: &Session,
    new: &NewSession,
    now: UnixMs,
    actor: &Actor,
) -> Result<Option<SessionRow>, ChangeError> {
    let client = &session.client;
    let forget = "DELETE FROM admin_sessions WHERE expires_at <= $1";
    client.execute(forget, &[&now.get()]).await?;
    let expires_at = end_of(now, new.lifetime);
    let (row, actor) = match &new.opened_by {
        OpenedBy::Token {
            digest,
            actor: id,
            name,
            role,
        } => {
            let row = SessionRow {
                token: Some(*digest),
                actor: id.clone(),
                name: name.clone(),
                role: *role,
                expires_at,
            };
            (row, actor.clone())
        }
        OpenedBy::Code(code) => match use_code(session, code, now).await? {
            Some((name, role)) => {
                let by_link = Actor {
                    id: SIGN_IN_CODE_ACTOR.to_owned(),
                    name: name.clone(),
                    role,
                    request_id: actor.request_id.clone(),
                };
                let row = SessionRow {
                    token: None,
                    actor: SIGN_IN_CODE_ACTOR.to_owned(),
                    name,
                    role,
                    expires_at,
                };
                (row, by_link)
            }
            None => return Ok(None),
        },
    };
    let insert = "INSERT INTO admin_sessions (digest, token, actor, name, role, expires_at)
                  VALUES ($1, $2, $3, $4, $5, $6)";
    let token = row.token.as_ref().map(|token| token.as_bytes().as_slice());
    client
        .execute(
            insert,
            &[
                &new.digest.as_bytes().as_slice(),
                &token,
                &row.actor,
                &row.name,
                &row.role.as_str(),
                &expires_at.get(),
            ],
        )
        .await?;
    audit(session, &NewAuditRow::session_opened(&row), now, &actor).await?;
    Ok(Some(row))
}

/// Deletes a sign-in code. Returns its name and role, or `None` if it is unknown or has expired.
async fn use_code(
    session: &Session,
    code: &Digest,
    now: UnixMs,
) -> Result<Option<(String, Role)>, ChangeError> {
    let delete = "DELETE FROM sign_in_codes WHERE digest = $1 RETURNING name, role, expires_at";
    let bytes = code.as_bytes().as_slice();
    let Some(used) = session.client.query_opt(delete, &[&bytes]).await? else {
        return Ok(None);
    };
    if used.try_get::<_, i64>(2)? <= now.get() {
        return Ok(None);
    }
    Ok(Some((used.try_get(0)?, used.try_get(1)?)))
}
