//! Which endpoint a request names, by its method and path.

pub(super) mod surface;
#[cfg(test)]
mod tests;
