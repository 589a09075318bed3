//! WebSocket sessions: admits and opens them, and then relays and meters them until they end.

mod hold;
mod kind;
mod limits;
mod open;
mod pricing;
mod relay;
mod run;

pub use kind::SessionKind;
pub use limits::SessionLimits;
pub use open::{OpenSession, SessionCall};
