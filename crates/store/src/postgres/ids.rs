//! How ids are read from the tables: wallets, keys and tasks are the texts callers know.

use std::error::Error;

use tokio_postgres::types::{FromSql, Type};

use crate::ids::{KeyId, WalletId};
use crate::task_id::TaskId;

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

as_text!(WalletId);
as_text!(KeyId);
as_text!(TaskId);
