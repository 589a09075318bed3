//! Writes responses: `write` builds them, `headers` and `cors` write their headers, `body` sends their
//! content.

mod body;
mod cors;
mod headers;
mod write;

pub(super) use body::ResponseBody;
pub(super) use cors::{Cors, Grant};
pub(super) use write::{
    answer, failed_call, failure, failure_and_close, file, finish, json, media, no_content,
    switching_protocols,
};
