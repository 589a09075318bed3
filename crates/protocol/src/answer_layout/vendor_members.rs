//! Members in which a router or a vendor identifies the upstream of an answer.

use crate::json::Text;

/// Members that belong to no dialect. Routers name the vendor in them, and vendors name their request.
const NAMES: [&str; 9] = [
    "gateway",
    "native_finish_reason",
    "provider",
    "provider_id",
    "provider_metadata",
    "provider_name",
    "providerMetadata",
    "request_id",
    "x_groq",
];

/// Whether a member with this name identifies the upstream.
pub(crate) fn is_vendor_member(name: Text<'_>) -> bool {
    NAMES.iter().any(|known| name.is(known))
}
