//! Reads ids and words from the texts that the database stores, and converts heads to bytes and back.

use std::error::Error;

use bytes::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use crate::chain::{Head, HeadError};
use crate::records::ids::{AlertId, KeyId, RuleId, TokenId, WalletId};
use crate::records::task_id::TaskId;

macro_rules! as_text {
    ($name:ident) => {
        impl<'a> FromSql<'a> for $name {
            fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
                Ok(Self::parse(<&str>::from_sql(ty, raw)?)?)
            }

            fn accepts(ty: &Type) -> bool {
                <&str as FromSql>::accepts(ty)
            }
        }
    };
}

/// Reads a value from its stored word.
macro_rules! by_word {
    ($name:ident) => {
        impl<'a> tokio_postgres::types::FromSql<'a> for $name {
            fn from_sql(
                ty: &tokio_postgres::types::Type,
                raw: &'a [u8],
            ) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
                Ok(<&str>::from_sql(ty, raw)?.parse()?)
            }

            fn accepts(ty: &tokio_postgres::types::Type) -> bool {
                <&str as tokio_postgres::types::FromSql>::accepts(ty)
            }
        }
    };
}
pub(crate) use by_word;

as_text!(WalletId);
as_text!(KeyId);
as_text!(TokenId);
as_text!(AlertId);
as_text!(RuleId);
as_text!(TaskId);

impl<'a> FromSql<'a> for Head {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self::from_bytes(<&[u8]>::from_sql(ty, raw)?).ok_or(HeadError)?)
    }

    fn accepts(ty: &Type) -> bool {
        <&[u8] as FromSql>::accepts(ty)
    }
}

impl ToSql for Head {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        self.as_bytes().as_slice().to_sql(ty, out)
    }

    fn accepts(ty: &Type) -> bool {
        <&[u8] as ToSql>::accepts(ty)
    }

    to_sql_checked!();
}
