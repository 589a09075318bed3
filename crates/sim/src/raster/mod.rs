//! Pictures as pixels, and as PNG, JPEG or `WebP` files.

mod codec;
mod pixels;

pub(crate) use codec::uncompressed_png;
pub use codec::{Format, decode, encode};
pub use pixels::{Raster, Rgba};
