//! Searches calls by filters and by text.

use std::collections::BTreeMap;

use futures_util::future::try_join_all;
use ledger::UnixMs;
use store::{
    JournalCursor, JournalEntry, JournalPage, JournalQuery, KeyId, StatusRange, Store, StoreError,
    WalletId,
};

/// The maximum number of wallets, of keys and of models that a text may match.
const CONDITIONS_MAX: u32 = 8;
const REQUEST_PREFIX: &str = "req_";

/// Selects calls. All given conditions must hold.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallFilter {
    pub(crate) wallet: Option<WalletId>,
    pub(crate) key: Option<KeyId>,
    pub(crate) model: Option<String>,
    pub(crate) channel: Option<String>,
    pub(crate) endpoint: Option<String>,
    pub(crate) status: Option<StatusRange>,
    pub(crate) from: Option<UnixMs>,
    pub(crate) to: Option<UnixMs>,
    /// An error code, the beginning of a request id, or a part of the name of a wallet, key or model.
    pub(crate) text: Option<String>,
    pub(crate) before: Option<JournalCursor>,
    pub(crate) limit: u32,
}

/// Returns a page of calls, newest first. `models` are the names that a text may match.
pub(crate) async fn search(
    store: &Store,
    filter: CallFilter,
    models: &[String],
) -> Result<JournalPage, StoreError> {
    let query = JournalQuery {
        wallet: filter.wallet,
        key: filter.key,
        model: filter.model,
        channel: filter.channel,
        endpoint: filter.endpoint,
        status: filter.status,
        since: filter.from,
        until: filter.to,
        before: filter.before,
        // One row more, which shows whether there is a next page.
        limit: filter.limit.saturating_add(1),
        without_bodies: true,
        ..JournalQuery::default()
    };
    let text = filter.text.as_deref().map(str::trim);
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        return Ok(cut(store.journal_page(query).await?, filter.limit as usize));
    };
    let conditions = conditions(store, text, models).await?;
    let queries = conditions
        .iter()
        .filter_map(|condition| condition.narrow(&query));
    let pages = try_join_all(queries.map(|query| store.journal_page(query))).await?;
    Ok(merge(pages, filter.limit as usize))
}

/// A condition that a search text may stand for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SearchCondition {
    Request(String),
    Wallet(WalletId),
    Key(KeyId),
    Model(String),
    Code(String),
}

impl SearchCondition {
    /// Adds this condition to a query. `None` if it contradicts the other conditions.
    fn narrow(&self, query: &JournalQuery) -> Option<JournalQuery> {
        let mut narrow = query.clone();
        match self {
            Self::Request(prefix) => narrow.request_prefix = Some(prefix.clone()),
            Self::Wallet(wallet) => narrow.wallet = Some(*wallet),
            Self::Key(key) => narrow.key = Some(*key),
            Self::Model(model) => narrow.model = Some(model.clone()),
            Self::Code(code) => narrow.code = Some(code.clone()),
        }
        let is_kept = (query.wallet.is_none() || query.wallet == narrow.wallet)
            && (query.key.is_none() || query.key == narrow.key)
            && (query.model.is_none() || query.model == narrow.model);
        is_kept.then_some(narrow)
    }
}

async fn conditions(
    store: &Store,
    text: &str,
    models: &[String],
) -> Result<Vec<SearchCondition>, StoreError> {
    if text.starts_with(REQUEST_PREFIX) {
        return Ok(vec![SearchCondition::Request(text.to_owned())]);
    }
    let accounts = store.find_accounts(text, CONDITIONS_MAX).await?;
    let wallets = accounts
        .wallets
        .iter()
        .map(|(id, _)| SearchCondition::Wallet(*id));
    let keys = accounts.keys.iter().map(|key| SearchCondition::Key(key.id));
    let lower = text.to_lowercase();
    let models = models
        .iter()
        .filter(|model| model.to_lowercase().contains(&lower));
    let models = models
        .take(CONDITIONS_MAX as usize)
        .cloned()
        .map(SearchCondition::Model);
    let mut conditions: Vec<SearchCondition> = wallets.chain(keys).chain(models).collect();
    // The text may be the full name of a model that is no longer in the catalog.
    let whole = SearchCondition::Model(text.to_owned());
    if text.contains('/') && !conditions.contains(&whole) {
        conditions.push(whole);
    }
    if lower
        .bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    {
        conditions.push(SearchCondition::Code(lower));
    }
    Ok(conditions)
}

/// Merges the pages of several searches: every row once, newest first, without rows beyond the position that all
/// searches have reached.
fn merge(pages: Vec<JournalPage>, limit: usize) -> JournalPage {
    // A search may have further rows after the position where it stopped.
    let reached = pages.iter().filter_map(|page| page.next).max();
    let entries = pages.into_iter().flat_map(|page| page.entries);
    let entries = entries.filter(|entry| reached.is_none_or(|reached| entry.cursor >= reached));
    let entries: BTreeMap<JournalCursor, JournalEntry> =
        entries.map(|entry| (entry.cursor, entry)).collect();
    let page = JournalPage {
        entries: entries.into_values().rev().collect(),
        next: reached,
    };
    cut(page, limit)
}

/// Truncates a page. The next page begins after its last row.
fn cut(mut page: JournalPage, limit: usize) -> JournalPage {
    if page.entries.len() > limit {
        page.entries.truncate(limit);
        page.next = page.entries.last().map(|entry| entry.cursor);
    }
    page
}

/// Parses `429`, `4xx` or `error`.
pub(crate) fn statuses(text: &str) -> Result<StatusRange, String> {
    if text == "error" {
        return Ok(StatusRange::errors());
    }
    if let Some(class) = text.strip_suffix("xx")
        && let Ok(class @ 1..=5) = class.parse()
    {
        return Ok(StatusRange::class(class));
    }
    match text.parse() {
        Ok(status @ 100..=599) => Ok(StatusRange::only(status)),
        _ => Err("write a status such as 429, a class such as 4xx, or error".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use store::JournalRow;

    use super::*;

    fn page(positions: &[i64], next: Option<i64>) -> JournalPage {
        let entry = |position: &i64| JournalEntry {
            cursor: JournalCursor::new(*position),
            row: JournalRow::default(),
        };
        JournalPage {
            entries: positions.iter().map(entry).collect(),
            next: next.map(JournalCursor::new),
        }
    }

    #[test]
    fn pages_are_merged_without_gap_or_repeat() {
        for (pages, limit, merged) in [
            (vec![], 3, page(&[], None)),
            (
                vec![page(&[9, 5], None), page(&[7, 5], None)],
                3,
                page(&[9, 7, 5], None),
            ),
            (
                vec![page(&[9, 5], None), page(&[7, 4], None)],
                3,
                page(&[9, 7, 5], Some(5)),
            ),
            // The second search stopped at 6, so row 5 belongs to the next page.
            (
                vec![page(&[9, 5], None), page(&[7], Some(6))],
                3,
                page(&[9, 7], Some(6)),
            ),
            (
                vec![page(&[9, 8], Some(8)), page(&[], Some(2))],
                3,
                page(&[9, 8], Some(8)),
            ),
        ] {
            assert_eq!(merge(pages, limit), merged);
        }
    }

    #[test]
    fn a_condition_that_contradicts_a_filter_finds_nothing() {
        let (wallet, other) = (WalletId::random(), WalletId::random());
        let of_wallet = JournalQuery {
            wallet: Some(wallet),
            ..JournalQuery::default()
        };
        assert_eq!(SearchCondition::Wallet(other).narrow(&of_wallet), None);
        assert_eq!(
            SearchCondition::Wallet(wallet).narrow(&of_wallet),
            Some(of_wallet.clone())
        );
        let code = SearchCondition::Code("rate_limit_exceeded".to_owned())
            .narrow(&of_wallet)
            .unwrap();
        assert_eq!((code.wallet, code.code.is_some()), (Some(wallet), true));
    }

    #[test]
    fn a_status_is_one_or_a_class_or_any_error() {
        for (text, first, last) in [
            ("429", 429, 429),
            ("4xx", 400, 499),
            ("5xx", 500, 599),
            ("error", 400, 599),
        ] {
            let range = statuses(text).unwrap();
            assert_eq!((range.first, range.last), (first, last), "{text}");
        }
        for text in ["", "xx", "9xx", "42", "4xxx", "600"] {
            assert!(statuses(text).is_err(), "{text}");
        }
    }
}
