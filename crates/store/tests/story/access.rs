//! Tests tokens, sign-in codes and sessions of the admin API.

use std::time::Duration;

use store::{
    AuditQuery, Digest, NewSession, NewSignInCode, NewToken, OpenedBy, Role, Store, StoreError,
    TokenId, TokenQuery, TokenRow,
};

use crate::test_database::{TestDatabase, actor};

const HOUR: Duration = Duration::from_secs(3600);

fn digest(secret: &str) -> Digest {
    Digest::of(secret.as_bytes())
}

pub(crate) async fn token(store: &Store, secret: &str, role: Role) -> TokenRow {
    let new = NewToken {
        name: format!("for {secret}"),
        role,
        digest: digest(secret),
        shown_prefix: "tga_".to_owned(),
    };
    store.create_token(new, &actor()).await.unwrap()
}

pub(crate) fn opened_by(token: &TokenRow, secret: &str) -> OpenedBy {
    OpenedBy::Token {
        digest: digest(secret),
        actor: token.id.to_string(),
        name: token.name.clone(),
        role: token.role,
    }
}

pub(crate) async fn open(
    store: &Store,
    cookie: &str,
    lifetime: Duration,
    opened_by: OpenedBy,
) -> bool {
    let new = NewSession {
        digest: digest(cookie),
        lifetime,
        opened_by,
    };
    store.open_session(new, &actor()).await.unwrap().is_some()
}

async fn actions(store: &Store) -> Vec<String> {
    let rows = store.audit(AuditQuery::default()).await.unwrap();
    rows.into_iter().rev().map(|row| row.action).collect()
}

pub(crate) async fn a_token_is_found_by_its_digest_until_it_is_revoked(database: &TestDatabase) {
    let store = database.open();
    let first = token(&store, "one", Role::Viewer).await;
    let second = token(&store, "two", Role::Owner).await;
    let found = store.token_by_digest(&digest("one")).await.unwrap();
    assert_eq!(found.as_ref(), Some(&first));
    assert_eq!((first.last_used_at, first.revoked_at), (None, None));
    assert_eq!(store.token_by_digest(&digest("three")).await.unwrap(), None);

    store.note_token_used(first.id).await.unwrap();
    let revoked = store.revoke_token(first.id, &actor()).await.unwrap();
    assert!(revoked.revoked_at.is_some() && revoked.last_used_at.is_some());
    // Revoking the token again changes nothing and writes no audit row.
    let again = store.revoke_token(first.id, &actor()).await.unwrap();
    assert_eq!(again, revoked);
    assert_eq!(store.token_by_digest(&digest("one")).await.unwrap(), None);
    let missing = store.revoke_token(TokenId::random(), &actor()).await;
    assert!(matches!(missing, Err(StoreError::NotFound { .. })));
    let nameless = NewToken {
        name: " ".to_owned(),
        role: Role::Viewer,
        digest: digest("four"),
        shown_prefix: String::new(),
    };
    let refused = store.create_token(nameless, &actor()).await;
    assert!(matches!(refused, Err(StoreError::Invalid(_))));

    let page = |after, limit| TokenQuery { after, limit };
    let all = store.tokens(page(None, 0)).await.unwrap();
    assert_eq!(all, [revoked.clone(), second.clone()]);
    let rest = store.tokens(page(Some(revoked.cursor), 1)).await.unwrap();
    assert_eq!(rest, [second]);
    let expected = ["token.create", "token.create", "token.revoke"];
    assert_eq!(actions(&store).await, expected);
}

pub(crate) async fn a_session_ends_with_its_token_or_its_time(database: &TestDatabase) {
    let store = database.open();
    let one = token(&store, "one", Role::Support).await;
    let two = token(&store, "two", Role::Support).await;
    assert!(open(&store, "a", HOUR, opened_by(&one, "one")).await);
    assert!(open(&store, "b", HOUR, opened_by(&two, "two")).await);
    assert!(open(&store, "c", Duration::ZERO, opened_by(&two, "two")).await);
    let session = async |cookie| store.session(&digest(cookie)).await.unwrap();
    let found = session("a").await.unwrap();
    assert_eq!(
        (found.token, found.role),
        (Some(digest("one")), Role::Support)
    );
    assert_eq!(found.actor, one.id.to_string());
    assert_eq!(session("c").await, None, "its time is over");

    store.revoke_token(one.id, &actor()).await.unwrap();
    assert_eq!(session("a").await, None);
    assert!(session("b").await.is_some());
    store.end_session(digest("b"), &actor()).await.unwrap();
    store.end_session(digest("b"), &actor()).await.unwrap();
    assert_eq!(session("b").await, None);
    let actions = actions(&store).await;
    let ended = actions.iter().filter(|action| *action == "session.end");
    assert_eq!(ended.count(), 1, "{actions:?}");
}

pub(crate) async fn a_code_signs_in_once(database: &TestDatabase) {
    let store = database.open();
    let code = |secret: &str, lifetime| NewSignInCode {
        digest: digest(secret),
        name: "pat".to_owned(),
        role: Role::Operator,
        lifetime,
    };
    for (secret, lifetime) in [("late", Duration::ZERO), ("once", HOUR)] {
        let by = actor();
        let made = store.create_sign_in_code(code(secret, lifetime), &by);
        made.await.unwrap();
    }
    let by = |secret| OpenedBy::Code(digest(secret));
    assert!(!open(&store, "x", HOUR, by("late")).await);
    assert!(!open(&store, "x", HOUR, by("none")).await);
    assert!(open(&store, "a", HOUR, by("once")).await);
    assert!(!open(&store, "b", HOUR, by("once")).await);
    let session = store.session(&digest("a")).await.unwrap().unwrap();
    assert_eq!(
        (session.actor.as_str(), session.name.as_str(), session.role),
        ("link", "pat", Role::Operator)
    );
    let newest = store.audit(AuditQuery::default()).await.unwrap().remove(0);
    assert_eq!(newest.action, "session.create");
    assert_eq!(
        (newest.actor.id.as_str(), newest.actor.name.as_str()),
        ("link", "pat")
    );
}
