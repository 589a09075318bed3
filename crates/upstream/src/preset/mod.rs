//! Presets: the kinds of upstreams that a channel can use, read from `catalog/presets.toml`.
//!
//! `facts.rs` reads the file; `named.rs` defines the type that the rest of the program uses.

mod facts;
mod named;

pub(crate) use facts::{AddressForm, Auth};
pub use named::{AccountSetting, Preset, SettingNeed};
