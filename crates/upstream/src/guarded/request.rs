//! What a guarded call says: nothing of us but our name, and no more than it must.

use std::io::Write as _;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};

use super::external_url::ExternalUrl;
use crate::head_template::{USER_AGENT, write_line};
use crate::timeouts::Timeouts;

/// How much a fetch may bring and how long it may take, all redirects together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchLimits {
    pub times: Timeouts,
    pub bytes_max: u64,
}

/// A document to be delivered.
#[derive(Debug)]
pub struct Post<'a> {
    pub url: &'a str,
    pub content_type: HeaderValue,
    /// Further headers; what they say of us is for the caller of this crate to answer for.
    pub headers: &'a HeaderMap,
    pub body: Bytes,
    /// From the look at the name to the head of the answer.
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

/// The parser of links leaves neither spaces nor line ends in a target or an authority.
fn write_start(method: &str, link: &ExternalUrl, head: &mut Vec<u8>) {
    let _ = write!(
        head,
        "{method} {} HTTP/1.1\r\nhost: {}\r\nuser-agent: {USER_AGENT}\r\n\
         accept-encoding: identity\r\nconnection: close\r\n",
        link.target(),
        link.authority(),
    );
}
