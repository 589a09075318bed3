//! Sizes and counts.

use crate::config::document::Section;

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// `[limits]`: sizes and counts; what exceeds one is refused before any money is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// All headers of one request together.
    pub header_bytes: usize,
    /// One header, name and value.
    pub header_one_bytes: usize,
    /// The path and query of one request.
    pub target_bytes: usize,
    pub body_text_bytes: usize,
    pub body_embeddings_bytes: usize,
    pub body_image_bytes: usize,
    pub body_video_bytes: usize,
    pub body_stt_bytes: usize,
    pub body_tts_bytes: usize,
    /// All request bodies of this node together, and answers and events above 256 KiB.
    pub body_memory_bytes: usize,
    /// The part of it that bodies above 64 KiB of one wallet may take, and of one key.
    pub body_memory_wallet_bytes: usize,
    pub body_memory_key_bytes: usize,
    /// One buffered answer of an upstream on the text endpoints.
    pub answer_text_bytes: usize,
    /// One answer with pictures or vectors.
    pub answer_image_bytes: usize,
    /// Pictures fetched by URL for one request, and their sizes: one, and all together.
    pub fetched_images: usize,
    pub fetched_image_bytes: usize,
    pub fetched_images_bytes: usize,
    /// One message of a socket.
    pub socket_message_bytes: usize,
    /// Results that an upstream has ready and we keep: a video, a picture.
    pub media_video_bytes: usize,
    pub media_image_bytes: usize,
    /// Files of results that are read at once.
    pub media_reads: usize,
    pub connections: usize,
    pub connections_per_address: usize,
    pub requests_in_flight: usize,
    /// Requests of one key on this node, until their answers are taken.
    pub requests_in_flight_per_key: usize,
    /// Token counts that one key may ask for on this node in a minute.
    pub token_counts_per_minute: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header_bytes: 32 * KIB,
            header_one_bytes: 16 * KIB,
            target_bytes: 8 * KIB,
            body_text_bytes: 32 * MIB,
            body_embeddings_bytes: 16 * MIB,
            body_image_bytes: 100 * MIB,
            body_video_bytes: 50 * MIB,
            body_stt_bytes: 50_000_000,
            body_tts_bytes: MIB,
            body_memory_bytes: 512 * MIB,
            body_memory_wallet_bytes: 192 * MIB,
            body_memory_key_bytes: 128 * MIB,
            answer_text_bytes: 32 * MIB,
            answer_image_bytes: 100 * MIB,
            fetched_images: 20,
            fetched_image_bytes: 20 * MIB,
            fetched_images_bytes: 32 * MIB,
            socket_message_bytes: 16 * MIB,
            media_video_bytes: 512 * MIB,
            media_image_bytes: 20 * MIB,
            media_reads: 512,
            connections: 16_384,
            connections_per_address: 2_048,
            requests_in_flight: 10_000,
            requests_in_flight_per_key: 2_500,
            token_counts_per_minute: 600,
        }
    }
}

impl Limits {
    pub(crate) fn read(mut section: Section<'_, '_, '_>) -> Self {
        let mut out = Self::default();
        section.positive("header_bytes", &mut out.header_bytes);
        section.positive("header_one_bytes", &mut out.header_one_bytes);
        section.positive("target_bytes", &mut out.target_bytes);
        section.positive("body_text_bytes", &mut out.body_text_bytes);
        section.positive("body_embeddings_bytes", &mut out.body_embeddings_bytes);
        section.positive("body_image_bytes", &mut out.body_image_bytes);
        section.positive("body_video_bytes", &mut out.body_video_bytes);
        section.positive("body_stt_bytes", &mut out.body_stt_bytes);
        section.positive("body_tts_bytes", &mut out.body_tts_bytes);
        section.positive("body_memory_bytes", &mut out.body_memory_bytes);
        section.positive(
            "body_memory_wallet_bytes",
            &mut out.body_memory_wallet_bytes,
        );
        section.positive("body_memory_key_bytes", &mut out.body_memory_key_bytes);
        section.positive("answer_text_bytes", &mut out.answer_text_bytes);
        section.positive("answer_image_bytes", &mut out.answer_image_bytes);
        section.positive("fetched_images", &mut out.fetched_images);
        section.positive("fetched_image_bytes", &mut out.fetched_image_bytes);
        section.positive("fetched_images_bytes", &mut out.fetched_images_bytes);
        section.positive("socket_message_bytes", &mut out.socket_message_bytes);
        section.positive("media_video_bytes", &mut out.media_video_bytes);
        section.positive("media_image_bytes", &mut out.media_image_bytes);
        section.positive("media_reads", &mut out.media_reads);
        section.positive("connections", &mut out.connections);
        section.positive("connections_per_address", &mut out.connections_per_address);
        section.positive("requests_in_flight", &mut out.requests_in_flight);
        section.positive(
            "requests_in_flight_per_key",
            &mut out.requests_in_flight_per_key,
        );
        section.positive("token_counts_per_minute", &mut out.token_counts_per_minute);
        section.end();
        out
    }
}
