//! Members of an answer in which a router or a vendor says who served it.

use crate::json::Text;

/// Members that no dialect has. Routers name the vendor in them, vendors their own request.
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

/// Whether the member of this name says who served the answer.
pub(crate) fn is_named_by(name: Text<'_>) -> bool {
    NAMES.iter().any(|known| name.is(known))
}
