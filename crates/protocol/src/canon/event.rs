//! The events of an answer in the common form.
//!
//! Grammar, which every reader guarantees and every writer relies on:
//!
//! ```text
//! answer = Start  ( Usage | block )*  ( Finish | Failed )
//! block  = BlockStart  Delta*  BlockStop
//! ```
//!
//! One block is open at a time, blocks are not nested, and nothing follows `Finish` or `Failed`.
//! Readers buffer blocks that their dialect interleaves, give a tool call its id and name at its
//! start, and report usage before `Finish`. The last report counts.

use crate::failure::Failure;
use crate::usage::Usage;

use super::logprobs::Token;
use super::opaque::Opaque;

/// One event of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The upstream has started to answer.
    Start,
    BlockStart(Block),
    Delta(Delta),
    BlockStop,
    /// Usage so far. The last report counts.
    Usage(Usage),
    /// The answer is complete.
    Finish(Stop),
    /// The answer broke off.
    Failed(Failure),
}

/// The kind of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    Text,
    Thought,
    ToolCall {
        id: String,
        name: String,
    },
    Refusal,
    /// An image of this type. Its deltas are standard base64 in whole groups of four.
    Image {
        mime: String,
    },
}

impl Block {
    pub(crate) fn is_picture(&self) -> bool {
        matches!(self, Self::Image { .. })
    }
}

/// A piece of the open block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    /// Text of a text, thought or refusal block, or base64 of an image block.
    Text(String),
    /// A piece of a tool call's JSON arguments.
    Arguments(String),
    /// The signature or encrypted form of a thought, or the signature of a tool call or text. A block has at
    /// most one of these, and it is complete. In a tool call it precedes the other deltas if possible.
    Opaque(Opaque),
    /// Log probabilities of a text block, sent once and in order. They precede their text if possible.
    Logprobs(Vec<Token>),
    /// A citation of a source for the text so far. Offsets count characters of the block's text.
    Citation {
        url: String,
        title: String,
        start: u64,
        end: u64,
    },
}

/// Why an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    End,
    /// The model wrote a stop sequence, which only some dialects name.
    Sequence(Option<String>),
    Length,
    /// The context window is full.
    ContextFull,
    ToolCalls,
    /// The model refused. `category` is the policy category, if it is known.
    Refusal {
        category: Option<String>,
    },
    /// The output or the prompt was blocked. Holds the upstream's reason, if there is one.
    Filter(Option<String>),
    /// The upstream expects another call to continue.
    Paused,
}
