//! The limits of the public listener, taken from the configuration.

use http_server::{Limits, WaitLimits};

use crate::config::Config;

pub(super) fn public_limits(config: &Config) -> Limits {
    let Config {
        limits, timeouts, ..
    } = config;
    Limits {
        target_bytes_max: limits.target_bytes,
        headers_bytes_max: limits.header_bytes,
        header_bytes_max: limits.header_one_bytes,
        body_text_bytes: limits.body_text_bytes,
        body_embeddings_bytes: limits.body_embeddings_bytes,
        body_image_bytes: limits.body_image_bytes,
        body_tts_bytes: limits.body_tts_bytes,
        body_stt_bytes: limits.body_stt_bytes,
        body_video_bytes: limits.body_video_bytes,
        body_idle: timeouts.client_body_idle,
        body_total: timeouts.client_body_total,
        waits: WaitLimits {
            head: timeouts.client_header,
            keep_alive: timeouts.client_keep_alive,
            write: timeouts.client_write_idle,
        },
        ping: timeouts.client_ping,
        ping_answer: timeouts.client_ping_answer,
        connections_max: limits.connections,
        connections_per_address_max: limits.connections_per_address,
        sdk_aliases: config.server.sdk_aliases,
        page: config.server.page,
        page_models: config.server.page_models,
        cors_origins: config.server.cors_origins.clone(),
        trusted_proxies: config.server.trusted_proxies.clone(),
        trusted_callers: config.telemetry.trusted_callers.clone(),
    }
}
