//! tollgate-sim
