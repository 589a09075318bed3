//! Writes grounding metadata: the web pages that an answer used, and the part of the text that they support.

use crate::model::Citation;
use serde::Serialize;

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "the names of the wire")]
pub(super) struct Grounding {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    grounding_chunks: Vec<Chunk>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    grounding_supports: Vec<GroundingSupport>,
    web_search_queries: Vec<String>,
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
struct GroundingSupport {
    segment: Segment,
    grounding_chunk_indices: [usize; 1],
}

/// A range of bytes in the text. A start of 0 is not written.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Segment {
    end_index: usize,
    text: String,
}

impl Grounding {
    /// Metadata of searches without a visible source; `None` if there was no search.
    pub(super) fn searched(searches: u64) -> Option<Self> {
        (searches > 0).then(|| Self {
            grounding_chunks: Vec::new(),
            grounding_supports: Vec::new(),
            web_search_queries: queries(searches),
        })
    }

    /// Metadata that names one page as the source of the whole text, found by at least one search.
    pub(super) fn of(citation: &Citation, text: &str, searches: u64) -> Self {
        Self {
            grounding_chunks: vec![Chunk {
                web: Page {
                    uri: citation.url.clone(),
                    title: citation.title.clone(),
                },
            }],
            grounding_supports: vec![GroundingSupport {
                segment: Segment {
                    end_index: text.len(),
                    text: text.to_owned(),
                },
                grounding_chunk_indices: [0],
            }],
            web_search_queries: if searches == 0 {
                vec![citation.title.clone()]
            } else {
                queries(searches)
            },
        }
    }
}

fn queries(searches: u64) -> Vec<String> {
    (1..=searches).map(|n| format!("sim query {n}")).collect()
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FetchedPages {
    url_metadata: Vec<FetchedPage>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct FetchedPage {
    retrieved_url: String,
    url_retrieval_status: &'static str,
}

impl FetchedPages {
    /// Metadata of this many fetched pages; `None` if there are none.
    pub(super) fn of(fetches: u64) -> Option<Self> {
        let page = |n| FetchedPage {
            retrieved_url: format!("https://sim-upstream.example/page/{n}"),
            url_retrieval_status: "URL_RETRIEVAL_STATUS_SUCCESS",
        };
        (fetches > 0).then(|| Self {
            url_metadata: (1..=fetches).map(page).collect(),
        })
    }
}
