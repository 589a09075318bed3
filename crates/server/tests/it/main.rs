//! The whole service from outside: real HTTP, the real program, a scripted upstream.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed, and helpers are part of the tests"
)]

mod absurd_usage;
mod admin;
mod admission;
mod auth;
mod balance;
mod bill;
mod body_memory;
mod books;
mod captures;
mod catalog;
mod chat_plain;
mod chat_stream;
mod cli;
mod client_gone;
mod clock;
mod content_tasks;
mod continuity;
mod crash;
mod debt;
mod demo;
mod embeddings;
mod failover;
mod flushing;
mod framing;
mod harness;
mod http2;
mod image_stream;
mod image_urls;
mod images;
mod leaks;
mod leaks_on_pairs;
mod limits;
mod logprobs;
mod long_cache;
mod many_tasks;
mod media;
mod nodes;
mod omni;
mod outage;
mod output_limit;
mod picture_prices;
mod pictures;
mod plain_http;
mod predict;
mod prompt_count;
mod rates;
mod refusals;
mod rehost;
mod reload;
mod shutdown;
mod sockets;
mod speech;
mod standby;
mod task_callbacks;
mod task_kills;
mod task_memory;
mod tasks;
mod transcript;
mod upstream_plain;
mod upstream_stream;
mod videos;
mod zero_usage;
