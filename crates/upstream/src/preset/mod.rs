//! Presets: the kinds of upstreams that a channel can use, read from `catalog/presets.toml`.
//!
//! `facts.rs` reads the file; `vendor.rs` defines the type that the rest of the program uses.

mod facts;
mod vendor;

pub(crate) use facts::{AddressForm, Auth};
pub use vendor::{AccountSetting, Preset, SettingNeed};
