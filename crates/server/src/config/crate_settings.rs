//! Converts a configuration to the settings of the lower crates.

use std::net::IpAddr;

use super::document::SecretSource;
use super::load::Config;
use super::settings::{MediaPlace, StoreUrl, read_headers};

impl Config {
    pub fn store_settings(&self) -> store::Settings {
        store::Settings {
            location: self.store_location(),
            gather: self.ledger.gather,
            queue_max: self.ledger.queue_max,
            queue_wait_max: self.ledger.queue_wait,
            debt_limit: self.ledger.debt_limit,
            disk_floor_bytes: self.store.disk_floor_bytes,
            journal_retention_days: self.journal.retention_days,
            ..store::Settings::default()
        }
    }

    fn store_location(&self) -> store::Location {
        match &self.store.url {
            StoreUrl::File(path) => store::Location::File(path.clone()),
            StoreUrl::Server(url) => store::Location::Server(store::Server {
                // A missing password is ignored here. When a whole configuration is read, `live_plan::secrets` reports
                // it.
                password: self.store.password.as_ref().and_then(SecretSource::text),
                ca_file: self.store.ca_file.clone(),
                node: self.server.node.clone(),
                lease: self.store.lease,
                ..store::Server::at(url)
            }),
        }
    }

    pub fn media_settings(&self) -> store::MediaSettings {
        let media = &self.media;
        // Missing credentials are ignored here. When a whole configuration is read, `live_plan::secrets` reports them.
        let text = |source: &Option<SecretSource>| {
            let text = source.as_ref().and_then(SecretSource::text);
            text.unwrap_or_default()
        };
        let place = match &media.place {
            MediaPlace::Folder(folder) => store::MediaPlace::Folder(folder.clone()),
            MediaPlace::Bucket { bucket, prefix } => store::MediaPlace::Bucket(store::Bucket {
                name: bucket.clone(),
                prefix: prefix.clone(),
                endpoint: media.endpoint.clone(),
                region: media
                    .region
                    .clone()
                    .unwrap_or_else(|| "us-east-1".to_owned()),
                access_key_id: text(&media.access_key_id),
                secret_access_key: text(&media.secret_access_key),
                ca_file: media.ca_file.clone(),
                spool: media.spool.clone(),
            }),
        };
        store::MediaSettings {
            place,
            expiry: media.expiry,
            keep_expired: media.keep_expired,
            disk_floor_bytes: self.store.disk_floor_bytes,
        }
    }

    /// The hosts of the database and of the storage, which callers' URLs must not name.
    fn own_hosts(&self) -> Vec<String> {
        let storage = self.media.endpoint.as_deref().and_then(host);
        let database = match &self.store.url {
            StoreUrl::File(_) => Vec::new(),
            StoreUrl::Server(url) => store::Server::at(url).hosts(),
        };
        let database = database.into_iter().filter(|host| !is_loopback(host));
        storage.into_iter().chain(database).collect()
    }

    pub fn engine_settings(&self) -> engine::Settings {
        engine::Settings {
            commit: self.ledger.commit,
            output_reserve_tokens: self.ledger.output_reserve_tokens,
            debt_limit: self.ledger.debt_limit,
            journal_bodies: self.journal.bodies,
            refuse_unpriced_tools: self.ledger.refuse_unpriced_tools,
            refuse_unpriced_text: self.ledger.refuse_unpriced_text,
            answer_bytes_max: self.limits.answer_text_bytes,
            media_bytes_max: self.limits.answer_image_bytes,
            bodies_bytes_max: self.limits.body_memory_bytes,
            callers: engine::CallerLimits {
                key_in_flight_max: self.limits.requests_in_flight_per_key,
                token_counts_per_minute: self.limits.token_counts_per_minute,
                key_bodies_bytes_max: self.limits.body_memory_key_bytes,
                wallet_bodies_bytes_max: self.limits.body_memory_wallet_bytes,
                wallet_uploads_bytes_max: self.limits.upload_disk_wallet_bytes,
            },
            pictures: engine::ImageFetchLimits {
                count_max: self.limits.fetched_images,
                bytes_max: bytes(self.limits.fetched_image_bytes),
                total_bytes_max: bytes(self.limits.fetched_images_bytes),
                within: self.timeouts.image_fetch,
            },
            sockets: engine::SessionLimits {
                ping: self.timeouts.socket_ping,
                dead: self.timeouts.socket_dead,
                session: self.timeouts.socket_session,
                message_bytes_max: self.limits.socket_message_bytes,
            },
            outbound: upstream::AddressPolicy {
                allow: self.outbound.allow.clone(),
                nat64: self.outbound.nat64,
                own_hosts: self.own_hosts(),
                listeners: Vec::new(),
            },
            client_gone_drain: self.timeouts.client_gone_drain,
            keep_alive: self.timeouts.stream_keep_alive,
            in_flight_max: self.limits.requests_in_flight,
            tasks: engine::TaskSettings {
                poll_first: self.tasks.poll_first,
                poll_max: self.tasks.poll_max,
                callback_retry: self.tasks.callback_retry.clone(),
                lease: self.tasks.lease,
                retention: std::time::Duration::from_secs(
                    u64::from(self.tasks.retention_days) * 86_400,
                ),
                public_url: self.server.public_url.clone().unwrap_or_default(),
            },
            media: engine::MediaLimits {
                video_bytes_max: bytes(self.limits.media_video_bytes),
                picture_bytes_max: bytes(self.limits.media_image_bytes),
                within: self.timeouts.media_fetch,
                sweep_every: self.media.sweep,
                reads_max: self.limits.media_reads,
                read_within: self.timeouts.media_read,
            },
            alerts: engine::AlertSettings {
                check_every: self.alerts.check_every,
                retry: self.alerts.retry.clone(),
            },
            telemetry: self.telemetry_settings(),
        }
    }

    fn telemetry_settings(&self) -> engine::TelemetrySettings {
        let telemetry = &self.telemetry;
        // The lookup of secrets has already reported missing and invalid headers.
        let headers = telemetry.headers.as_ref().and_then(SecretSource::text);
        engine::TelemetrySettings {
            otlp_url: telemetry.otlp_url.clone(),
            headers: headers
                .and_then(|text| read_headers(&text).ok())
                .unwrap_or_default(),
            service_name: telemetry.service_name.clone(),
            node: self.server.node.clone(),
            sample_ratio: telemetry.sample_ratio,
            metrics_every: telemetry.metrics.then_some(telemetry.metrics_every),
            wallet_series: telemetry.wallet_series,
        }
    }

    /// Whether two configurations differ only in the parts that can be reloaded: channels, models, the file of known
    /// models, and upstream timeouts.
    pub fn differs_only_in_catalog(&self, other: &Self) -> bool {
        let without_catalog = |config: &Self| Self {
            channels: Vec::new(),
            models: Vec::new(),
            catalog: super::Catalog::default(),
            text: std::sync::Arc::from(""),
            ..config.clone()
        };
        // The upstream timeouts belong to the channels and are reloaded with them.
        let upstream_times = |config: &mut Self| {
            let defaults = super::Timeouts::default();
            config.timeouts.upstream_connect = defaults.upstream_connect;
            config.timeouts.upstream_first_byte = defaults.upstream_first_byte;
            config.timeouts.upstream_idle = defaults.upstream_idle;
            config.timeouts.upstream_total = defaults.upstream_total;
        };
        let (mut ours, mut theirs) = (without_catalog(self), without_catalog(other));
        upstream_times(&mut ours);
        upstream_times(&mut theirs);
        ours == theirs
    }
}

/// Whether a host is a usual name of this machine. `outbound.allow` decides whether callers' URLs may name this
/// machine.
fn is_loopback(host: &str) -> bool {
    let address = host.parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

fn host(address: &str) -> Option<String> {
    let uri: http::Uri = address.parse().ok()?;
    let bare = uri.host()?.trim_start_matches('[').trim_end_matches(']');
    Some(bare.to_ascii_lowercase())
}

fn bytes(size: usize) -> u64 {
    u64::try_from(size).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_parts() {
        let config = Config::default();
        assert_eq!(
            format!("{:?}", config.store_settings()),
            format!("{:?}", store::Settings::default())
        );
        assert_eq!(config.media_settings(), store::MediaSettings::default());
        assert_eq!(
            format!("{:?}", config.engine_settings()),
            format!("{:?}", engine::Settings::default())
        );
    }

    #[test]
    fn the_hosts_of_database_and_storage_are_our_own() {
        let mut config = Config::default();
        config.media.endpoint = Some("https://S3.example:9000".to_owned());
        let url = "postgres://u@db1.example,10.0.0.7,127.0.0.1,localhost/d";
        config.store.url = StoreUrl::parse(url).unwrap();
        assert_eq!(
            config.engine_settings().outbound.own_hosts,
            ["s3.example", "db1.example", "10.0.0.7"]
        );
    }

    #[test]
    fn settings_that_need_a_restart_are_told_apart() {
        let before = Config::default();
        let mut after = before.clone();
        after.timeouts.upstream_idle = Duration::from_secs(1);
        assert!(after.differs_only_in_catalog(&before));
        after.ledger.output_reserve_tokens = 0;
        assert!(!after.differs_only_in_catalog(&before));
    }
}
