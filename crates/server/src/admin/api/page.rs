//! Pages of lists, and the cursors between them.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::error::ApiError;

/// The maximum number of rows per page.
const LIMIT_MAX: u32 = 500;
/// The maximum length of a cursor. Ours are far shorter.
const CURSOR_BYTES_MAX: usize = 1024;

/// A page of a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Page<T> {
    pub(crate) data: Vec<T>,
    /// The `cursor` of the next page, or null at the end of the list.
    #[schema(required)]
    pub(crate) next_cursor: Option<String>,
}

impl<T> Page<T> {
    /// A page from rows that were read with a limit of [`PageLimit::and_one`]. `position` returns the position of the
    /// page's last row, after which the next page begins.
    pub(crate) fn of<R, P: Serialize>(
        mut rows: Vec<R>,
        limit: PageLimit,
        position: impl FnOnce(&R) -> P,
        show: impl FnMut(R) -> T,
    ) -> Self {
        let limit = usize::try_from(limit.get()).unwrap_or(usize::MAX);
        let more = rows.len() > limit;
        rows.truncate(limit);
        let last = rows.last().filter(|_| more);
        let next_cursor = last.map(|row| Cursor::at(&position(row)).0);
        Self {
            data: rows.into_iter().map(show).collect(),
            next_cursor,
        }
    }

    /// A page of a search. It may be empty although the search is not finished.
    pub(crate) fn of_search<P: Serialize>(data: Vec<T>, next: Option<P>) -> Self {
        Self {
            data,
            next_cursor: next.map(|position| Cursor::at(&position).0),
        }
    }

    /// A page of a list in memory. `name` returns the unique name of a row, which the cursor stores.
    pub(crate) fn of_list(
        mut rows: Vec<T>,
        query: &ShortListQuery,
        name: impl Fn(&T) -> &str,
    ) -> Result<Self, ApiError> {
        if let Some(cursor) = &query.cursor {
            let last: String = cursor.position()?;
            let last = rows.iter().position(|row| name(row) == last);
            let last = last.ok_or_else(Cursor::refused)?;
            rows.drain(..=last);
        }
        let limit = query.limit.unwrap_or(PageLimit(LIMIT_MAX));
        let rows_max = usize::try_from(limit.and_one()).unwrap_or(usize::MAX);
        rows.truncate(rows_max);
        Ok(Self::of(rows, limit, |row| name(row).to_owned(), |row| row))
    }

    /// All rows of a list that is never long.
    pub(crate) fn complete(data: Vec<T>) -> Self {
        Self {
            data,
            next_cursor: None,
        }
    }
}

/// The query of a list without filters. A list with filters repeats these two members, because serde cannot both
/// flatten a struct and refuse unknown members.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageQuery {
    /// The number of rows, 1 to 500.
    #[serde(default)]
    #[param(value_type = Option<u32>, minimum = 1, maximum = 500, default = 50)]
    pub(crate) limit: PageLimit,
    /// `next_cursor` of the previous page.
    #[param(value_type = Option<String>)]
    pub(crate) cursor: Option<Cursor>,
}

/// The query of a list that usually fits one page. Without a limit, the page has the maximum number of rows.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ShortListQuery {
    /// The number of rows, 1 to 500.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 500, default = 500)]
    pub(crate) limit: Option<PageLimit>,
    /// `next_cursor` of the previous page.
    #[param(value_type = Option<String>)]
    pub(crate) cursor: Option<Cursor>,
}

/// The number of rows per page: 1 to 500, 50 by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageLimit(u32);

impl PageLimit {
    pub(crate) fn get(self) -> u32 {
        self.0
    }

    /// One row more than the page has. If it exists, there is a next page.
    pub(crate) fn and_one(self) -> u32 {
        self.0 + 1
    }
}

impl Default for PageLimit {
    fn default() -> Self {
        Self(50)
    }
}

impl<'de> Deserialize<'de> for PageLimit {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match u32::deserialize(from) {
            Ok(limit @ 1..=LIMIT_MAX) => Ok(Self(limit)),
            _ => Err(D::Error::custom("a limit is a number from 1 to 500")),
        }
    }
}

/// A cursor: a position in a list, which clients return unchanged.
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Cursor(String);

impl Cursor {
    pub(crate) fn at(position: &impl Serialize) -> Self {
        let json = serde_json::to_vec(position).unwrap_or_default();
        Self(URL_SAFE_NO_PAD.encode(json))
    }

    /// The position that the cursor encodes. A text that is not one of our cursors is refused.
    pub(crate) fn position<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        if self.0.len() > CURSOR_BYTES_MAX {
            return Err(Self::refused());
        }
        let json = URL_SAFE_NO_PAD
            .decode(&self.0)
            .map_err(|_| Self::refused())?;
        serde_json::from_slice(&json).map_err(|_| Self::refused())
    }

    fn refused() -> ApiError {
        ApiError::invalid("cursor", "This is not a cursor of this list.")
    }
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The position of an optional cursor.
pub(crate) fn cursor_position<T: DeserializeOwned>(
    cursor: Option<&Cursor>,
) -> Result<Option<T>, ApiError> {
    cursor.map(Cursor::position).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_back_as_its_place_and_nothing_else_does() {
        let cursor = Cursor::at(&(7_i64, "name"));
        assert_eq!(
            cursor.position::<(i64, String)>().unwrap(),
            (7, "name".to_owned())
        );
        for text in ["", "7", "!!!", "bnVsbA", &"A".repeat(5000)] {
            let cursor = Cursor(text.to_owned());
            let error = cursor.position::<(i64, String)>().unwrap_err();
            assert_eq!(error.param.as_deref(), Some("cursor"), "{text}");
        }
    }

    #[test]
    fn a_page_has_a_cursor_only_if_there_is_more() {
        let limit = PageLimit(2);
        let page = |rows: Vec<i64>| Page::of(rows, limit, |row| *row, |row| row);
        assert_eq!(page(vec![1, 2]).next_cursor, None);
        let more = page(vec![1, 2, 3]);
        assert_eq!(more.data, [1, 2]);
        let cursor = Cursor(more.next_cursor.unwrap());
        assert_eq!(cursor.position::<i64>().unwrap(), 2);
    }

    #[test]
    fn a_list_in_memory_is_read_page_by_page() {
        let rows = || vec!["a", "b", "c"];
        let page = |query: &ShortListQuery| Page::of_list(rows(), query, |row| row);
        let mut query = ShortListQuery::default();
        assert_eq!(page(&query).unwrap().data, ["a", "b", "c"]);
        query.limit = Some(PageLimit(2));
        let first = page(&query).unwrap();
        assert_eq!(first.data, ["a", "b"]);
        query.cursor = first.next_cursor.map(Cursor);
        let second = page(&query).unwrap();
        assert_eq!((second.data, second.next_cursor), (vec!["c"], None));
        query.cursor = Some(Cursor::at(&"gone"));
        let error = page(&query).unwrap_err();
        assert_eq!(error.param.as_deref(), Some("cursor"));
    }
}
