//! Price cards: the exact price of a model's usage.

mod card;
mod error;
mod exact;
mod key;
mod kind;
mod markup;
mod read;
mod value;
mod write;

pub use card::{Line, PriceCard};
pub use error::{CardFault, PriceError};
pub use exact::{Exact, Price};
pub use key::PriceKey;
pub use markup::Markup;
pub use value::PriceValue;
