//! Defines the interface between an exchange and a protocol.

use crate::call_context::CallContext;
use crate::content_task::Tasks;
use crate::fault::{ScriptError, Status};
use crate::reply::Reply;
use crate::settings::Settings;
use crate::video_a::Jobs;
use bytes::Bytes;
use http::StatusCode;
use http::request::Parts;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct IncomingCall<'a> {
    pub(crate) parts: &'a Parts,
    pub(crate) body: &'a Bytes,
    pub(crate) settings: &'a Settings,
    /// The video tasks of all protocols except content tasks.
    pub(crate) jobs: &'a Arc<Jobs>,
    pub(crate) content_tasks: &'a Arc<Tasks>,
    /// The vendor's id of the call. It is sent in a header and, by some vendors, in errors too.
    pub(crate) request_id: &'a str,
}

/// A call that a protocol has parsed. Refusals are complete replies, because each vendor has its own error messages and
/// envelope.
pub(crate) trait Protocol: Sized {
    /// Checks the caller's credential, and parses the call far enough to find the model and the form of the answer.
    fn read(call: &IncomingCall<'_>) -> Result<Self, Reply>;

    /// The model that the call names, including its script.
    fn model(&self) -> &str;

    /// Creates the answer, or a refusal where the vendor would refuse the request.
    fn answer(&self, context: &CallContext<'_>) -> Reply;

    /// The vendor's replies that a script can ask for instead of an answer.
    fn errors(&self) -> &dyn ErrorReplies;
}

/// A vendor's replies that a script can ask for instead of an answer.
pub(crate) trait ErrorReplies {
    /// The error for a status that a script asks for.
    fn of_status(&self, status: &Status, model: &str) -> Reply;

    /// An error with status 200, as a stream if the caller asked for one.
    fn error_in_200(&self, model: &str) -> Reply;

    /// An empty object, as a stream if the caller asked for one. The default implementation never streams.
    fn empty_object(&self) -> Reply {
        Reply::json(StatusCode::OK, "{}")
    }

    /// The refusal of a script that cannot be parsed. No vendor has such an error.
    fn bad_script(&self, error: &ScriptError) -> Reply;
}
