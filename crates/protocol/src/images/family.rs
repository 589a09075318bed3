//! Families of image models, which differ in their requests and answers.

use crate::profile::{BuiltInProfile, Profile};

/// The request and answer format of an image upstream, which follows from the model's profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Always answers with base64. Accepts edits as a form, or as JSON with `images[].image_url`.
    Gpt,
    /// Answers with `url` or base64 as requested. Accepts edits only as JSON. Has no sizes.
    VideoA,
    /// Has one endpoint for generations and edits. Source images are in the top-level member
    /// `image`.
    Content,
    /// Not known. Requests keep all their members.
    Unknown,
}

impl Family {
    /// The family of a model. `None` if it is not served on the image endpoints.
    pub fn of(profile: &Profile) -> Option<Self> {
        match profile.base {
            Some(BuiltInProfile::GptImage | BuiltInProfile::GptImageMax) => Some(Self::Gpt),
            Some(BuiltInProfile::VideoAImage) => Some(Self::VideoA),
            Some(BuiltInProfile::ContentImage) => Some(Self::Content),
            None if profile.image_output != Some(true) => Some(Self::Unknown),
            _ => None,
        }
    }
}
