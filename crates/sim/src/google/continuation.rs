//! Creates and reads the tokens with which a client requests the rest of an answer.

use super::{Field, Refusal};
use crate::seal;

const KIND: &str = "continuation";

/// The position at which an answer continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Continuation {
    /// The number of bytes of the text that were already sent.
    pub(crate) bytes: usize,
}

impl Continuation {
    pub(crate) fn token(self, model: &str) -> String {
        seal::seal(KIND, model, &self.bytes.to_string())
    }

    /// Reads the token of a request, if it has one.
    pub(crate) fn read(body: &Field<'_>, model: &str) -> Result<Option<Self>, Refusal> {
        let Some(token) = body.text("continuation_token")? else {
            return Ok(None);
        };
        seal::open(KIND, model, token)
            .and_then(|text| text.parse().ok())
            .map(|bytes| Some(Self { bytes }))
            .ok_or_else(|| {
                Refusal::invalid("The continuation token is invalid or has expired.")
                    .field("continuation_token")
            })
    }
}
