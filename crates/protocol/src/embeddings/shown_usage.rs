//! The usage report of an answer, as clients see it.

use bytes::Bytes;

use crate::json::patch::{self, Edit};
use crate::json::{Cursor, Raw, utf8};
use crate::scrub::strip;
use crate::usage::costs;

/// The edits that remove the upstream's costs and identity from a usage report.
pub(super) fn shown_usage(usage: Raw<'_>, public_model: &str) -> Vec<Edit> {
    if !costs::has_costs(usage.text()) {
        return strip(usage, public_model);
    }
    // The value has been read before, so there are no errors.
    let left = Bytes::from(costs::without_costs(usage.text()).unwrap_or_default());
    let value = utf8(&left).and_then(|text| Cursor::new(text).value());
    let edits = value.map(|value| strip(value, public_model));
    let left = patch::apply(&left, edits.unwrap_or_default());
    vec![Edit::replace(usage.span(), left.to_vec())]
}
