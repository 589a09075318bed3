//! Tests of the public interface: prices, and books that balance.

mod books;
mod debt;
mod price_laws;
mod prices;
