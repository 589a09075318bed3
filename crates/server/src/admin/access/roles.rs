//! Extractors that declare the role a handler needs, and give it the actor for the audit.

use axum::extract::FromRequestParts;
use http::request::Parts;
use store::{Actor, Role};

use crate::admin::api::answer::RequestId;
use crate::admin::api::error::ApiError;

/// The authenticated sender of a request.
#[derive(Debug, Clone)]
pub(super) struct Identity {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) role: Role,
}

fn actor(parts: &Parts, needed: Role) -> Result<Actor, ApiError> {
    let found = parts.extensions.get::<Identity>();
    let identity = found.ok_or_else(ApiError::invalid_token)?;
    if identity.role < needed {
        return Err(ApiError::role_not_sufficient(needed));
    }
    let request_id = parts.extensions.get::<RequestId>();
    Ok(Actor {
        id: identity.id.clone(),
        name: identity.name.clone(),
        role: identity.role,
        request_id: request_id.map(|RequestId(id)| id.clone()),
    })
}

macro_rules! role {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) struct $name(pub(crate) Actor);

        impl<S: Send + Sync> FromRequestParts<S> for $name {
            type Rejection = ApiError;

            async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
                actor(parts, Role::$name).map(Self)
            }
        }
    };
}

role! {
    /// An actor that may read.
    Viewer
}
role! {
    /// An actor that may also top up wallets.
    Support
}
role! {
    /// An actor that may also change wallets, keys and alert rules, switch and test channels, and use the playground.
    Operator
}
role! {
    /// An actor that may change everything.
    Owner
}
