//! Converts values of any column to and from `PostgreSQL`.

use std::error::Error;

use bytes::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use crate::transfer::tables::Kind;
use crate::transfer::value::Value;

pub(super) fn type_of(kind: Kind) -> Type {
    match kind {
        Kind::BigInt => Type::INT8,
        Kind::Integer => Type::INT4,
        Kind::SmallInt => Type::INT2,
        Kind::Boolean => Type::BOOL,
        Kind::Text => Type::TEXT,
        Kind::Bytes => Type::BYTEA,
    }
}

impl<'a> FromSql<'a> for Value {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(match *ty {
            Type::INT8 => Self::Integer(i64::from_sql(ty, raw)?),
            Type::INT4 => Self::Integer(i32::from_sql(ty, raw)?.into()),
            Type::INT2 => Self::Integer(i16::from_sql(ty, raw)?.into()),
            Type::BOOL => Self::Integer(bool::from_sql(ty, raw)?.into()),
            Type::BYTEA => Self::Bytes(raw.to_owned()),
            _ => Self::Text(String::from_sql(ty, raw)?),
        })
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self::Null)
    }

    fn accepts(ty: &Type) -> bool {
        [
            Type::INT8,
            Type::INT4,
            Type::INT2,
            Type::BOOL,
            Type::BYTEA,
            Type::TEXT,
        ]
        .contains(ty)
    }
}

impl ToSql for Value {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Integer(integer) => match *ty {
                Type::INT4 => i32::try_from(*integer)?.to_sql(ty, out),
                Type::INT2 => i16::try_from(*integer)?.to_sql(ty, out),
                Type::BOOL => (*integer != 0).to_sql(ty, out),
                _ => integer.to_sql(ty, out),
            },
            Self::Text(text) => text.to_sql(ty, out),
            Self::Bytes(bytes) => bytes.to_sql(ty, out),
        }
    }

    fn accepts(ty: &Type) -> bool {
        <Self as FromSql>::accepts(ty)
    }

    to_sql_checked!();
}
