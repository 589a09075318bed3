//! What a call is held for, and what its usage costs.

pub(crate) mod bill;
pub(crate) mod estimate;
pub(crate) mod metering;
mod picture_tier;
pub(crate) mod route_cost;
pub(crate) mod usage_limits;
