//! The simulated model, which answers prompts independently of the protocol.
//!
//! A protocol reads its request into a prompt and writes the output in its own format. Equal prompts
//! give equal outputs. The user's last message can determine the output:
//!
//! | message | output |
//! |---|---|
//! | `say exactly: TEXT` | TEXT |
//! | `count to N` | the numbers from 1 to N |
//! | `reply with N words`, `in N words` | N words, each of which is one token |
//! | `please refuse` | a refusal; on Messages, of the category that the message names (`cyber`, `bio`, ...) |
//! | `what is my name` | the name in an earlier `my name is NAME` |
//! | `system prompt`, `your instructions` | the system prompt |
//! | images, sounds or files | their types and sizes, or their URLs |
//! | the name of a tool, or a word of its name such as `weather` | a call of each tool that is named |
//! | `parallel`, `both` or `each` beside one tool | a call of the tool for each name or quotation in the message |
//! | `then` between tools | one call per round |
//! | `cite URL` | the usual answer, with this page as its source |
//! | `explain` beside a tool | a sentence before the call |
//!
//! If tool results follow the message, the model repeats them. For a JSON schema it creates an instance, with values
//! from the prompt where they fit.

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
    Effort, Media, MediaKind, PastCall, Prompt, Source, TextFormat, Tool, ToolKind, ToolUse, Turn,
};
