//! Presets: the kinds of upstream that a channel can be, read from `catalog/presets.toml`.
//!
//! `facts.rs` reads the file; `named.rs` is the handle that the rest of the program uses.

mod facts;
mod named;

pub(crate) use facts::{AddressForm, Auth};
pub use named::{AccountSetting, Preset, SettingNeed};
