//! Serves what needs no key: the page for callers, its files, and the description of the API.

use bytes::Bytes;
use http::{HeaderMap, Response};

use crate::assets::Lifetime;
use crate::callers_page::{self, asks_for_html};
use crate::context::RequestContext;
use crate::endpoint::Endpoint;
use crate::openapi;

/// The file that an endpoint serves to a client with these headers. `None` if there is none, or if the page is switched
/// off.
pub(super) fn find(
    context: &RequestContext,
    endpoint: &Endpoint,
    headers: &HeaderMap,
) -> Option<Response<Bytes>> {
    let page = context.connection.listener.page.as_ref();
    match endpoint {
        Endpoint::Page => {
            let page = page?;
            let shown = if asks_for_html(headers) {
                page.html(context.engine())
            } else {
                page.json()
            };
            Some(shown.answer(headers, Lifetime::Checked))
        }
        Endpoint::PageFile(path) => {
            let file = page.and_then(|_| callers_page::file(path))?;
            Some(file.answer(headers, Lifetime::Forever))
        }
        Endpoint::OpenApi => Some(openapi::description().answer(headers, Lifetime::Checked)),
        _ => None,
    }
}
