//! One item of a stream, turned into blocks as it is told.

use crate::canon::{Block, Delta, Event, Opaque, Token};
use crate::dialect::Dialect;
use crate::native::Broken;
use crate::responses::response::{Citation, Item, Part};

/// Which part of a message, and whether it refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PartKey {
    pub(super) index: u64,
    pub(super) is_refusal: bool,
}

/// Where reasoning is told: in a part of its summary, or itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Summary(u64),
    Itself,
}

/// One item.
#[derive(Debug, Default)]
pub(super) struct State {
    open: Open,
    /// Parts of a message of which some text went out.
    told: Vec<u64>,
    /// Parts of a message that are complete.
    closed: Vec<u64>,
    /// Where the last piece of reasoning was told.
    source: Option<Source>,
    /// Arguments that came before the name of their tool.
    early: String,
    /// Events that wait for their turn.
    pub(super) waiting: Vec<Event>,
    pub(super) has_call: bool,
    pub(super) is_refused: bool,
    pub(super) progress: Progress,
}

/// How far an item is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    #[default]
    Running,
    Done,
    /// Done, and everything of it has gone out.
    Over,
}

/// The open block of an item.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Open {
    #[default]
    Nothing,
    Part {
        key: PartKey,
        is_cited: bool,
    },
    Thought,
    Call {
        has_arguments: bool,
    },
}

impl State {
    pub(super) fn text(&mut self, key: PartKey, text: &str, tokens: Vec<Token>) {
        if (text.is_empty() && tokens.is_empty()) || self.is_done() {
            return;
        }
        if !matches!(self.open, Open::Part { key: open, .. } if open == key) {
            self.close();
            self.is_refused |= key.is_refusal;
            let block = if key.is_refusal {
                Block::Refusal
            } else {
                Block::Text
            };
            self.start(block);
            self.told.push(key.index);
            self.open = Open::Part {
                key,
                is_cited: false,
            };
        }
        if !tokens.is_empty() && !key.is_refusal {
            self.push(Delta::Logprobs(tokens));
        }
        if !text.is_empty() {
            self.push(Delta::Text(text.to_owned()));
        }
    }

    /// A source of a text that is not open belongs to nothing that could still be sent.
    pub(super) fn cite(&mut self, at: u64, citation: Citation) {
        if let Open::Part { key, is_cited } = &mut self.open
            && key.index == at
        {
            *is_cited = true;
            self.push(Delta::Citation {
                url: citation.url,
                title: citation.title,
                start: citation.start,
                end: citation.end,
            });
        }
    }

    pub(super) fn part_done(&mut self, index: u64, part: &Part<'_>) {
        let key = PartKey {
            index,
            is_refusal: part.is_refusal,
        };
        if part.is_reasoning || self.closed.contains(&index) {
            return;
        }
        if !self.told.contains(&index) {
            self.text(key, &part.text, part.logprobs.clone());
        }
        if let Open::Part { key, is_cited } = self.open
            && key.index == index
        {
            for citation in part.citations.iter().filter(|_| !is_cited) {
                self.cite(index, citation.clone());
            }
            self.close();
        }
        self.closed.push(index);
    }

    /// Summaries come in parts, which are paragraphs. Where the reasoning itself is told as well,
    /// what comes first is taken.
    pub(super) fn thought(&mut self, source: Source, text: &str) {
        if text.is_empty() || self.is_done() {
            return;
        }
        match (self.source, source) {
            (Some(Source::Summary(_)), Source::Itself)
            | (Some(Source::Itself), Source::Summary(_)) => return,
            (Some(before), source) if before != source && self.open == Open::Thought => {
                self.push(Delta::Text("\n\n".to_owned()));
            }
            _ => {}
        }
        self.source = Some(source);
        if self.open != Open::Thought {
            self.close();
            self.start(Block::Thought);
            self.open = Open::Thought;
        }
        self.push(Delta::Text(text.to_owned()));
    }

    pub(super) fn call(&mut self, index: u64, item: &Item<'_>, name: &str) {
        if self.has_call || self.is_done() {
            return;
        }
        self.close();
        self.has_call = true;
        let id = item.call_id.as_ref().or(item.id.as_ref());
        self.start(Block::ToolCall {
            id: id.map_or_else(|| format!("call_{index}"), ToString::to_string),
            name: name.to_owned(),
        });
        self.open = Open::Call {
            has_arguments: false,
        };
        let early = std::mem::take(&mut self.early);
        self.arguments(&early);
    }

    pub(super) fn arguments(&mut self, text: &str) {
        if text.is_empty() || self.is_done() {
            return;
        }
        match &mut self.open {
            Open::Call { has_arguments } => {
                *has_arguments = true;
                self.push(Delta::Arguments(text.to_owned()));
            }
            _ if !self.has_call => self.early.push_str(text),
            _ => {}
        }
    }

    pub(super) fn done(&mut self, index: u64, item: &Item<'_>, model: &str) -> Result<(), Broken> {
        if self.is_done() {
            return Ok(());
        }
        match &*item.kind {
            "message" => {
                for (at, part) in (0..).zip(&item.content) {
                    self.part_done(at, part);
                }
            }
            "reasoning" => {
                if self.source.is_none() {
                    self.thought(Source::Itself, &item.thought());
                }
                self.seal(&item.encrypted, model);
            }
            "function_call" => {
                let Some(name) = &item.name else {
                    return Err(Broken::malformed("a tool call has no name"));
                };
                self.call(index, item, name);
                if self.open
                    == (Open::Call {
                        has_arguments: false,
                    })
                {
                    let arguments = match item.arguments.trim() {
                        "" => "{}",
                        _ => &item.arguments,
                    };
                    self.arguments(arguments);
                }
            }
            _ => {}
        }
        self.close();
        self.progress = Progress::Done;
        Ok(())
    }

    /// The encrypted form of reasoning, which its model wants back.
    fn seal(&mut self, encrypted: &str, model: &str) {
        if encrypted.is_empty() {
            return;
        }
        if self.open != Open::Thought {
            self.close();
            self.start(Block::Thought);
            self.open = Open::Thought;
        }
        self.push(Delta::Opaque(Opaque {
            origin: Dialect::Responses,
            model: model.into(),
            text: encrypted.into(),
        }));
    }

    /// The answer ended without a word on the end of this item.
    pub(super) fn abandon(&mut self) -> Result<(), Broken> {
        if self.is_done() {
            return Ok(());
        }
        if !self.early.is_empty() {
            return Err(Broken::malformed("a tool call has no name"));
        }
        if self.open
            == (Open::Call {
                has_arguments: false,
            })
        {
            self.arguments("{}");
        }
        self.close();
        self.progress = Progress::Done;
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.progress != Progress::Running
    }

    fn start(&mut self, block: Block) {
        self.waiting.push(Event::BlockStart(block));
    }

    fn push(&mut self, delta: Delta) {
        self.waiting.push(Event::Delta(delta));
    }

    fn close(&mut self) {
        if std::mem::take(&mut self.open) != Open::Nothing {
            self.waiting.push(Event::BlockStop);
        }
    }
}
