//! What kind of failure the database reports, what to do about it, and how it is told in words.

use std::error::Error as _;
use std::fmt;

use tokio_postgres::error::SqlState;

use super::sqlstate;
use crate::error::StoreError;

/// Why something did not work.
#[derive(Debug)]
pub(crate) enum Failed {
    Sql(tokio_postgres::Error),
    /// No answer in time; the connection is given up.
    Silent,
    /// The session may not write.
    ReadOnly,
    /// No server of several could be used; each with its reason.
    EveryHost(Vec<(String, Failed)>),
}

/// Whose fault it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Another transaction was in the way: the same again may succeed at once.
    Crossed,
    /// Somebody held a lock for too long.
    Locked,
    /// The connection is gone, or the server is about to go.
    Gone,
    /// The server's disk, memory or configuration: the same may succeed later.
    Outside,
    /// The commands or the stored rows: the same would fail again.
    Inside,
}

impl Failed {
    pub(crate) fn trouble(&self) -> Trouble {
        let error = match self {
            Self::Sql(error) => error,
            Self::Silent | Self::ReadOnly => return Trouble::Gone,
            Self::EveryHost(hosts) => {
                let troubles: Vec<Trouble> =
                    hosts.iter().map(|(_, failed)| failed.trouble()).collect();
                // What a server answered says more than that another one did not.
                return [Trouble::Inside, Trouble::Outside]
                    .into_iter()
                    .find(|trouble| troubles.contains(trouble))
                    .unwrap_or(Trouble::Gone);
            }
        };
        match error.code() {
            Some(code) => trouble_of(code),
            None if error.is_closed() || is_io(error) => Trouble::Gone,
            None => Trouble::Inside,
        }
    }

    /// Whether the same may succeed later without a change of our configuration. Wrong credentials, an
    /// unknown database and a certificate that does not hold stay wrong.
    pub(crate) fn is_temporary(&self) -> bool {
        match self {
            Self::Sql(error) => {
                let is_refused = error
                    .code()
                    .is_some_and(|code| matches!(code.code().get(..2), Some("28" | "3D")));
                !is_refused && !is_tls(error) && self.trouble() != Trouble::Inside
            }
            Self::Silent | Self::ReadOnly => true,
            Self::EveryHost(hosts) => hosts.iter().all(|(_, failed)| failed.is_temporary()),
        }
    }
}

fn trouble_of(code: &SqlState) -> Trouble {
    if *code == SqlState::T_R_SERIALIZATION_FAILURE || *code == SqlState::T_R_DEADLOCK_DETECTED {
        return Trouble::Crossed;
    }
    if *code == SqlState::LOCK_NOT_AVAILABLE || *code == SqlState::QUERY_CANCELED {
        return Trouble::Locked;
    }
    match code.code().get(..2) {
        // Connection exceptions, operator intervention (shutdown, terminated), idle too long, a
        // server that has become read-only.
        Some("08" | "57" | "25") => Trouble::Gone,
        // Resources, objects not in the right state, system errors, credentials.
        Some("53" | "55" | "58" | "XX" | "28" | "3D") => Trouble::Outside,
        _ => Trouble::Inside,
    }
}

fn is_io(error: &tokio_postgres::Error) -> bool {
    causes(error).any(<dyn std::error::Error>::is::<std::io::Error>)
}

/// Whether the server's certificate or its TLS was refused. A connection that breaks within the handshake
/// is not meant.
fn is_tls(error: &tokio_postgres::Error) -> bool {
    causes(error).any(|cause| match cause.downcast_ref::<std::io::Error>() {
        Some(error) => matches!(error.get_ref(), Some(inner) if inner.is::<rustls::Error>()),
        None => cause.is::<rustls::Error>(),
    })
}

fn causes(
    error: &tokio_postgres::Error,
) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    std::iter::successors(error.source(), |&cause| cause.source())
}

impl std::error::Error for Failed {}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sql(error) => {
                // Without the detail, which may hold stored values.
                if let Some(said) = error.as_db_error() {
                    let code = said.code().code();
                    let cause = sqlstate::in_words(code);
                    return write!(f, "{cause}: {} (SQLSTATE {code})", said.message());
                }
                write!(f, "{error}")?;
                causes(error).try_for_each(|cause| write!(f, ": {cause}"))
            }
            Self::Silent => f.write_str("the server did not answer in time"),
            Self::ReadOnly => f.write_str(
                "the session is read-only: the server is a standby, or the role or the database is set read-only",
            ),
            Self::EveryHost(hosts) => {
                f.write_str("no server can be used")?;
                hosts
                    .iter()
                    .zip(std::iter::once(": ").chain(std::iter::repeat("; ")))
                    .try_for_each(|((host, failed), before)| write!(f, "{before}{host}: {failed}"))
            }
        }
    }
}

impl From<tokio_postgres::Error> for Failed {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<Failed> for StoreError {
    fn from(failed: Failed) -> Self {
        if failed.trouble() == Trouble::Inside {
            Self::Database(Box::new(failed))
        } else {
            Self::Away(Box::new(failed))
        }
    }
}

impl From<tokio_postgres::Error> for StoreError {
    fn from(error: tokio_postgres::Error) -> Self {
        Failed::from(error).into()
    }
}

#[cfg(test)]
mod tests {
    use crate::postgres::connection::errors::*;

    #[test]
    fn states_of_the_server_are_told_apart() {
        for (code, trouble) in [
            ("40001", Trouble::Crossed),
            ("40P01", Trouble::Crossed),
            ("55P03", Trouble::Locked),
            ("57014", Trouble::Locked),
            ("57P01", Trouble::Gone),
            ("57P03", Trouble::Gone),
            ("25006", Trouble::Gone),
            ("25P03", Trouble::Gone),
            ("08006", Trouble::Gone),
            ("53100", Trouble::Outside),
            ("53300", Trouble::Outside),
            ("28P01", Trouble::Outside),
            ("58030", Trouble::Outside),
            ("23505", Trouble::Inside),
            ("42P01", Trouble::Inside),
        ] {
            assert_eq!(trouble_of(&SqlState::from_code(code)), trouble, "{code}");
        }
    }

    #[test]
    fn what_one_of_several_servers_answered_decides() {
        let hosts = |failed: Vec<Failed>| {
            let named = failed.into_iter().map(|failed| ("db:1".to_owned(), failed));
            Failed::EveryHost(named.collect())
        };
        let away = hosts(vec![Failed::Silent, Failed::ReadOnly]);
        assert_eq!(away.trouble(), Trouble::Gone);
        assert!(away.is_temporary());
        let text = away.to_string();
        assert!(
            text.starts_with(
                "no server can be used: db:1: the server did not answer in time; db:1: "
            ),
            "{text}"
        );
    }
}
