//! JSON as bytes: found, checked and patched in place, never built into a tree.

pub mod text;
