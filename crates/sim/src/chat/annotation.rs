//! Writes annotations, which name the source of a text.

use crate::model::Output;
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct Annotation {
    r#type: &'static str,
    url_citation: UrlCitation,
}

#[derive(Serialize)]
struct UrlCitation {
    url: String,
    title: String,
    /// In characters, not bytes.
    start_index: usize,
    end_index: usize,
}

impl Annotation {
    /// An annotation that names the source of the whole text; `None` if the output has no citation.
    pub(super) fn of(output: &Output) -> Option<Self> {
        let citation = output.citation.as_ref()?;
        Some(Self {
            r#type: "url_citation",
            url_citation: UrlCitation {
                url: citation.url.clone(),
                title: citation.title.clone(),
                start_index: 0,
                end_index: output.text.as_str().chars().count(),
            },
        })
    }
}
