//! What takes the place of the upstream's identity in an answer.

use std::sync::Arc;

use crate::json::write_string;

/// Our id of a response, and the model's public id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Our response id.
    pub id: Box<str>,
    /// The public model id.
    pub model: Arc<str>,
}

/// The name and the JSON value of a member that says the same in every answer.
pub(crate) type Shown = (&'static str, &'static str);

/// What a span holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name {
    Id,
    /// The id of an answer that lacks the member which is always shown.
    IdAlone,
    Model,
    /// The member which is always shown.
    Shown,
    /// A usage report that the caller does not see, or not all of.
    Usage,
}

/// What takes the place of spans, as JSON, written once for a whole stream.
#[derive(Debug)]
pub(crate) struct Written {
    id: Vec<u8>,
    /// The id, and behind it the member that is always shown.
    id_and_shown: Vec<u8>,
    model: Vec<u8>,
    shown: &'static str,
}

impl Written {
    pub(crate) fn new(identity: &Identity, shown: Option<Shown>) -> Self {
        let json = |text: &str| {
            let mut json = Vec::with_capacity(text.len() + 2);
            write_string(&mut json, text);
            json
        };
        let id = json(&identity.id);
        let mut id_and_shown = id.clone();
        if let Some((name, value)) = shown {
            id_and_shown.push(b',');
            write_string(&mut id_and_shown, name);
            id_and_shown.push(b':');
            id_and_shown.extend_from_slice(value.as_bytes());
        }
        Self {
            id,
            id_and_shown,
            model: json(&identity.model),
            shown: shown.map_or("null", |(_, value)| value),
        }
    }

    pub(crate) fn get(&self, name: Name) -> &[u8] {
        match name {
            Name::Id => &self.id,
            Name::IdAlone => &self.id_and_shown,
            Name::Model => &self.model,
            Name::Shown => self.shown.as_bytes(),
            Name::Usage => b"null",
        }
    }
}
