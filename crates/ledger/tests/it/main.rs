//! Tests of the public interface: prices, the debt limit, and the consistency of wallets and keys.

mod debt;
mod price_properties;
mod prices;
mod wallet_properties;
