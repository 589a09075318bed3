//! tollgate-ledger
