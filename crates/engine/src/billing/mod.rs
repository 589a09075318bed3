//! Computes what is held for a call, and what its usage costs.

pub(crate) mod bill;
pub(crate) mod estimate;
pub(crate) mod metering;
mod picture_tier;
pub(crate) mod route_cost;
pub(crate) mod usage_limits;
