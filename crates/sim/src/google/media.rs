//! Reads media in requests, which are inline or linked.

use super::Refusal;
use crate::media;
use crate::model::{Media, MediaKind, Source};

fn kind_of(mime_type: &str) -> MediaKind {
    match mime_type.split('/').next() {
        Some("image") => MediaKind::Image,
        Some("audio") => MediaKind::Sound,
        _ => MediaKind::File,
    }
}

/// Reads media given as base64.
pub(crate) fn of_blob(mime_type: &str, data: &str, path: &str) -> Result<Media, Refusal> {
    if !mime_type.contains('/') {
        return Err(Refusal::invalid(format!("Unsupported MIME type: {mime_type}")).field(path));
    }
    media::of_base64(kind_of(mime_type), mime_type, data).map_err(|_| {
        Refusal::invalid(format!(
            "Invalid value at '{path}' (TYPE_BYTES), Base64 decoding failed"
        ))
        .field(path)
    })
}

/// Reads media given by URL: a public link or an uploaded file.
pub(crate) fn linked(mime_type: &str, uri: &str, path: &str) -> Result<Media, Refusal> {
    let known = ["http://", "https://", "gs://"];
    if !known.iter().any(|scheme| uri.starts_with(scheme)) {
        return Err(Refusal::invalid(format!("Unsupported file uri: {uri}")).field(path));
    }
    Ok(Media {
        // A link without a type counts as a picture.
        kind: if mime_type.is_empty() {
            MediaKind::Image
        } else {
            kind_of(mime_type)
        },
        source: Source::Link(uri.to_owned()),
        low_detail: false,
    })
}
