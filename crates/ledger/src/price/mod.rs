//! Price cards: what a model's usage costs, exactly.

mod card;
mod exact;
mod key;
mod kind;
mod read;
mod value;
mod write;

pub use card::{Line, PriceCard, PriceError};
pub use exact::{Exact, Price};
pub use key::PriceKey;
pub use read::CardFault;
pub use value::PriceValue;
