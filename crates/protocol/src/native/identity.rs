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

/// Which of the two a span holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name {
    Id,
    Model,
}

/// Both names as JSON strings, written once for a whole stream.
#[derive(Debug)]
pub(crate) struct Written {
    id: Vec<u8>,
    model: Vec<u8>,
}

impl Written {
    pub(crate) fn new(identity: &Identity) -> Self {
        let json = |text: &str| {
            let mut json = Vec::with_capacity(text.len() + 2);
            write_string(&mut json, text);
            json
        };
        Self {
            id: json(&identity.id),
            model: json(&identity.model),
        }
    }

    pub(crate) fn get(&self, name: Name) -> &[u8] {
        match name {
            Name::Id => &self.id,
            Name::Model => &self.model,
        }
    }
}
