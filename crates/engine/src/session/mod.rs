//! WebSocket sessions: admitted and opened, then relayed and metered until they end.

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
