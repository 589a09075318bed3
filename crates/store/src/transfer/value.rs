//! Values and rows in a form that is independent of the database.

use serde::{Deserialize, Serialize};

/// A value of a column. Booleans are the integers 0 and 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Value {
    Null,
    Integer(i64),
    Text(String),
    Bytes(Vec<u8>),
}

impl Value {
    /// The integer, or 0 for any other value.
    pub(crate) fn integer(&self) -> i64 {
        match self {
            Self::Integer(integer) => *integer,
            Self::Null | Self::Text(_) | Self::Bytes(_) => 0,
        }
    }
}

/// The values of a row, in the order of the table's columns.
pub(crate) type Row = Vec<Value>;

/// How far a table has been copied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Position {
    /// The key of the last row that was copied. `None` before the first.
    pub(crate) after: Option<Vec<Value>>,
    pub(crate) rows: u64,
}

impl Position {
    /// Encodes the key for storage at the destination.
    pub(crate) fn encode(&self) -> String {
        serde_json::to_string(&self.after).unwrap_or_default()
    }

    /// Decodes the output of [`encode`](Self::encode).
    pub(crate) fn decode(after: &str, rows: i64) -> Option<Self> {
        Some(Self {
            after: serde_json::from_str(after).ok()?,
            rows: u64::try_from(rows).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_as_it_was_written() {
        for after in [
            None,
            Some(vec![Value::Integer(-7)]),
            Some(vec![
                Value::Text("a \"b\"\u{0}".to_owned()),
                Value::Bytes(vec![0, 255]),
                Value::Null,
            ]),
        ] {
            let position = Position { after, rows: 9 };
            assert_eq!(Position::decode(&position.encode(), 9), Some(position));
        }
        assert_eq!(Position::decode("somewhere", 9), None);
        assert_eq!(Position::decode("null", -1), None);
    }
}
