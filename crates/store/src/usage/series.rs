//! A series: a combination of dimension values by which calls are counted.

use std::borrow::Cow;
use std::sync::Arc;

use super::plan::Dimension;
use crate::records::ids::{KeyId, WalletId};
use crate::records::journal::JournalRow;

/// A combination of dimension values. Values of dimensions that are left out are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Series {
    pub wallet: Option<WalletId>,
    pub key: Option<KeyId>,
    pub model: Arc<str>,
    pub channel: Arc<str>,
    pub endpoint: Cow<'static, str>,
}

impl Series {
    /// The series of a call. Model names that callers invented are left out, so that callers cannot fill the store with
    /// them.
    pub(super) fn of(row: &JournalRow, nothing: &Arc<str>) -> Self {
        let is_known = is_model_known(row);
        Self {
            wallet: row.wallet,
            key: row.key,
            model: Arc::clone(if is_known { &row.model } else { nothing }),
            channel: Arc::clone(row.channel.as_ref().unwrap_or(nothing)),
            endpoint: row.endpoint.clone(),
        }
    }

    /// The same series, restricted to these dimensions.
    #[must_use]
    pub(crate) fn only(&self, dimensions: &[Dimension]) -> Self {
        let mut only = Self::default();
        for dimension in dimensions {
            match dimension {
                Dimension::Model => only.model = Arc::clone(&self.model),
                Dimension::Channel => only.channel = Arc::clone(&self.channel),
                Dimension::Wallet => only.wallet = self.wallet,
                Dimension::Key => only.key = self.key,
                Dimension::Endpoint => only.endpoint.clone_from(&self.endpoint),
            }
        }
        only
    }
}

/// Whether the model of a call is certainly one of ours. A call with neither a channel nor a hold and with one of these
/// statuses may have been refused before its model was found.
fn is_model_known(row: &JournalRow) -> bool {
    row.channel.is_some() || row.hold.is_some() || !matches!(row.status, 400 | 404 | 422)
}
