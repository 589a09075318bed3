//! Writes the text of the configuration for `tollgate init`.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;

use ledger::Markup;

use super::vendors::{FoundCredential, FoundVendor};

#[derive(Debug)]
pub(super) struct NewConfig<'n> {
    pub(super) listen: SocketAddr,
    pub(super) admin_listen: SocketAddr,
    /// The folder of the data, as written in the file.
    pub(super) data: &'n Path,
    pub(super) markup: Markup,
    pub(super) vendors: &'n [FoundVendor],
    /// The version of the catalog of known models.
    pub(super) catalog: &'n str,
}

impl NewConfig<'_> {
    /// The text of the file. It names the variables and files that contain keys, but contains no keys.
    pub(super) fn text(&self) -> String {
        let below = |scheme: &str, name: &str| {
            let path = self.data.join(name);
            quoted(&format!("{scheme}{}", path.display()))
        };
        let mut text = format!(
            r#"# The configuration of this gateway, begun by `tollgate init`. It is yours to change.
# `tollgate check` explains what it results in; docs and config/example.toml show every setting.

[server]
# Where callers reach the gateway. 0.0.0.0 opens it to other machines; set `tls` then, or put a proxy with TLS in front.
listen = "{listen}"

[admin]
# Health, metrics, the console and the admin API. Keep it on loopback.
listen = "{admin_listen}"
# token = {{ env = "TOLLGATE_ADMIN_TOKEN" }}

[store]
# Wallets, keys and the ledger. Several nodes share a postgres:// database instead.
url = {store}

[media]
# Generated media. Several nodes share an s3:// bucket instead.
url = {media}
spool = {spool}
"#,
            listen = self.listen,
            admin_listen = self.admin_listen,
            store = below("sqlite:", "tollgate.db"),
            media = below("file:", "media"),
            spool = below("", "media-spool"),
        );
        for vendor in self.vendors {
            self.write_channel(vendor, &mut text);
        }
        text
    }

    fn write_channel(&self, vendor: &FoundVendor, text: &mut String) {
        let (name, title) = (vendor.preset.as_str(), vendor.preset.title());
        // Writing into a String cannot fail.
        let _ = write!(
            text,
            "\n# {title}\n[[channel]]\nname = \"{name}\"\npreset = \"{name}\"\n"
        );
        if let Some(url) = &vendor.base_url {
            let _ = writeln!(text, "base_url = {}", quoted(url));
        }
        if !vendor.account.is_empty() {
            let settings = vendor.account.iter();
            let settings =
                settings.map(|(name, variable)| format!("{name} = {{ env = \"{variable}\" }}"));
            let settings: Vec<_> = settings.collect();
            let _ = writeln!(text, "account = {{ {} }}", settings.join(", "));
        }
        let (what, source) = match &vendor.credential {
            FoundCredential::Variable(variable) => (
                "The variable that holds the key",
                format!("env = \"{variable}\""),
            ),
            FoundCredential::File { path, .. } => (
                "The file that holds the key",
                format!("file = {}", quoted(path)),
            ),
        };
        let _ = writeln!(
            text,
            "# {what}. The key itself never stands in this file.\ncredential = {{ {source} }}"
        );
        let _ = if vendor.models > 0 {
            writeln!(
                text,
                "# All {} models that the catalog {} knows of this vendor; or a list of ids. [[model]] entries override it.\n\
                 models = \"all\"\n\
                 # Prices are the vendor's list prices, multiplied by this.\n\
                 markup = \"{}\"",
                vendor.models, self.catalog, self.markup
            )
        } else {
            writeln!(
                text,
                "# The catalog knows no models of this vendor. Add those that you want to offer:\n\
                 # [[model]]\n\
                 # id = \"maker/model\"\n\
                 # kind = \"text\"\n\
                 # routes = [{{ channel = \"{name}\", model = \"the vendor's name of it\" }}]\n\
                 # price = {{ input = \"1\", output = \"2\" }}\n\
                 # profile = {{ context_tokens = 128000, max_output_tokens = 16000 }}"
            )
        };
    }
}

fn quoted(text: &str) -> String {
    toml_edit::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::super::vendors;
    use super::*;
    use crate::config::{self, Config};
    use crate::known_models::KnownModels;

    #[test]
    fn the_file_is_a_configuration_with_callable_models_and_without_a_key() {
        let known = KnownModels::built_in();
        // Two vendors are found. The written file then reads their keys from `PATH`, a variable that every process has.
        let found = vendors::find(known, |name| {
            matches!(name, "OPENAI_API_KEY" | "OPENROUTER_API_KEY").then(|| "sk-secret".to_owned())
        });
        let found: Vec<_> = found
            .vendors
            .into_iter()
            .map(|it| FoundVendor {
                credential: FoundCredential::Variable("PATH"),
                ..it
            })
            .collect();
        let new = NewConfig {
            listen: "127.0.0.1:8080".parse().unwrap(),
            admin_listen: "127.0.0.1:8081".parse().unwrap(),
            data: Path::new("my \"data\""),
            markup: "1.25".parse().unwrap(),
            vendors: &found,
            catalog: &known.version,
        };
        let text = new.text();
        assert!(!text.contains("sk-secret"));
        let config = Config::parse(&text, Path::new("t.toml")).unwrap();
        assert_eq!(config.channels.len(), 2);
        assert_eq!(config.store.url.shown(), "my \"data\"/tollgate.db");
        let plan = config::resolve(&config).unwrap();
        assert_eq!(plan.unlisted, []);
        assert_eq!(plan.models.len(), found[0].models);
    }
}
