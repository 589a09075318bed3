//! Tests that nothing that identifies an upstream reaches a caller (K3, K5, K6).

mod identities;
mod leaks;
mod leaks_on_pairs;
