//! Checks administrative changes of keys, and applies them to the rows.

use ledger::{Key, Micro, UnixMs, Window};

use crate::error::StoreError;
use crate::queue::command::KeyEdit;
use crate::records::accounts::{KeyChange, KeyLimits, KeyRow, KeyWindow, NewKey};
use crate::records::ids::KeyId;
use crate::records::tags::checked_tags;

/// The maximum length of the name of a wallet or key, and of the reference or note of an entry.
pub(super) const TEXT_CHARS_MAX: usize = 200;

/// Checks a new key and composes its row.
pub(crate) fn new_key(
    id: KeyId,
    new: NewKey,
    wallet_name: String,
    now: UnixMs,
) -> Result<KeyRow, StoreError> {
    if let Some(name) = &new.name {
        checked_name("key", name)?;
    }
    let KeyLimits {
        limit,
        window,
        models,
        rpm,
        tpm,
        concurrency,
        expires_at,
    } = new.limits;
    checked_limit(limit)?;
    checked_limit(window.as_ref().map(|window| window.amount))?;
    let key = Key {
        enabled: true,
        expires_at,
        limit,
        window: window.as_ref().map(|window| Window::new(window.amount)),
        rpm_limit: rpm,
        tpm_limit: tpm,
        concurrency_limit: concurrency,
        ..Key::default()
    };
    Ok(KeyRow {
        id,
        wallet: new.wallet,
        wallet_name,
        name: new.name,
        shown_prefix: new.shown_prefix,
        key,
        calendar: window.map(|window| window.calendar),
        models,
        tags: checked_tags(new.tags)?,
        last_used_at: None,
        old_secret_until: None,
        created_at: now,
    })
}

#[derive(Debug)]
pub(crate) enum EditedKey {
    Changed(KeyRow),
    /// The row already has the requested values. Nothing is written.
    Unchanged(KeyRow),
}

/// Computes the row of a key after a change of its settings. `now` is the current state of the key in the ledger.
pub(crate) fn edited_key(
    before: &KeyRow,
    now: Key,
    edit: KeyEdit,
) -> Result<EditedKey, StoreError> {
    let current = KeyRow {
        key: now,
        ..before.clone()
    };
    let mut row = current.clone();
    match edit {
        KeyEdit::Enabled(enabled) => row.key.enabled = enabled,
        KeyEdit::Limits(change) => change_limits(&mut row, change)?,
        KeyEdit::Rotate(rotation) => {
            row.shown_prefix = rotation.shown_prefix;
            row.old_secret_until = rotation.old_secret_until;
            return Ok(EditedKey::Changed(row));
        }
    }
    if row == current {
        return Ok(EditedKey::Unchanged(row));
    }
    Ok(EditedKey::Changed(row))
}

fn change_limits(row: &mut KeyRow, change: KeyChange) -> Result<(), StoreError> {
    if let Some(Some(name)) = &change.name {
        checked_name("key", name)?;
    }
    let key = &mut row.key;
    key.enabled = change.enabled.unwrap_or(key.enabled);
    key.limit = change.limit.unwrap_or(key.limit);
    key.rpm_limit = change.rpm.unwrap_or(key.rpm_limit);
    key.tpm_limit = change.tpm.unwrap_or(key.tpm_limit);
    key.concurrency_limit = change.concurrency.unwrap_or(key.concurrency_limit);
    key.expires_at = change.expires_at.unwrap_or(key.expires_at);
    if let Some(window) = change.window {
        set_window(row, window);
    }
    row.name = change.name.unwrap_or_else(|| row.name.take());
    row.models = change.models.unwrap_or_else(|| row.models.take());
    if let Some(tags) = change.tags {
        row.tags = checked_tags(tags)?;
    }
    checked_limit(row.key.limit)?;
    checked_limit(row.key.window.map(|window| window.amount))
}

/// Sets or removes the window of a key. If only the amount changes, the new amount applies to the current period.
/// Otherwise a new period begins with the next decision, and earlier charges do not count towards it.
fn set_window(row: &mut KeyRow, window: Option<KeyWindow>) {
    let Some(KeyWindow { amount, calendar }) = window else {
        (row.key.window, row.calendar) = (None, None);
        return;
    };
    let same = row.calendar.as_ref() == Some(&calendar);
    let current = row.key.window.filter(|_| same);
    row.key.window = Some(Window {
        amount,
        ..current.unwrap_or(Window::new(amount))
    });
    row.calendar = Some(calendar);
}

pub(super) fn checked_name(what: &'static str, name: &str) -> Result<(), StoreError> {
    if name.trim().is_empty()
        || name.chars().count() > TEXT_CHARS_MAX
        || name.chars().any(char::is_control)
    {
        return Err(StoreError::Invalid(format!(
            "a {what}'s name has 1 to {TEXT_CHARS_MAX} printable characters"
        )));
    }
    Ok(())
}

fn checked_limit(limit: Option<Micro>) -> Result<(), StoreError> {
    if limit.is_some_and(Micro::is_negative) {
        return Err(StoreError::Invalid(
            "a key's limit is not below zero".to_owned(),
        ));
    }
    Ok(())
}
