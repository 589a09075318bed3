//! Sources of an answer: pages on the web, and which part of the text they support.

use crate::mind::Citation;
use serde::Serialize;

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "the names of the wire")]
pub(super) struct Grounding {
    grounding_chunks: [Chunk; 1],
    grounding_supports: [Support; 1],
    web_search_queries: [String; 1],
}

#[derive(Debug, Clone, Serialize)]
struct Chunk {
    web: Page,
}

#[derive(Debug, Clone, Serialize)]
struct Page {
    uri: String,
    title: String,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Support {
    segment: Segment,
    grounding_chunk_indices: [usize; 1],
}

/// A run of bytes; one that begins at the first byte does not say so.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Segment {
    end_index: usize,
    text: String,
}

impl Grounding {
    /// The whole text is from one page.
    pub(super) fn of(citation: &Citation, text: &str) -> Self {
        Self {
            grounding_chunks: [Chunk {
                web: Page {
                    uri: citation.url.clone(),
                    title: citation.title.clone(),
                },
            }],
            grounding_supports: [Support {
                segment: Segment {
                    end_index: text.len(),
                    text: text.to_owned(),
                },
                grounding_chunk_indices: [0],
            }],
            web_search_queries: [citation.title.clone()],
        }
    }
}
