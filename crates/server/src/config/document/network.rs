//! Lists of address ranges in a configuration.

use toml::de::DeValue;
use upstream::Network;

use super::section::Section;
use super::value;

/// Reads a list of ranges; absent is empty.
pub(crate) fn read_networks(section: &mut Section<'_, '_, '_>, key: &'static str) -> Vec<Network> {
    let read = |raw: &DeValue<'_>| value::text(raw)?.parse::<Network>();
    let list = section.list(key, read).unwrap_or_default();
    list.into_iter().map(|at| at.value).collect()
}
