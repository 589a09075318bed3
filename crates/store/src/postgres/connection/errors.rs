//! Classifies database errors and describes them for people.

use std::error::Error as _;
use std::fmt;

use tokio_postgres::error::SqlState;

use super::sqlstate;
use crate::error::StoreError;

/// An error of the database or of the connection to it.
#[derive(Debug)]
pub(crate) enum PgError {
    Sql(tokio_postgres::Error),
    /// The server did not answer in time. The connection counts as lost.
    NoAnswer,
    ReadOnly,
    /// None of several servers could be used. Contains the error of each.
    EveryHost(Vec<(String, PgError)>),
}

/// The kind of an error, which decides how it is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// A conflict with another transaction. A retry may succeed at once.
    Conflict,
    /// A lock was held for too long, or a statement took too long.
    Locked,
    /// The connection is lost, or the server is shutting down.
    Disconnected,
    /// A problem of the server's disk, memory or configuration. A retry may succeed later.
    Environment,
    /// A problem of the commands or the stored rows. A retry would fail again.
    Permanent,
}

impl PgError {
    pub(crate) fn kind(&self) -> FailureKind {
        let error = match self {
            Self::Sql(error) => error,
            Self::NoAnswer | Self::ReadOnly => return FailureKind::Disconnected,
            Self::EveryHost(hosts) => {
                let kinds: Vec<FailureKind> =
                    hosts.iter().map(|(_, failed)| failed.kind()).collect();
                // An answer from one server is more informative than another server's silence.
                return [FailureKind::Permanent, FailureKind::Environment]
                    .into_iter()
                    .find(|kind| kinds.contains(kind))
                    .unwrap_or(FailureKind::Disconnected);
            }
        };
        match error.code() {
            Some(code) => kind_of(code),
            None if error.is_closed() || is_io(error) => FailureKind::Disconnected,
            None => FailureKind::Permanent,
        }
    }

    /// Whether a retry may succeed without a change of our configuration. Wrong credentials, an unknown database or an
    /// invalid certificate would fail again.
    pub(crate) fn is_temporary(&self) -> bool {
        match self {
            Self::Sql(error) => {
                let is_refused = error
                    .code()
                    .is_some_and(|code| matches!(code.code().get(..2), Some("28" | "3D")));
                !is_refused && !is_tls(error) && self.kind() != FailureKind::Permanent
            }
            Self::NoAnswer | Self::ReadOnly => true,
            Self::EveryHost(hosts) => hosts.iter().all(|(_, failed)| failed.is_temporary()),
        }
    }
}

fn kind_of(code: &SqlState) -> FailureKind {
    if *code == SqlState::T_R_SERIALIZATION_FAILURE || *code == SqlState::T_R_DEADLOCK_DETECTED {
        return FailureKind::Conflict;
    }
    if *code == SqlState::LOCK_NOT_AVAILABLE || *code == SqlState::QUERY_CANCELED {
        return FailureKind::Locked;
    }
    match code.code().get(..2) {
        // 08: connection exceptions. 57: operator intervention, such as a shutdown. 25: the session was idle for too
        // long, or the server has become read-only.
        Some("08" | "57" | "25") => FailureKind::Disconnected,
        // 53: insufficient resources. 55: an object is not in the required state. 58 and XX: system and internal
        // errors. 28: wrong credentials. 3D: unknown database.
        Some("53" | "55" | "58" | "XX" | "28" | "3D") => FailureKind::Environment,
        _ => FailureKind::Permanent,
    }
}

fn is_io(error: &tokio_postgres::Error) -> bool {
    causes(error).any(<dyn std::error::Error>::is::<std::io::Error>)
}

/// Whether the server's certificate or TLS was refused. A connection that breaks during the handshake does not count.
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

impl std::error::Error for PgError {}

impl fmt::Display for PgError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sql(error) => {
                // Leaves out the detail, which may contain stored values.
                if let Some(said) = error.as_db_error() {
                    let code = said.code().code();
                    let cause = sqlstate::in_words(code);
                    return write!(f, "{cause}: {} (SQLSTATE {code})", said.message());
                }
                write!(f, "{error}")?;
                causes(error).try_for_each(|cause| write!(f, ": {cause}"))
            }
            Self::NoAnswer => f.write_str("the server did not answer in time"),
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

impl From<tokio_postgres::Error> for PgError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<PgError> for StoreError {
    fn from(failed: PgError) -> Self {
        if failed.kind() == FailureKind::Permanent {
            Self::Database(Box::new(failed))
        } else {
            Self::Away(Box::new(failed))
        }
    }
}

impl From<tokio_postgres::Error> for StoreError {
    fn from(error: tokio_postgres::Error) -> Self {
        PgError::from(error).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_of_the_server_are_told_apart() {
        for (code, kind) in [
            ("40001", FailureKind::Conflict),
            ("40P01", FailureKind::Conflict),
            ("55P03", FailureKind::Locked),
            ("57014", FailureKind::Locked),
            ("57P01", FailureKind::Disconnected),
            ("57P03", FailureKind::Disconnected),
            ("25006", FailureKind::Disconnected),
            ("25P03", FailureKind::Disconnected),
            ("08006", FailureKind::Disconnected),
            ("53100", FailureKind::Environment),
            ("53300", FailureKind::Environment),
            ("28P01", FailureKind::Environment),
            ("58030", FailureKind::Environment),
            ("23505", FailureKind::Permanent),
            ("42P01", FailureKind::Permanent),
        ] {
            assert_eq!(kind_of(&SqlState::from_code(code)), kind, "{code}");
        }
    }

    #[test]
    fn what_one_of_several_servers_answered_decides() {
        let hosts = |failed: Vec<PgError>| {
            let named = failed.into_iter().map(|failed| ("db:1".to_owned(), failed));
            PgError::EveryHost(named.collect())
        };
        let away = hosts(vec![PgError::NoAnswer, PgError::ReadOnly]);
        assert_eq!(away.kind(), FailureKind::Disconnected);
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
