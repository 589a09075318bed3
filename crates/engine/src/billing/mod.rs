//! Computes the hold of a call and the charge for its usage.

pub(crate) mod bill;
pub(crate) mod estimate;
pub(crate) mod metering;
mod picture_tier;
pub(crate) mod route_cost;
pub(crate) mod usage_limits;
