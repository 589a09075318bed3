//! Media checks, on files that the tests build.

mod build;
mod hostile;
mod pictures;
mod videos;
