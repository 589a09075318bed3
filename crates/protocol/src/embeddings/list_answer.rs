//! Reads answers in the list form.

use crate::json::patch::Edit;
use crate::json::{Cursor, Raw, Shape, SyntaxError};
use crate::rejection;
use crate::scrub::Ids;
use crate::unusable_answer::UnusableAnswer;
use crate::usage::{self, Usage};

#[derive(Default)]
pub(super) struct ListAnswer<'a> {
    /// Edits that remove the upstream's identity.
    pub(super) edits: Vec<Edit>,
    pub(super) model: Option<Raw<'a>>,
    data: Option<Raw<'a>>,
    pub(super) usage: Option<Raw<'a>>,
    error: Option<Raw<'a>>,
    /// The position after the opening brace.
    pub(super) inside: usize,
}

impl<'a> ListAnswer<'a> {
    pub(super) fn read(text: &'a str, model: &[u8]) -> Result<Self, UnusableAnswer> {
        let mut seen = Self::default();
        let mut cursor = Cursor::new(text);
        cursor.shape()?;
        seen.inside = cursor.position().saturating_add(1);
        let mut ids = Ids::new(model, 0);
        cursor.object(|cursor, name| {
            let value = cursor.value()?;
            // The usage is rewritten as a whole.
            if name.is("data") || name.is("usage") {
                ids.keep(name, value, &mut seen.edits);
            } else {
                ids.member(name, value, &mut seen.edits);
            }
            let place = [
                ("model", &mut seen.model),
                ("data", &mut seen.data),
                ("usage", &mut seen.usage),
                ("error", &mut seen.error),
            ]
            .into_iter()
            .find(|(known, _)| name.is(known));
            if let Some((_, place)) = place {
                *place = Some(value);
            }
            Ok::<(), SyntaxError>(())
        })?;
        ids.end(&mut seen.edits);
        cursor.end()?;
        Ok(seen)
    }

    /// The list of vectors. Fails if the answer is an error or has no list.
    pub(super) fn vectors(&self, model: &str) -> Result<Raw<'a>, UnusableAnswer> {
        if let Some(failure) = rejection::read_member(self.error, model) {
            return Err(UnusableAnswer::Failure(failure));
        }
        let data = self.data.filter(|data| data.shape() == Shape::Array);
        let data = data.filter(|data| !data.is_empty());
        data.ok_or_else(|| UnusableAnswer::malformed("the answer has no embeddings"))
    }

    pub(super) fn usage(&self) -> Option<Usage> {
        read_usage(self.usage?)
    }
}

/// Calls a function with each vector of a list. Members next to a vector are removed if they
/// identify the upstream. Spans count from the start of the whole text.
pub(super) fn each_vector<'a>(
    data: Raw<'a>,
    model: &[u8],
    edits: &mut Vec<Edit>,
    mut each: impl FnMut(Raw<'a>) -> Result<(), UnusableAnswer>,
) -> Result<(), UnusableAnswer> {
    let offset = data.span().start;
    Cursor::new(data.text()).array(|cursor| {
        let mut ids = Ids::new(model, offset);
        cursor.object(|cursor, name| {
            let value = cursor.value()?.moved(offset);
            if name.is("embedding") {
                ids.keep(name, value, edits);
                each(value)?;
            } else {
                ids.member(name, value, edits);
            }
            Ok::<(), UnusableAnswer>(())
        })?;
        ids.end(edits);
        Ok(())
    })
}

/// Reads the input tokens from `prompt_tokens`. If it is absent or 0, reads `total_tokens`.
fn read_usage(usage: Raw<'_>) -> Option<Usage> {
    let (mut prompt, mut total) = (None, None);
    if usage.shape() != Shape::Object {
        return None;
    }
    let mut cursor = Cursor::new(usage.text());
    let read = cursor.object(|cursor, name| {
        let value = cursor.value()?;
        if name.is("prompt_tokens") {
            prompt = usage::count(value);
        } else if name.is("total_tokens") {
            total = usage::count(value);
        }
        Ok::<(), SyntaxError>(())
    });
    read.ok()?;
    let reported = [prompt, total].into_iter().flatten();
    let input = reported.into_iter().find(|tokens| *tokens > 0)?;
    Some(Usage {
        input,
        ..Usage::default()
    })
}
