//! Tests the media storage, in the same way on a folder and on a bucket of a real S3 server.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod faults;
mod s3;
mod story;
mod sweeping;
mod test_storage;
