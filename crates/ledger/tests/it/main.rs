//! Tests of the public interface: prices, the debt limit, and the consistency of wallets and keys.

mod books;
mod debt;
mod price_laws;
mod prices;
