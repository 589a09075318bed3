//! Cancels or deletes a task.

use super::refusal;
use super::tasks::{DeleteError, TaskPath, Tasks, task_path};
use crate::call_context::CallContext;
use crate::protocol::{ErrorReplies, IncomingCall, Protocol};
use crate::reply::Reply;
use http::StatusCode;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Delete {
    id: String,
    model: String,
    tasks: Arc<Tasks>,
}

impl Protocol for Delete {
    fn read(call: &IncomingCall<'_>) -> Result<Self, Reply> {
        refusal::authorise(call)?;
        let Some(TaskPath::One(id)) = task_path(call.parts.uri.path()) else {
            return Err(refusal::no_such_task());
        };
        let task = call.content_tasks.find(id);
        let task = task.ok_or_else(refusal::no_such_task)?;
        Ok(Self {
            model: format!("delete/{}", task.model),
            id: task.id,
            tasks: Arc::clone(call.content_tasks),
        })
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn answer(&self, context: &CallContext<'_>) -> Reply {
        let denied = |state: &str| {
            let message = format!("The task is {state} and cannot be deleted.");
            let code = "OperationDenied.InvalidState";
            refusal::failure(StatusCode::BAD_REQUEST, code, &message, "id")
        };
        match self.tasks.delete(&self.id, context.created) {
            Ok(()) => Reply::json(StatusCode::OK, "{}"),
            Err(DeleteError::Missing) => refusal::no_such_task(),
            Err(DeleteError::Running) => denied("running"),
            Err(DeleteError::Cancelled) => denied("cancelled"),
        }
    }

    fn errors(&self) -> &dyn ErrorReplies {
        &refusal::TaskErrors
    }
}
