//! Families of image models, which take and give pictures in their own ways.

use crate::profile::{Base, Profile};

/// The habits of an upstream, by the model's profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Always base64; edits as a form, or in JSON with `images[].image_url`.
    Gpt,
    /// `url` or base64 as asked; edits in JSON alone; no sizes.
    VideoA,
    /// One endpoint; source pictures in the top-level `image`.
    Content,
    /// Nothing is known: everything passes as it is.
    Plain,
}

impl Family {
    /// The family of a model; `None` when it is not served on the image endpoints.
    pub fn of(profile: &Profile) -> Option<Self> {
        match profile.base {
            Some(Base::GptImage | Base::GptImageMax) => Some(Self::Gpt),
            Some(Base::VideoAImage) => Some(Self::VideoA),
            Some(Base::ContentImage) => Some(Self::Content),
            None if profile.image_output != Some(true) => Some(Self::Plain),
            _ => None,
        }
    }
}
