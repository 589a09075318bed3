//! Writes errors in the forms that the endpoints of the two Google protocols use.

use super::json::{indented, one_line};
use super::refusal::Refusal;
use crate::fault::{ScriptError, Status};
use crate::protocol::ErrorReplies;
use crate::reply::Reply;
use http::StatusCode;
use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorForm {
    /// The envelope of Generate Content, indented.
    Indented,
    /// The envelope of Generate Content on one line.
    OneLine,
    /// The envelope of Interactions.
    Interactions,
}

impl ErrorForm {
    /// Writes a refusal with its own status.
    pub(crate) fn failure(self, refusal: &Refusal) -> Reply {
        self.reply(refusal.status, &self.envelope(refusal))
    }

    fn envelope(self, refusal: &Refusal) -> Value {
        match self {
            Self::Indented | Self::OneLine => refusal.generate_envelope(),
            Self::Interactions => refusal.interactions_envelope(),
        }
    }

    fn reply(self, status: StatusCode, body: &Value) -> Reply {
        match self {
            Self::Indented => indented(status, body),
            Self::OneLine | Self::Interactions => one_line(status, body),
        }
    }
}

impl ErrorReplies for ErrorForm {
    fn of_status(&self, status: &Status, model: &str) -> Reply {
        self.failure(&Refusal::scripted(status, model))
            .with_status_headers(status.retry_after_s)
    }

    fn error_in_200(&self, model: &str) -> Reply {
        let refusal = Refusal::of_status(StatusCode::INTERNAL_SERVER_ERROR, model);
        self.reply(StatusCode::OK, &self.envelope(&refusal))
    }

    fn empty_object(&self) -> Reply {
        self.reply(StatusCode::OK, &json!({}))
    }

    fn bad_script(&self, error: &ScriptError) -> Reply {
        self.failure(&Refusal::bad_script(error))
    }
}
