//! Tests of the public listener: credentials, paths, headers, limits, and hostile or unusual clients.

mod auth;
mod body_memory;
mod catalog;
mod cors;
mod framing;
mod http2;
mod key_models;
mod limits;
mod page;
mod plain_http;
mod tiny_items;
mod tls;
