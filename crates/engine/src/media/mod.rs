//! Media that are kept here: copied from where an upstream has them, served, and swept.

mod bounds;
mod copy;
mod counts;
mod fault;
mod reads;
mod stream;
mod sweep;
#[cfg(test)]
mod tests;
mod watch;

pub use bounds::MediaBounds;
pub(crate) use copy::COPIES_MAX;
pub(crate) use counts::MediaCounts;
pub(crate) use fault::Uncopied;
pub use reads::MediaRead;
pub(crate) use reads::MediaReads;
pub use stream::MediaStream;
pub use watch::StorageState;
pub(crate) use watch::StorageWatch;
