//! The simulated model: what is said to a prompt, whatever the protocol.
//!
//! A protocol reads its request into a prompt and writes the output in its own shapes. The
//! same prompt gives the same output. Prompts can steer it:
//!
//! | the last user message has | the answer is |
//! |---|---|
//! | `say exactly: TEXT` | TEXT |
//! | `count to N` | the numbers from 1 to N |
//! | `reply with N words`, `in N words` | N words, which are N tokens |
//! | `please refuse` | a refusal; a category may be named (`cyber`, `bio`, ...) |
//! | `what is my name` | the name given earlier (`my name is NAME`) |
//! | `system prompt`, `your instructions` | the system text |
//! | `how many words`, `summarize` | the count, the beginning of the text |
//! | images, sounds or files | their types and sizes |
//! | the name of a tool, or the words of it | a call of it; of several at once when several are named |
//! | `parallel`, `both` or `each` beside one tool | a call for each name or quotation |
//! | `then` between tools | one call per round |
//! | `cite URL` | what it would be, with that page as its source |
//! | `explain` beside a tool | a sentence before the call |
//!
//! After tool results it says what they were. A JSON schema is answered with an instance of it,
//! whose values come from the prompt where they fit.

mod answer;
mod citation;
mod command;
mod limit;
mod output;
mod prompt;
mod prompt_values;
mod reply_text;
mod schema;
mod tool_use;

pub(crate) use answer::respond;
pub(crate) use citation::Citation;
pub(crate) use output::{Call, ChunkedText, Finish, Output, Pieces};
pub(crate) use prompt::{
    Effort, Media, MediaKind, PastCall, Prompt, Shape, Source, Tool, ToolKind, ToolUse, Turn,
};
