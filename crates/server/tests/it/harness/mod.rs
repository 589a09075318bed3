//! The test environment (a "test gateway"): a simulated upstream in this process, the real gateway program as a child
//! process, and a client that shares no code with either.

mod answer;
mod canned_upstream;
mod chat_calls;
mod cluster;
mod connection;
mod conversation;
mod database;
mod dialect;
mod events;
// A proxy that cuts connections to the database. The tests of the store use it too.
#[expect(dead_code, reason = "some of its tricks are the store's alone")]
#[path = "../../../../store/tests/story/faulty_proxy.rs"]
mod faulty_proxy;
mod http2;
mod pairs;
pub(crate) mod pictures;
mod process;
mod receiver;
mod request;
#[path = "../../../../store/tests/media/s3.rs"]
mod s3;
mod stepped_upstream;
mod test_gateway;
mod wait;

pub(crate) use answer::{Answer, Head, assert_openai_error};
pub(crate) use canned_upstream::{CANNED_MODEL, CANNED_NAME, CannedUpstream};
pub(crate) use chat_calls::{MODEL, OUTPUT_RESERVE, ask, cost, expected_cost, micro, with};
pub(crate) use cluster::{Cluster, DB_PASSWORD};
pub(crate) use connection::{BodyEnd, Connection};
pub(crate) use conversation::{AnswerContent, Conversation};
pub(crate) use database::Database;
pub(crate) use dialect::Dialect;
pub(crate) use events::{Event, Streaming};
pub(crate) use faulty_proxy::Mode;
pub(crate) use http2::{Http2, take_rest};
pub(crate) use pairs::{model_via, pairs};
pub(crate) use process::{
    CLOCK_FILE, Channel, Output, Running, can_play_clocks, run, run_in, signal,
};
pub(crate) use receiver::{Delivery, Receiver, Reply};
pub(crate) use request::Request;
pub(crate) use s3::{ACCESS_KEY, BUCKET, S3, SECRET_KEY};
pub(crate) use stepped_upstream::SteppedUpstream;
pub(crate) use test_gateway::{GatewayBuilder, Key, TestGateway, UPSTREAM_KEY};
pub(crate) use wait::{enough_of_the_day, eventually, within};
