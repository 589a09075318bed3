//! Writes a creation for an upstream, and reads the answer to it.

use bytes::Bytes;

use super::request::Request;
use crate::byte_queue::ByteQueue;
use crate::failure::Failure;
use crate::json::{Members, Spelling, write_string};

/// Members that are for the gateway, or that it writes in another form. The upstream does not
/// receive them.
const CONSUMED: [&str; 4] = ["model", "duration", "seconds", "callback_url"];
impl Request {
    /// The request for an upstream, with its name of the model, with the duration as a number, and
    /// without members for the gateway. All other members are unchanged.
    pub(super) fn write_for(&self, upstream_model: &str) -> Result<Vec<Bytes>, Failure> {
        let mut head = b"{\"model\":".to_vec();
        write_string(&mut head, upstream_model);
        if let Some(seconds) = self.seconds {
            head.extend_from_slice(format!(",\"duration\":{seconds}").as_bytes());
        }
        let mut out = ByteQueue::new();
        out.copy(&head);
        let members = Members::read(&self.body, Spelling::One)?;
        for member in members.iter() {
            if CONSUMED.contains(&&*member.name) || member.value.is_null() {
                continue;
            }
            let mut name = b",".to_vec();
            write_string(&mut name, &member.name);
            name.push(b':');
            out.copy(&name);
            out.share(&self.body, member.value.span());
        }
        out.copy(b"}");
        Ok(out.into_pieces())
    }
}

/// The upstream's id in its answer to a creation.
pub(super) fn read_creation(body: &[u8]) -> Option<String> {
    let value: serde_json::Value = serde_json::from_slice(body).ok()?;
    let id = value["request_id"].as_str()?;
    (!id.is_empty()).then(|| id.to_owned())
}
