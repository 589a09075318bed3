//! Reads the starting image, in each notation that clients use.

use std::ops::Range;

use bytes::Bytes;

use crate::byte_queue::ByteQueue;
use crate::canon::data_uri;
use crate::failure::Failure;
use crate::json::{Members, Raw, Spelling, write_string};
use crate::video::check;

const PARAM: &str = "instances[0].image";
/// Members that refer to a stored image.
const STORED: [&str; 3] = ["gcs_uri", "uri", "file_uri"];

/// An image inside the request.
#[derive(Debug)]
pub(super) struct Image {
    mime: String,
    /// The position of its base64, including the quotes.
    data: Range<usize>,
}

impl Image {
    /// Reads `{bytesBase64Encoded, mimeType}`, which libraries send, or `{inlineData: {data,
    /// mimeType}}` of the vendor's samples.
    pub(super) fn read(raw: Raw<'_>) -> Result<Self, Failure> {
        let outer = Members::nested(raw, "instances[0].image.", Spelling::SnakeOrCamel)?;
        for name in STORED {
            if outer.get(name)?.is_some() {
                let message = "`instances[0].image` must hold the picture itself, in base64.";
                return Err(Failure::stateful_not_supported(message).param(PARAM));
            }
        }
        let bytes = outer.get("bytes_base64_encoded")?;
        let (inner, data) = match (bytes, outer.object("inline_data")?) {
            (Some(data), None) => (None, Some(data)),
            (None, Some(inline)) => {
                let path = "instances[0].image.inlineData.";
                let inner = Members::nested(inline, path, Spelling::SnakeOrCamel)?;
                let data = inner.get("data")?;
                (Some(inner), data)
            }
            _ => (None, None),
        };
        let data = data.filter(|data| check::is_base64(*data)).ok_or_else(|| {
            let message = "`instances[0].image` needs exactly one of `bytesBase64Encoded` and \
                           `inlineData`, which hold base64.";
            Failure::invalid(message).param(PARAM)
        })?;
        let mime = inner.as_ref().unwrap_or(&outer).string("mime_type")?;
        let mime = match &mime {
            Some(mime) if mime.starts_with("image/") => mime,
            Some(_) => {
                let message = "`instances[0].image.mimeType` must be the type of a picture.";
                return Err(Failure::invalid(message).param("instances[0].image.mimeType"));
            }
            None => {
                let text = data.string().and_then(|text| text.decode().ok());
                data_uri::sniff(&text.unwrap_or_default())
            }
        };
        Ok(Self {
            mime: mime.to_owned(),
            data: data.span(),
        })
    }

    /// Writes the image in the upstream's notation.
    pub(super) fn write(&self, body: &Bytes, out: &mut ByteQueue) {
        out.copy(b"{\"bytesBase64Encoded\":");
        out.share(body, self.data.clone());
        let mut mime = b",\"mimeType\":".to_vec();
        write_string(&mut mime, &self.mime);
        mime.push(b'}');
        out.copy(&mime);
    }
}
