//! Lists the caller's own content tasks.

use std::time::Duration;

use protocol::Failure;
use protocol::video::content_task;
use store::{KeyHead, TaskId, TaskQuery};
use tokio::time::timeout;
use upstream::Protocol;

use super::lookup::unavailable;
use crate::engine::Engine;
use crate::failures::try_again_soon;

/// The maximum page size, and the page size if the request sets none.
const PAGE_SIZE_MAX: u32 = 500;
const PAGE_SIZE: u32 = 10;
const PAGE_MAX: u32 = 500;
/// How long a list waits for the lists of others.
const TURN_WITHIN: Duration = Duration::from_secs(30);

/// The filters of a list request, in the protocol's own parameters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListQuery {
    pub page: Option<String>,
    pub page_size: Option<String>,
    pub status: Option<String>,
    pub model: Option<String>,
    /// If not empty, only these tasks are listed.
    pub ids: Vec<String>,
}

impl Engine {
    /// Returns a page of the caller's own content tasks, newest first.
    pub async fn content_tasks(&self, key: &KeyHead, query: ListQuery) -> Result<Vec<u8>, Failure> {
        let is_any = query.ids.is_empty();
        let query = TaskQuery {
            wallet: Some(key.wallet),
            ..task_query(query)?
        };
        // An invalid id matches nothing. An empty filter matches every task.
        if !is_any && query.ids.is_empty() {
            return Ok(content_task::write_list([], 0));
        }
        let usage = self.callers().share_of(key);
        let turn = self.task_lists.turn(usage.task_lists());
        let waited = timeout(TURN_WITHIN, turn).await;
        let _turn =
            waited.map_err(|_| try_again_soon("Too many lists of tasks are being read."))?;
        let listed = self.store.tasks(query).await;
        let page = listed.map_err(|error| unavailable(&error))?;
        let snapshots = page.tasks.iter().map(|task| &*task.snapshot);
        Ok(content_task::write_list(snapshots, page.total))
    }
}

fn task_query(query: ListQuery) -> Result<TaskQuery, Failure> {
    let page = number("page_num", query.page.as_deref(), 1, PAGE_MAX)?;
    let size = number(
        "page_size",
        query.page_size.as_deref(),
        PAGE_SIZE,
        PAGE_SIZE_MAX,
    )?;
    let ids = query.ids.iter().filter_map(|id| TaskId::parse(id).ok());
    Ok(TaskQuery {
        protocol: Some(Protocol::ContentTask.as_str().into()),
        statuses: query.status.into_iter().collect(),
        model: query.model.map(Into::into),
        ids: ids.collect(),
        limit: size,
        offset: (page - 1).saturating_mul(size),
        ..TaskQuery::default()
    })
}

fn number(name: &'static str, text: Option<&str>, usual: u32, most: u32) -> Result<u32, Failure> {
    let Some(text) = text else {
        return Ok(usual);
    };
    let number = text
        .parse()
        .ok()
        .filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| {
        let message = format!("`{name}` must be a number from 1 to {most}.");
        Failure::invalid(message).param(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_begin_at_one_and_have_bounds() {
        let query = |page: &str, size: &str| ListQuery {
            page: Some(page.to_owned()),
            page_size: Some(size.to_owned()),
            ..ListQuery::default()
        };
        let read = |query| task_query(query).map(|query| (query.offset, query.limit));
        assert_eq!(read(ListQuery::default()), Ok((0, 10)));
        assert_eq!(read(query("3", "20")), Ok((40, 20)));
        for (page, size) in [
            ("0", "1"),
            ("1", "0"),
            ("501", "1"),
            ("1", "501"),
            ("x", "1"),
            ("1", "-1"),
        ] {
            assert!(read(query(page, size)).is_err(), "{page} {size}");
        }
    }
}
