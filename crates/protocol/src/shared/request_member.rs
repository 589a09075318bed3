//! Reads single members of chat and Responses requests.

use std::borrow::Cow;

use crate::canon::Json;
use crate::failure::Failure;
use crate::json::typed::{self, ValueError};
use crate::json::{Cursor, Integer};

pub(crate) fn text(cursor: &mut Cursor<'_>, name: &str) -> Result<Option<String>, ValueError> {
    Ok(typed::string(cursor, name)?.map(Cow::into_owned))
}

/// Reads a count. Values above `u64::MAX` become `u64::MAX`.
pub(crate) fn count(cursor: &mut Cursor<'_>, name: &str) -> Result<Option<u64>, Failure> {
    match typed::integer(cursor, name)? {
        Some(Integer::Negative) => {
            let failure = Failure::invalid(format!("`{name}` must not be negative."));
            Err(failure.param(name.to_owned()))
        }
        number => Ok(number.map(Integer::saturating)),
    }
}

pub(crate) fn has_members(json: &Json) -> bool {
    json.get().contains(':')
}
