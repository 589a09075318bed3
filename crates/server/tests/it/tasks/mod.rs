//! Tests of video tasks of every protocol, their callbacks and their stored media.

mod callbacks;
mod content_task_lists;
mod content_tasks;
mod copied_results;
mod every_protocol;
mod killed_node;
mod many_open_tasks;
mod media;
mod memory;
mod more_than_asked;
mod omni;
pub(crate) mod predict;
pub(crate) mod videos;
