//! Closes upstream connections that have been idle for too long.

use std::time::Duration;

use upstream::Channel;

use crate::engine::Engine;

/// The pause between two passes over the pools.
const LOOK_EVERY: Duration = Duration::from_secs(5);

impl Engine {
    /// Closes expired idle connections of all channels for as long as the future is polled. Otherwise a channel that is
    /// no longer called would keep its connections open.
    pub async fn close_expired_connections(&self) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let catalog = self.catalog();
            catalog.channels().for_each(Channel::close_expired);
        }
    }
}

#[cfg(test)]
mod tests {
    use store::{Media, MediaPlace, MediaSettings, Store};
    use tempfile::TempDir;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use upstream::{ChannelSpec, Endpoint, Timeouts, UpstreamRequest};

    use super::*;
    use crate::catalog::Catalog;
    use crate::settings::Settings;

    async fn engine_with_channel(base_url: String, folder: &TempDir) -> Engine {
        let mut database = store::Settings::at(folder.path().join("tollgate.db"));
        database.disk_floor_bytes = 0;
        let (store, _) = Store::open(&database).unwrap();
        let media = Media::open(&MediaSettings {
            place: MediaPlace::Folder(folder.path().join("media")),
            ..MediaSettings::default()
        });
        let engine = Engine::new(store, media.unwrap(), Settings::default());
        let channel = ChannelSpec {
            name: "main".to_owned(),
            preset: "openai-compatible".parse().unwrap(),
            base_url: Some(base_url),
            credential: None,
            account: upstream::Account::default(),
            protocols: None,
            private_network: false,
            keeps_output_limit: None,
            client_gone_drain: None,
            counts_tokens: None,
            sends_traceparent: false,
        };
        let time = Duration::from_secs(10);
        let times = Timeouts {
            connect: time,
            first_byte: time,
            idle: time,
            total: time,
        };
        let before = Catalog::default();
        let catalog = Catalog::build(vec![channel], &times, vec![], &before, engine.store());
        engine.set_catalog(catalog.await.unwrap());
        engine
    }

    #[tokio::test]
    async fn a_channel_that_is_not_called_again_closes_its_connections() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}", listener.local_addr().unwrap());
        let upstream = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 4096];
            assert!(socket.read(&mut request).await.unwrap() > 0);
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
            socket.write_all(answer).await.unwrap();
            // From here on the connection is idle, until the gateway closes it.
            socket.read(&mut request).await.unwrap()
        });
        let folder = TempDir::new().unwrap();
        let engine = engine_with_channel(base_url, &folder).await;
        let channel = engine.catalog().channels().next().unwrap().clone();
        let call = UpstreamRequest::json(Endpoint::Embeddings, "m", vec![]);
        let answer = channel.send(&call).await.unwrap();
        assert_eq!(answer.body.collect(10).await.unwrap(), "ok");
        assert_eq!(channel.idle_connections(), 1);

        tokio::time::pause();
        let closing = engine.close_expired_connections();
        let minutes = Duration::from_secs(120);
        tokio::time::timeout(minutes, closing).await.unwrap_err();
        assert_eq!(channel.idle_connections(), 0);
        tokio::time::resume();
        assert_eq!(upstream.await.unwrap(), 0);
    }
}
