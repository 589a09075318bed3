//! Parses `store.url`: one server, or several servers of which one is the primary.

use std::error::Error as _;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, TargetSessionAttrs};

use crate::settings::Server;

/// One server of a URL.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    /// The address without the password, for messages.
    pub(crate) name: String,
    pub(crate) config: Config,
}

impl Address {
    /// The host of the server, by name and by address.
    pub(crate) fn hosts(&self) -> Vec<String> {
        let names = self
            .config
            .get_hosts()
            .iter()
            .filter_map(|host| match host {
                Host::Tcp(name) => Some(name.to_ascii_lowercase()),
                Host::Unix(_) => None,
            });
        let addresses = self.config.get_hostaddrs().iter();
        names.chain(addresses.map(ToString::to_string)).collect()
    }
}

pub(crate) struct Addresses {
    pub(crate) servers: Vec<Address>,
    /// Whether sessions must be writable. The URL of a command that only reads may ask for a standby
    /// (`target_session_attrs=read-only`).
    pub(crate) writable: bool,
}

/// Parses a URL. The error describes the problem. Each host becomes a server with its own time limit, so that a host
/// that accepts connections but does not answer cannot block the next one.
pub(crate) fn read(server: &Server) -> Result<Addresses, String> {
    let whole: Config = with_known_tls_mode(&server.url).parse().map_err(
        |error: tokio_postgres::Error| match error.source() {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        },
    )?;
    let (hosts, addresses) = (whole.get_hosts(), whole.get_hostaddrs());
    if hosts.is_empty() {
        return Err("it names no host".to_owned());
    }
    if !addresses.is_empty() && addresses.len() != hosts.len() {
        return Err("it names more or fewer hostaddr than hosts".to_owned());
    }
    let ports = whole.get_ports();
    if ports.len() > 1 && ports.len() != hosts.len() {
        return Err("it names more or fewer ports than hosts".to_owned());
    }
    let servers = hosts.iter().enumerate().map(|(number, host)| {
        let mut config = without_hosts(&whole);
        let name = match host {
            Host::Tcp(name) => {
                config.host(name);
                name.clone()
            }
            Host::Unix(folder) => {
                config.host_path(folder);
                folder.display().to_string()
            }
        };
        if let Some(address) = addresses.get(number) {
            config.hostaddr(*address);
        }
        let port = ports.get(number).or(ports.first()).copied();
        let port = port.unwrap_or(5432);
        config.port(port);
        Address {
            name: format!("{name}:{port}"),
            config,
        }
    });
    Ok(Addresses {
        servers: servers.collect(),
        writable: !wants_standby(&whole),
    })
}

/// Replaces the values of `sslmode` that make other clients check the certificate. They mean the same as `require`
/// here, because we always check the certificate.
fn with_known_tls_mode(url: &str) -> String {
    let Some((place, parameters)) = url.split_once('?') else {
        return url.to_owned();
    };
    let parameters: Vec<&str> = parameters
        .split('&')
        .map(|parameter| match parameter {
            "sslmode=verify-full" | "sslmode=verify-ca" => "sslmode=require",
            other => other,
        })
        .collect();
    format!("{place}?{}", parameters.join("&"))
}

fn wants_standby(whole: &Config) -> bool {
    whole.get_target_session_attrs() == TargetSessionAttrs::ReadOnly
}

/// The options that all servers of a URL share.
fn without_hosts(whole: &Config) -> Config {
    let mut config = Config::new();
    if let Some(user) = whole.get_user() {
        config.user(user);
    }
    if let Some(password) = whole.get_password() {
        config.password(password);
    }
    if let Some(database) = whole.get_dbname() {
        config.dbname(database);
    }
    if let Some(options) = whole.get_options() {
        config.options(options);
    }
    if wants_standby(whole) {
        config.target_session_attrs(TargetSessionAttrs::ReadOnly);
    }
    config
        .ssl_mode(whole.get_ssl_mode())
        .ssl_negotiation(whole.get_ssl_negotiation())
        .channel_binding(whole.get_channel_binding());
    config
}

#[cfg(test)]
mod tests {
    use tokio_postgres::config::SslMode;

    use super::*;

    #[test]
    fn the_hosts_of_a_url_are_its_names_and_addresses() {
        let url = "postgres://u@DB1.example,[::1]:5433/d?hostaddr=10.0.0.1,::1";
        assert_eq!(
            Server::at(url).hosts(),
            ["db1.example", "10.0.0.1", "::1", "::1"]
        );
        assert!(Server::at("postgres://u@%2Frun%2Fpg/d").hosts().is_empty());
    }

    fn names(url: &str) -> Vec<String> {
        let read = read(&Server::at(url)).unwrap();
        read.servers.into_iter().map(|server| server.name).collect()
    }

    #[test]
    fn several_hosts_are_several_servers() {
        let url = "postgres://u:p%40ss@a:1,b:2,c/db?options=-csearch_path%3Dx&sslmode=disable";
        assert_eq!(names(url), ["a:1", "b:2", "c:5432"]);
        for server in read(&Server::at(url)).unwrap().servers {
            assert_eq!(server.config.get_hosts().len(), 1);
            assert_eq!(server.config.get_user(), Some("u"));
            assert_eq!(server.config.get_password(), Some(&b"p@ss"[..]));
            assert_eq!(server.config.get_dbname(), Some("db"));
            assert_eq!(server.config.get_options(), Some("-csearch_path=x"));
            assert_eq!(server.config.get_ssl_mode(), SslMode::Disable);
        }
        assert_eq!(names("postgres://db/x"), ["db:5432"]);
    }

    #[test]
    fn sessions_must_write_unless_the_url_asks_for_a_standby() {
        for (url, writable) in [
            ("postgres://a,b/db", true),
            ("postgres://a,b/db?target_session_attrs=any", true),
            ("postgres://a,b/db?target_session_attrs=read-write", true),
            ("postgres://b/db?target_session_attrs=read-only", false),
        ] {
            assert_eq!(read(&Server::at(url)).unwrap().writable, writable, "{url}");
        }
    }

    #[test]
    fn modes_that_check_the_certificate_are_known() {
        for mode in ["require", "verify-ca", "verify-full"] {
            let url = format!("postgres://a/db?connect_timeout=1&sslmode={mode}");
            let read = read(&Server::at(url)).unwrap();
            assert_eq!(
                read.servers[0].config.get_ssl_mode(),
                SslMode::Require,
                "{mode}"
            );
        }
    }

    #[test]
    fn a_url_that_cannot_be_used_says_why() {
        for (url, word) in [
            ("postgres:///db", "no host"),
            ("postgres://a/db?sslmode=allow", "sslmode"),
            (
                "postgres://a/db?target_session_attrs=primary",
                "target_session_attrs",
            ),
            ("postgres://a,b/db?hostaddr=127.0.0.1", "hostaddr"),
        ] {
            let refused = read(&Server::at(url)).map(drop).unwrap_err();
            assert!(refused.contains(word), "{url}: {refused}");
        }
    }
}
