//! Looks up the names of the wallets and keys of calls.

use store::{AccountNames, JournalEntry, Store, StoreError};

/// The names of all wallets and keys of these calls.
pub(crate) async fn names_of_calls(
    store: &Store,
    entries: &[JournalEntry],
) -> Result<AccountNames, StoreError> {
    let mut wallets: Vec<_> = entries
        .iter()
        .filter_map(|entry| entry.row.wallet)
        .collect();
    let mut keys: Vec<_> = entries.iter().filter_map(|entry| entry.row.key).collect();
    wallets.sort_unstable();
    wallets.dedup();
    keys.sort_unstable();
    keys.dedup();
    store.account_names(wallets, keys).await
}
