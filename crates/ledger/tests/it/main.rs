//! The ledger from outside: prices, and books that balance.

mod books;
mod debt;
mod price_laws;
mod prices;
