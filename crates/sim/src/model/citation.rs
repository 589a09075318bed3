//! Finds the source that an answer must cite.

use super::prompt_values::{clipped, find_ignoring_case};

const ORDER: &str = "cite ";
const URL_BYTES_MAX: usize = 2000;

/// The web page that is cited as the source of the whole text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Citation {
    pub(crate) url: String,
    pub(crate) title: String,
}

/// The page that the question asks the model to cite.
pub(super) fn requested(question: &str) -> Option<Citation> {
    let start = find_ignoring_case(question, ORDER)? + ORDER.len();
    let url = question.get(start..)?.split_whitespace().next()?;
    let url = clipped(url, URL_BYTES_MAX).trim_end_matches(['.', ',', '!', '?']);
    let (_, rest) = url.split_once("://").filter(|_| url.starts_with("http"))?;
    let host = rest.split('/').next().unwrap_or(rest);
    Some(Citation {
        url: url.to_owned(),
        title: format!("A page of {host}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_page_on_the_web_is_cited() {
        let found = requested("Please cite https://a.example/b?c=1. Thanks").unwrap();
        assert_eq!(found.url, "https://a.example/b?c=1");
        assert_eq!(found.title, "A page of a.example");
        for question in ["cite me", "cite ftp://a/b", "cite ", "https://a.example"] {
            assert_eq!(requested(question), None, "{question}");
        }
    }
}
