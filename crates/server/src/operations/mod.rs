//! Use cases that the command line and the admin API share, and the views that both print.

pub(crate) mod alerts;
pub(crate) mod amount;
pub(crate) mod calendar;
pub(crate) mod calls;
pub(crate) mod channel_switch;
pub(crate) mod keys;
pub(crate) mod live_check;
pub(crate) mod proposed_models;
pub(crate) mod secret;
pub(crate) mod sign_in;
pub(crate) mod statement;
pub(crate) mod tokens;
pub(crate) mod views;
