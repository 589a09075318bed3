//! Our identity, which replaces the upstream's identity in an answer.

use std::borrow::Cow;
use std::sync::Arc;

use crate::json::write_string;

/// The identity of an answer: our id, the model's public id, and the time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Our response id.
    pub id: Box<str>,
    /// The public model id.
    pub model: Arc<str>,
    /// When the call arrived, in Unix seconds. Used if the upstream gives no time.
    pub created: i64,
}

/// The name and the JSON value of a member that is the same in every answer.
pub(crate) type FixedMember = (&'static str, &'static str);

/// A member of an answer that we replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IdentityMember {
    Id,
    Model,
    Created,
    /// The member that is the same in every answer.
    Fixed,
    /// A usage report that is hidden from the client, as a whole or in part.
    Usage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct IdentitySet(u8);

impl IdentitySet {
    pub(crate) const fn with(self, name: IdentityMember) -> Self {
        Self(self.0 | 1 << name as u8)
    }

    pub(crate) const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn has(self, name: IdentityMember) -> bool {
        self.0 & 1 << name as u8 != 0
    }

    pub(crate) const fn has_all(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The JSON values of the identity members, written once per stream.
#[derive(Debug)]
pub(crate) struct IdentityJson {
    id: Vec<u8>,
    model: Vec<u8>,
    created: i64,
    fixed: &'static str,
}

impl IdentityJson {
    pub(crate) fn new(identity: &Identity, fixed: Option<FixedMember>) -> Self {
        let json = |text: &str| {
            let mut json = Vec::with_capacity(text.len() + 2);
            write_string(&mut json, text);
            json
        };
        Self {
            id: json(&identity.id),
            model: json(&identity.model),
            created: identity.created,
            fixed: fixed.map_or("null", |(_, value)| value),
        }
    }

    pub(crate) fn get(&self, name: IdentityMember) -> Cow<'_, [u8]> {
        Cow::Borrowed(match name {
            IdentityMember::Id => &self.id,
            IdentityMember::Model => &self.model,
            IdentityMember::Created => return Cow::Owned(self.created.to_string().into_bytes()),
            IdentityMember::Fixed => self.fixed.as_bytes(),
            IdentityMember::Usage => b"null",
        })
    }

    /// The members that `found` does not contain, as JSON, each followed by a comma.
    #[cold]
    pub(crate) fn missing(
        &self,
        members: [(IdentityMember, Option<&str>); 4],
        found: IdentitySet,
    ) -> Vec<u8> {
        let mut out = Vec::new();
        for (name, member) in members {
            if let Some(member) = member.filter(|_| !found.has(name)) {
                write_string(&mut out, member);
                out.push(b':');
                out.extend_from_slice(&self.get(name));
                out.push(b',');
            }
        }
        out
    }
}
