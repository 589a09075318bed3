//! Writes the requests of guarded calls. They reveal nothing about us except our user agent.

use std::io::Write as _;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};

use super::external_url::ExternalUrl;
use crate::header_line::{USER_AGENT, write_line};
use crate::timeouts::Timeouts;

/// The size and time limits of a fetch, including its redirects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchLimits {
    pub times: Timeouts,
    pub bytes_max: u64,
}

/// A document to be delivered by POST.
#[derive(Debug)]
pub struct Post<'a> {
    pub url: &'a str,
    pub content_type: HeaderValue,
    /// Additional headers, sent unchanged.
    pub headers: &'a HeaderMap,
    pub body: Bytes,
    /// The time limit, from the DNS lookup to the head of the response.
    pub within: Duration,
}

pub(super) fn write_get(link: &ExternalUrl, head: &mut Vec<u8>) {
    write_start("GET", link, head);
    head.extend_from_slice(b"accept: */*\r\n");
}

pub(super) fn write_post(link: &ExternalUrl, post: &Post<'_>, head: &mut Vec<u8>) {
    write_start("POST", link, head);
    write_line(head, "content-type", &post.content_type);
    for (name, value) in post.headers {
        write_line(head, name.as_str(), value);
    }
    // Writing into a Vec cannot fail.
    let _ = write!(head, "content-length: {}\r\n", post.body.len());
}

/// Writes the request line and the first headers. The URL parser leaves neither spaces nor line
/// breaks in a target or an authority.
fn write_start(method: &str, link: &ExternalUrl, head: &mut Vec<u8>) {
    let _ = write!(
        head,
        "{method} {} HTTP/1.1\r\nhost: {}\r\nuser-agent: {USER_AGENT}\r\n\
         accept-encoding: identity\r\nconnection: close\r\n",
        link.target(),
        link.authority(),
    );
}
