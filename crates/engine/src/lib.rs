//! tollgate-engine
