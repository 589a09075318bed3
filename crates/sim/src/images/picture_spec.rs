//! Describes the pictures that a request asks for, and draws them.

use super::family::Family;
use super::painting::{Background, paint};
use super::scene::Scene;
use crate::raster::{Format, Raster, encode};

/// The number of blocks along the shorter side of the coarsest preview.
const COARSEST_BLOCKS: u32 = 8;

#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the request"
)]
pub(super) struct PictureSpec {
    pub(super) family: Family,
    pub(super) prompt: String,
    /// The number of pictures in the answer.
    pub(super) count: u64,
    pub(super) size: (u32, u32),
    pub(super) quality: String,
    pub(super) format: Format,
    pub(super) transparent: bool,
    pub(super) compression: u8,
    pub(super) previews: u32,
    pub(super) stream: bool,
    pub(super) as_url: bool,
    pub(super) layers: bool,
    pub(super) sources: Vec<Raster>,
    pub(super) mask: Option<Raster>,
}

impl PictureSpec {
    pub(super) fn scene(&self, index: u64) -> Scene {
        Scene::of(&self.prompt, index)
    }

    /// Draws one picture at full detail.
    pub(super) fn picture(&self, index: u64) -> Vec<u8> {
        self.painted(index, 1)
    }

    /// Draws a preview. Later previews have more detail.
    pub(super) fn preview(&self, index: u64, preview: u32) -> Vec<u8> {
        let coarsest = self.size.0.min(self.size.1) / COARSEST_BLOCKS;
        self.painted(index, (coarsest >> (preview * 2).min(8)).max(2))
    }

    fn painted(&self, index: u64, block: u32) -> Vec<u8> {
        let background = match self.sources.split_first() {
            Some((source, others)) => Background::Picture {
                source,
                mask: self.mask.as_ref(),
                others,
            },
            None if self.transparent => Background::Transparent,
            None => Background::Coloured,
        };
        let picture = paint(&self.scene(index), self.size, background, block);
        encode(&picture, self.format, self.compression)
    }

    pub(super) fn size_text(&self) -> String {
        format!("{}x{}", self.size.0, self.size.1)
    }
}
