//! tollgate-server
