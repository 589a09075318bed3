//! Renews the tokens of channels before they expire, so that no call waits for a token.

use std::time::Duration;

use futures_util::future::join_all;
use upstream::Channel;

use crate::engine::Engine;

/// The pause between two passes over the channels. It is short enough for tokens that live for seconds.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl Engine {
    /// Renews tokens for as long as the future is polled.
    pub async fn renew_tokens(&self) {
        loop {
            let catalog = self.catalog();
            join_all(catalog.channels().map(renew)).await;
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

async fn renew(channel: &Channel) {
    let name = channel.name();
    match channel.renew_token().await {
        None => {}
        Some(Ok(())) => tracing::debug!(channel = name, "the channel has a new token"),
        Some(Err(error)) => {
            tracing::error!(channel = name, %error, "the channel has no new token");
        }
    }
}
