//! Reads answers in the contents form.

use super::shown_usage::shown_usage;
use crate::json::patch::Edit;
use crate::json::{Cursor, Raw, Shape, SyntaxError, write_string};
use crate::rejection;
use crate::scrub::Ids;
use crate::unusable_answer::UnusableAnswer;

pub(super) struct ContentsAnswer<'a> {
    pub(super) vectors: Vec<Raw<'a>>,
    pub(super) usage: Option<Raw<'a>>,
    /// Edits that remove the upstream's identity.
    pub(super) edits: Vec<Edit>,
}

impl<'a> ContentsAnswer<'a> {
    pub(super) fn read(text: &'a str, model: &str) -> Result<Self, UnusableAnswer> {
        let mut found = Self {
            vectors: Vec::new(),
            usage: None,
            edits: Vec::new(),
        };
        let mut error = None;
        let mut public = Vec::new();
        write_string(&mut public, model);
        let mut ids = Ids::new(&public, 0);
        let mut cursor = Cursor::new(text);
        cursor.object(|cursor, name| {
            let value = cursor.value()?;
            if name.is("embedding") || name.is("embeddings") {
                ids.keep(name, value, &mut found.edits);
                return found.note_vectors(value, &public);
            }
            if name.is("usageMetadata") {
                found.usage = Some(value);
                ids.keep(name, value, &mut found.edits);
                found.edits.extend(shown_usage(value, model));
                return Ok(());
            }
            ids.member(name, value, &mut found.edits);
            if name.is("error") {
                error = Some(value);
            }
            Ok::<(), SyntaxError>(())
        })?;
        ids.end(&mut found.edits);
        cursor.end()?;
        if let Some(failure) = rejection::read_member(error, model) {
            return Err(UnusableAnswer::Failure(failure));
        }
        if found.vectors.is_empty() {
            return Err(UnusableAnswer::malformed("the answer has no embeddings"));
        }
        Ok(found)
    }

    /// Records the values of one vector, or of each vector in a list.
    fn note_vectors(&mut self, value: Raw<'a>, model: &[u8]) -> Result<(), SyntaxError> {
        let offset = value.span().start;
        let mut cursor = Cursor::new(value.text());
        if value.shape() == Shape::Array {
            return cursor.array(|cursor| self.note_vectors(cursor.value()?.moved(offset), model));
        }
        let mut ids = Ids::new(model, offset);
        cursor.object(|cursor, name| {
            let value = cursor.value()?.moved(offset);
            if name.is("values") && value.shape() == Shape::Array {
                self.vectors.push(value);
                ids.keep(name, value, &mut self.edits);
            } else {
                ids.member(name, value, &mut self.edits);
            }
            Ok::<(), SyntaxError>(())
        })?;
        ids.end(&mut self.edits);
        Ok(())
    }
}
