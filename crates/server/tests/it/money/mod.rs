//! Admission, limits, charges and the books: who is admitted, what is held, and what each call costs.

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
