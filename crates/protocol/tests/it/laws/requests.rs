//! Requests between any two dialects.
