//! Our identity in an answer, in place of the upstream's.

use std::borrow::Cow;
use std::sync::Arc;

use crate::json::write_string;

/// What we say about an answer: our id, the model's public id, and the time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Our response id.
    pub id: Box<str>,
    /// The public model id.
    pub model: Arc<str>,
    /// When the call arrived, in Unix seconds. It is shown where the upstream gives no time.
    pub created: i64,
}

/// The name and the JSON value of a member that is the same in every answer.
pub(crate) type Shown = (&'static str, &'static str);

/// A member of an answer that we replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name {
    Id,
    Model,
    Created,
    /// The member that is the same in every answer.
    Shown,
    /// A usage report that the caller may not see, or not all of it.
    Usage,
}

/// Which members of an identity an answer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct NameSet(u8);

impl NameSet {
    pub(crate) const fn with(self, name: Name) -> Self {
        Self(self.0 | 1 << name as u8)
    }

    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn has(self, name: Name) -> bool {
        self.0 & 1 << name as u8 != 0
    }

    pub(crate) const fn has_all(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The values of our members as JSON, written once for a whole stream.
#[derive(Debug)]
pub(crate) struct Written {
    id: Vec<u8>,
    model: Vec<u8>,
    created: i64,
    shown: &'static str,
}

impl Written {
    pub(crate) fn new(identity: &Identity, shown: Option<Shown>) -> Self {
        let json = |text: &str| {
            let mut json = Vec::with_capacity(text.len() + 2);
            write_string(&mut json, text);
            json
        };
        Self {
            id: json(&identity.id),
            model: json(&identity.model),
            created: identity.created,
            shown: shown.map_or("null", |(_, value)| value),
        }
    }

    pub(crate) fn get(&self, name: Name) -> Cow<'_, [u8]> {
        Cow::Borrowed(match name {
            Name::Id => &self.id,
            Name::Model => &self.model,
            Name::Created => return Cow::Owned(self.created.to_string().into_bytes()),
            Name::Shown => self.shown.as_bytes(),
            Name::Usage => b"null",
        })
    }

    /// Those of the `members` that are not in `found`, each followed by a comma.
    #[cold]
    pub(crate) fn missing(&self, members: [(Name, Option<&str>); 4], found: NameSet) -> Vec<u8> {
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
