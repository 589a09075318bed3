//! Converts ids and heads for storage: ids to the texts that callers see, heads to bytes.

use rusqlite::ToSql;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, ValueRef};

use crate::chain::{Head, HeadError};
use crate::records::ids::{AlertId, KeyId, RuleId, TokenId, WalletId};
use crate::records::task_id::TaskId;

macro_rules! as_text {
    ($name:ident) => {
        impl ToSql for $name {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                Ok(self.to_string().into())
            }
        }

        impl FromSql for $name {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                Self::parse(value.as_str()?).map_err(|error| FromSqlError::Other(Box::new(error)))
            }
        }
    };
}

as_text!(WalletId);
as_text!(KeyId);
as_text!(TokenId);
as_text!(AlertId);
as_text!(RuleId);
as_text!(TaskId);

impl ToSql for Head {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Blob(self.as_bytes())))
    }
}

impl FromSql for Head {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let head = Self::from_bytes(value.as_blob()?);
        head.ok_or_else(|| FromSqlError::Other(Box::new(HeadError)))
    }
}
