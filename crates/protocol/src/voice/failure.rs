//! Reads errors of voice upstreams.

use crate::failure::Failure;
use crate::rejection;
use crate::scrub::Names;

/// Reads an error. Unlike with text upstreams, a 404 refers to something that the client named: a
/// voice.
pub fn read_failure(status: u16, body: &[u8], names: Names<'_>) -> Failure {
    let mut failure = rejection::read_failure(status, body, names);
    if status == 404 && !rejection::rejects_gateway(body) {
        let mut not_found = rejection::read_failure(400, body, names).with_status(404);
        not_found.cause = failure.cause.take();
        return not_found;
    }
    failure
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Code;

    #[test]
    fn an_unknown_voice_stays_unknown_and_an_unknown_model_is_our_fault() {
        let names = Names::of_model("voice-x", "maker/x");
        for (status, body, code, expected_status) in [
            (
                404,
                r#"{"code":"not-found","error":"The voice zed does not exist."}"#,
                Code::UpstreamRejected,
                404,
            ),
            (404, "", Code::UpstreamRejected, 404),
            (
                404,
                r#"{"error":{"message":"no voice-x","code":"model_not_found"}}"#,
                Code::UpstreamError,
                502,
            ),
            (
                404,
                r#"{"code":"model_not_found","error":"no voice-x"}"#,
                Code::UpstreamError,
                502,
            ),
            (
                400,
                r#"{"code":"bad","error":"speed"}"#,
                Code::UpstreamRejected,
                400,
            ),
            (401, "{}", Code::UpstreamError, 502),
            (429, "{}", Code::UpstreamOverloaded, 503),
        ] {
            let failure = read_failure(status, body.as_bytes(), names);
            assert_eq!(
                (failure.code, failure.status()),
                (code, expected_status),
                "{body}"
            );
            assert!(!failure.message.contains("voice-x"), "{body}");
        }
    }
}
