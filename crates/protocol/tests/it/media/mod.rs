//! Checks of media on files that are built here.

mod build;
mod hostile;
mod pictures;
mod videos;
