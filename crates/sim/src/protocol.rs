//! What a protocol is to the life of an exchange.

use crate::call_context::CallContext;
use crate::content_task::Tasks;
use crate::fault::{ScriptError, Status};
use crate::reply::Reply;
use crate::settings::Settings;
use crate::video_a::Jobs;
use bytes::Bytes;
use http::request::Parts;
use std::sync::Arc;

/// A call as it came in.
#[derive(Debug)]
pub(crate) struct Incoming<'a> {
    pub(crate) parts: &'a Parts,
    pub(crate) body: &'a Bytes,
    pub(crate) settings: &'a Settings,
    /// The tasks under way.
    pub(crate) jobs: &'a Arc<Jobs>,
    pub(crate) content_tasks: &'a Arc<Tasks>,
    /// The id under which the vendor files the call. It stands in a header, and with some vendors
    /// in errors too.
    pub(crate) request_id: &'a str,
}

/// A call that a protocol has taken. Refusals are replies already, since each vendor words and
/// wraps them in its own way.
pub(crate) trait Protocol: Sized {
    /// Checks the caller's credential, and takes the call apart as far as its model and form.
    fn read(call: &Incoming<'_>) -> Result<Self, Reply>;

    /// The model that the call names, its script included.
    fn model(&self) -> &str;

    /// The answer, or the refusal of what the vendor would refuse.
    fn answer(&self, context: &CallContext<'_>) -> Reply;

    /// The error that a script asks for by its status.
    fn of_status(&self, status: &Status, model: &str) -> Reply;

    /// An error under status 200, in the form that was asked for.
    fn error_in_200(&self, model: &str) -> Reply;

    /// An object without members, in the form that was asked for.
    fn empty_object(&self) -> Reply;

    /// The one refusal no vendor has: the script behind the model's name cannot be read.
    fn bad_script(&self, error: &ScriptError) -> Reply;
}
