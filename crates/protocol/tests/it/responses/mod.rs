//! The Responses dialect, tested through the public API.

mod any;
mod convert_answers;
mod convert_requests;
#[expect(
    clippy::needless_pass_by_value,
    reason = "values made in place read better"
)]
mod convert_streams;
mod native_answers;
mod native_requests;
mod native_streams;
mod validator;
