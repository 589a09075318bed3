//! The audit log: administrative changes with their authors.

use std::fmt;
use std::str::FromStr;

use ledger::UnixMs;

/// The maximum length of an actor's name.
const NAME_CHARS_MAX: usize = 200;

/// The permissions of an admin token. Each role includes those of the roles before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// May read everything except secrets.
    Viewer,
    /// May also top up wallets.
    Support,
    /// May also change wallets and keys.
    Operator,
    /// May also change tokens and the configuration.
    Owner,
}

impl Role {
    /// All roles, the weakest first.
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Support, Self::Operator, Self::Owner];

    /// The word that is stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Support => "support",
            Self::Operator => "operator",
            Self::Owner => "owner",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that is not a role.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a role is viewer, support, operator or owner")]
pub struct UnknownRole;

impl FromStr for Role {
    type Err = UnknownRole;

    fn from_str(word: &str) -> Result<Self, UnknownRole> {
        let known = Self::ALL.into_iter().find(|role| role.as_str() == word);
        known.ok_or(UnknownRole)
    }
}

/// The author of an administrative change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// A token's id, `config` for the configured token, `cli` for the command line, or `link` for a session
    /// that was opened by a sign-in link.
    pub id: String,
    /// A name for people: that of the token or of the operating system's user.
    pub name: String,
    pub role: Role,
    /// The request that asked for the change. The command line has none.
    pub request_id: Option<String>,
}

impl Actor {
    /// The command line, run by this operating system user. It is an owner, because anybody who can run it can also
    /// read the database.
    pub fn cli(user: &str) -> Self {
        let name: String = user
            .chars()
            .filter(|c| !c.is_control())
            .take(NAME_CHARS_MAX)
            .collect();
        Self {
            id: "cli".to_owned(),
            name,
            role: Role::Owner,
            request_id: None,
        }
    }
}

/// An administrative change that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRow {
    pub cursor: AuditCursor,
    pub at: UnixMs,
    pub actor: Actor,
    /// The name of the action, such as `wallet.create`.
    pub action: String,
    /// The id of the changed object.
    pub target: String,
    /// JSON: the previous values of the changed members. `None` for something new.
    pub before: Option<String>,
    /// JSON: the new values. `None` for something that was removed.
    pub after: Option<String>,
}

/// A position among the rows of the audit, for paging. Newer rows have larger numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct AuditCursor(pub i64);

/// A query for audit rows, newest first. A row must meet every condition that is set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditQuery {
    /// The id or the name of the actor.
    pub actor: Option<String>,
    pub action: Option<String>,
    pub target: Option<String>,
    /// Changes made at or after this time.
    pub from: Option<UnixMs>,
    /// Changes made before this time.
    pub to: Option<UnixMs>,
    /// A substring of any text in the row, regardless of case.
    pub text: Option<String>,
    /// Rows older than this position: the next page.
    pub before: Option<AuditCursor>,
    /// 0 means the maximum of 1,000.
    pub limit: u32,
}

/// The maximum number of rows per page.
pub const AUDIT_ROWS_MAX: u32 = 1_000;

impl AuditQuery {
    pub(crate) fn rows_max(&self) -> u32 {
        match self.limit {
            0 => AUDIT_ROWS_MAX,
            limit => limit.min(AUDIT_ROWS_MAX),
        }
    }

    /// The pattern for LIKE, in which `\` makes `%` and `_` ordinary characters.
    pub(crate) fn pattern(&self) -> Option<String> {
        let text = self.text.as_deref().filter(|text| !text.is_empty())?;
        let mut pattern = String::from("%");
        for letter in text.chars() {
            if matches!(letter, '%' | '_' | '\\') {
                pattern.push('\\');
            }
            pattern.push(letter);
        }
        pattern.push('%');
        Some(pattern)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_reads_back_from_its_word_and_includes_those_before_it() {
        for role in Role::ALL {
            assert_eq!(role.as_str().parse(), Ok(role));
        }
        assert!(Role::ALL.is_sorted());
        assert_eq!("Owner".parse::<Role>(), Err(UnknownRole));
    }

    #[test]
    fn the_text_of_a_search_is_taken_literally() {
        for (text, pattern) in [("a", "%a%"), ("50%", "%50\\%%"), ("a_b\\", "%a\\_b\\\\%")] {
            let query = AuditQuery {
                text: Some(text.to_owned()),
                ..AuditQuery::default()
            };
            assert_eq!(query.pattern().as_deref(), Some(pattern));
        }
        assert_eq!(AuditQuery::default().pattern(), None);
    }
}
