//! Generated media that we keep: copies them from the upstream, serves them, and deletes them
//! later.

mod copy;
mod copy_error;
mod limits;
mod reads;
mod serve;
mod storage_health;
mod storage_probe;
mod stream;
mod sweep;
#[cfg(test)]
mod tests;

pub(crate) use copy_error::CopyError;
pub(crate) use limits::COPIES_MAX;
pub use limits::MediaLimits;
pub use reads::MediaRead;
pub(crate) use reads::MediaReads;
pub use storage_health::StorageState;
pub(crate) use storage_health::StorageWatch;
pub use stream::MediaStream;
