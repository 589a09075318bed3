//! Decides which environment variables and files the admin API may name as credentials (`docs/decisions/060`).
//!
//! An operator who changes a channel also chooses the address to which its credential is sent. Without this policy, an
//! attacker with an owner's token could read every environment variable and every file that the process can read.

use std::path::{Component, Path};

use serde_json::{Map, Value as Json};

use super::document::Entries;
use super::pasted_secrets::{BadCredential, FOLDER};
use crate::config::Config;
use crate::config::document::SecretSource;

/// Environment variables with this suffix are credentials of upstreams.
const ENV_SUFFIX: &str = "_API_KEY";

#[derive(Debug)]
pub(crate) struct CredentialPolicy<'c> {
    config: &'c Config,
    /// The entries in force. Their credentials are allowed: either somebody with access to the file wrote them, or they
    /// passed this policy in an earlier change.
    known: &'c Entries,
}

impl<'c> CredentialPolicy<'c> {
    pub(crate) fn new(config: &'c Config, known: &'c Entries) -> Self {
        Self { config, known }
    }

    pub(crate) fn check(&self, entries: &Entries) -> Result<(), BadCredential> {
        for (index, channel) in entries.channels.iter().enumerate() {
            for secret in secrets_of(channel) {
                let fault = match secret {
                    Json::Object(source) if !self.is_known(secret) => self.fault(source),
                    _ => None,
                };
                if let Some(fault) = fault {
                    return Err(BadCredential { index, fault });
                }
            }
        }
        Ok(())
    }

    fn is_known(&self, secret: &Json) -> bool {
        let mut known = self.known.channels.iter().flat_map(secrets_of);
        known.any(|known| known == secret)
    }

    /// Says why a source is not allowed. Unknown members are reported when the entry is read.
    fn fault(&self, source: &Map<String, Json>) -> Option<String> {
        let text = |name| source.get(name).and_then(Json::as_str);
        if let Some(name) = text("env")
            && !self.may_name_variable(name)
        {
            return Some(format!(
                "names the environment variable {name}. Through the admin API, only variables that end in \
                 {ENV_SUFFIX}, that `admin.credential_env` allows, or that the configuration names already can be used"
            ));
        }
        if let Some(file) = text("file")
            && !self.may_name_file(file)
        {
            return Some(format!(
                "names the file {file}. Through the admin API, only files in the folder `{FOLDER}` beside the \
                 configuration, or that it names already can be used"
            ));
        }
        None
    }

    fn may_name_variable(&self, name: &str) -> bool {
        let allowed = &self.config.admin.credential_env;
        let is_allowed = name.ends_with(ENV_SUFFIX)
            || allowed
                .iter()
                .any(|allowed| match allowed.strip_suffix('*') {
                    Some(prefix) => name.starts_with(prefix),
                    None => name == allowed,
                });
        is_allowed && !self.own_secrets().any(|secret| secret.is_variable(name))
    }

    fn may_name_file(&self, file: &str) -> bool {
        let path = Path::new(file);
        let is_plain = path
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        let folder = self.config.file.as_deref().and_then(Path::parent);
        let path = folder.unwrap_or(Path::new("")).join(path);
        is_plain
            && Path::new(file).starts_with(FOLDER)
            && !self.own_secrets().any(|secret| secret.is_file(&path))
    }

    /// The gateway's own secrets, which must not be sent to an upstream.
    fn own_secrets(&self) -> impl Iterator<Item = &SecretSource> {
        let Config {
            admin,
            store,
            media,
            telemetry,
            ..
        } = self.config;
        let secrets = [
            &admin.token,
            &store.password,
            &media.access_key_id,
            &media.secret_access_key,
            &telemetry.headers,
        ];
        secrets.into_iter().flatten()
    }
}

/// The members of a channel that may name a secret: its credential and its account settings.
fn secrets_of(channel: &Map<String, Json>) -> impl Iterator<Item = &Json> {
    let account = channel.get("account").and_then(Json::as_object);
    let settings = account.into_iter().flat_map(Map::values);
    channel.get("credential").into_iter().chain(settings)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const FILE: &str = r#"
[admin]
token = { env = "ADMIN_API_KEY" }
credential_env = ["UPSTREAM_*", "EXACTLY"]
[store]
url = "postgres://gateway@db/gateway"
password = { file = "credentials/database" }
[telemetry]
headers = { file = "credentials/collector" }
[[channel]]
name = "main"
preset = "openai"
credential = { env = "OLD_SECRET" }
[[channel]]
name = "other"
preset = "openai"
credential = { file = "/run/secrets/other" }
"#;

    #[test]
    fn only_sources_for_upstreams_can_be_named() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("credentials")).unwrap();
        std::fs::write(folder.path().join("credentials/database"), "secret").unwrap();
        std::fs::write(folder.path().join("credentials/collector"), "key=secret").unwrap();
        let file = folder.path().join("tollgate.toml");
        let config = Config::parse(&FILE.replace("/run/secrets/other", "kept"), &file);
        let config = config.unwrap();
        let known = Entries::of(FILE).unwrap();
        let policy = CredentialPolicy::new(&config, &known);
        for (credential, is_allowed) in [
            (json!({ "env": "OPENAI_API_KEY" }), true),
            (json!({ "env": "UPSTREAM_7" }), true),
            (json!({ "env": "EXACTLY" }), true),
            (json!({ "env": "EXACTLY_NOT" }), false),
            (json!({ "env": "OLD_SECRET" }), true),
            (json!({ "env": "OTHER_SECRET" }), false),
            (json!({ "env": "AWS_SECRET_ACCESS_KEY" }), false),
            (json!({ "env": "HOME" }), false),
            // Secrets of the gateway itself.
            (json!({ "env": "ADMIN_API_KEY" }), false),
            (json!({ "file": "credentials/database" }), false),
            (json!({ "file": "credentials/collector" }), false),
            (json!({ "file": "credentials/main" }), true),
            (json!({ "file": "credentials/a/b" }), true),
            (json!({ "file": "/run/secrets/other" }), true),
            (json!({ "file": "/etc/shadow" }), false),
            (json!({ "file": "tollgate.toml" }), false),
            (json!({ "file": "credentials/../tollgate.toml" }), false),
            (json!({ "file": "./credentials/../x" }), false),
            (json!({ "file": "credentials-of-others" }), false),
            // These do not name a variable or file. They are reported when the entry is read.
            (json!("sk-pasted"), true),
            (json!(null), true),
        ] {
            let channel = json!({ "name": "new", "preset": "openai", "credential": credential });
            let entries = Entries {
                channels: vec![channel.as_object().unwrap().clone()],
                models: Vec::new(),
            };
            let checked = policy.check(&entries);
            assert_eq!(checked.is_ok(), is_allowed, "{credential}: {checked:?}");
            let account = json!({ "session": credential });
            let channel = json!({ "name": "new", "preset": "openai", "account": account });
            let entries = Entries {
                channels: vec![channel.as_object().unwrap().clone()],
                models: Vec::new(),
            };
            let checked = policy.check(&entries);
            assert_eq!(checked.is_ok(), is_allowed, "{credential}: {checked:?}");
        }
    }
}
