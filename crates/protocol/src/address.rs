//! Addresses that callers name and that only pass through.

/// Whether a text is an address of the web, by its beginning; those who fetch it judge the rest.
pub(crate) fn is_web(url: &str) -> bool {
    ["https://", "http://"].iter().any(|scheme| {
        let start = url.get(..scheme.len());
        url.len() > scheme.len() && start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    })
}
