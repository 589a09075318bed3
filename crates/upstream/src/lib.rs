//! tollgate-upstream
