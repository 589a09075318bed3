//! tollgate-protocol
