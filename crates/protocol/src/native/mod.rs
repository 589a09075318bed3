//! The native path: client and upstream use the same dialect, and only a few spans change.
//!
//! [`read_head`] reads a request and [`write_request`] writes it for the upstream.
//! [`rewrite_answer`] rewrites a whole answer, and a [`Rewriter`] rewrites a stream. Neither builds a tree.
//! Each dialect's `AnswerLayout` tells where the members are that must be found or changed. `answer_layout`
//! and `request_head` define the types that all dialects share.

mod answer;
mod chunk_list;
mod common_prefix;
mod dispatch;
mod edits;
mod event_checks;
mod failure;
mod inspection;
mod pictures;
mod prompt_start;
mod request;
mod stream;
pub(crate) mod stream_body;
mod token_count;

pub use crate::answer_layout::Identity;
pub use crate::answer_summary::AnswerSummary;
pub use crate::request_head::{Head, LongCache, fetchable_media_urls, fetchable_urls};
pub use crate::unusable_answer::UnusableAnswer;
pub use answer::{Answer, rewrite_answer};
pub(crate) use event_checks::{ToolCallCounter, is_end_mark, reports_unbillable_usage};
pub use failure::{blames_clock, read_failure, terminal_failure, with_error_name};
pub use pictures::{NamedPicture, named_pictures, with_pictures};
pub use prompt_start::{PromptStart, prompt_start};
pub use request::{
    read_head, read_named_head, without_stream_options, write_request, write_request_to,
};
pub(crate) use stream::KEEP_ALIVE;
pub use stream::Rewriter;
pub use token_count::{CountRequest, TokenCount, read_count_request, write_count_request};
