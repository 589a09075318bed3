//! Tests of admission, limits, holds, charges and the ledger.

mod absurd_usage;
mod admission;
mod balance;
mod bill;
mod debt;
mod long_cache;
mod margin;
mod output_limit;
mod prompt_count;
mod rates;
mod reports;
mod zero_usage;
