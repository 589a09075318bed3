//! Serves media: a reader takes a slot and then gets the bytes.

use std::net::IpAddr;

use protocol::Failure;
use store::MediaBody;

use super::reads::{MediaRead, MediaReads};
use super::stream::MediaStream;
use crate::engine::Engine;

impl Engine {
    /// Takes a reader slot. `from` is `None` behind a proxy, whose address many callers share.
    pub fn read_media(&self, from: Option<IpAddr>) -> Result<MediaRead, Failure> {
        let bounds = self.settings.media;
        MediaReads::enter(
            &self.media_reads,
            from,
            bounds.reads_max,
            bounds.read_within,
        )
    }

    /// Makes a response body for the reader that has this slot.
    pub fn stream_of(&self, body: MediaBody, read: MediaRead) -> MediaStream {
        let served_bytes = self.metrics().media.served_bytes.clone();
        MediaStream {
            body,
            served_bytes,
            read,
        }
    }
}
