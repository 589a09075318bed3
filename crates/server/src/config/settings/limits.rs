//! `[limits]`: sizes and counts.

use crate::config::document::Section;
use crate::config::document::setting::{positive, settings};

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

settings! {
    /// Sizes and counts. A request that is too large is refused before any money is held.
    pub struct Limits in "limits" {
        /// All headers of one request together.
        pub header_bytes: usize = positive("header_bytes", 32 * KIB),
        /// One header, name and value.
        pub header_one_bytes: usize = positive("header_one_bytes", 16 * KIB),
        /// Path and query of one request.
        pub target_bytes: usize = positive("target_bytes", 8 * KIB),
        /// The body of a request to a text endpoint.
        pub body_text_bytes: usize = positive("body_text_bytes", 32 * MIB),
        /// The body of a request for embeddings.
        pub body_embeddings_bytes: usize = positive("body_embeddings_bytes", 16 * MIB),
        /// The body of a request for images.
        pub body_image_bytes: usize = positive("body_image_bytes", 100 * MIB),
        /// The body of a request for a video.
        pub body_video_bytes: usize = positive("body_video_bytes", 50 * MIB),
        /// The body of a request for a transcript.
        pub body_stt_bytes: usize = positive("body_stt_bytes", 50_000_000),
        /// The body of a request for speech.
        pub body_tts_bytes: usize = positive("body_tts_bytes", MIB),
        /// The memory of this node for request bodies, and for answers and events above 256 KiB. Answers of upstreams
        /// about tasks take at most half of it.
        pub body_memory_bytes: usize = positive("body_memory_bytes", 512 * MIB),
        /// How much of that memory the request bodies above 64 KiB of one wallet may take, and as much again its
        /// smaller ones. Memory is charged as bytes arrive, and an eighth of all memory is reserved for smaller bodies.
        pub body_memory_wallet_bytes: usize = positive("body_memory_wallet_bytes", 192 * MIB),
        /// How much of that memory the request bodies above 64 KiB of one key may take, with the pictures that are
        /// fetched for them, the memory of their conversion and the messages of its sessions.
        pub body_memory_key_bytes: usize = positive("body_memory_key_bytes", 128 * MIB),
        /// How much of the disk the uploads of one wallet may take at the same time. Audio above 1 MiB is on the disk until
        /// its transcript is made.
        pub upload_disk_wallet_bytes: usize = positive("upload_disk_wallet_bytes", 2048 * MIB),
        /// One buffered answer of an upstream on the text endpoints.
        pub answer_text_bytes: usize = positive("answer_text_bytes", 32 * MIB),
        /// One answer of an upstream with pictures or vectors.
        pub answer_image_bytes: usize = positive("answer_image_bytes", 100 * MIB),
        /// The maximum number of images that we fetch for one request. Callers name them by URL, and we fetch them for
        /// upstreams that accept only inline images.
        pub fetched_images: usize = positive("fetched_images", 20),
        /// One fetched image.
        pub fetched_image_bytes: usize = positive("fetched_image_bytes", 20 * MIB),
        /// All fetched images of one request together.
        pub fetched_images_bytes: usize = positive("fetched_images_bytes", 32 * MIB),
        /// One message of a WebSocket.
        pub socket_message_bytes: usize = positive("socket_message_bytes", 16 * MIB),
        /// One video that we keep as the result of a task.
        pub media_video_bytes: usize = positive("media_video_bytes", 512 * MIB),
        /// One picture that we keep as the result of a task.
        pub media_image_bytes: usize = positive("media_image_bytes", 20 * MIB),
        /// The maximum number of kept files that callers may read at the same time. One address may read at most a
        /// quarter of them.
        pub media_reads: usize = positive("media_reads", 512),
        /// Open connections in all.
        pub connections: usize = positive("connections", 16_384),
        /// Open connections from one IPv4 address, or from one /64 prefix of IPv6 addresses.
        pub connections_per_address: usize = positive("connections_per_address", 2_048),
        /// Calls of this node that are not settled yet.
        pub requests_in_flight: usize = positive("requests_in_flight", 10_000),
        /// Requests of one key on this node whose answers are not fully sent yet.
        pub requests_in_flight_per_key: usize = positive("requests_in_flight_per_key", 2_500),
        /// Free requests (token counts and lists of voices) of one key per minute on this node. The key's own
        /// limit per minute applies too.
        pub token_counts_per_minute: u32 = positive("token_counts_per_minute", 600),
    }
}
