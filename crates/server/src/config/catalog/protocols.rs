//! The protocols that can serve each kind of model.

use protocol::{BuiltInProfile, Kind};
use upstream::Protocol;

/// The protocols that can serve models of this kind and base. A channel must speak one of them.
pub(crate) fn protocols_for(kind: Kind, base: Option<BuiltInProfile>) -> &'static [Protocol] {
    use Protocol::{
        Chat, Converse, Embeddings, Generate, Images, Interactions, Messages, Responses, Voice,
    };
    match kind {
        Kind::Text => &[Chat, Responses, Messages, Generate, Interactions, Converse],
        Kind::Embedding => &[Embeddings, Generate],
        Kind::Image => match base {
            Some(BuiltInProfile::NativeImage) => &[Generate],
            Some(_) => &[Images],
            None => &[Images, Generate],
        },
        Kind::Video => engine::video_protocols(base),
        Kind::Audio => &[Voice],
    }
}

/// The kind of model that a built-in profile describes.
pub(crate) fn kind_of(base: BuiltInProfile) -> Kind {
    match base {
        BuiltInProfile::Content25
        | BuiltInProfile::Content20
        | BuiltInProfile::Content15Pro
        | BuiltInProfile::Content10
        | BuiltInProfile::Predict31
        | BuiltInProfile::Predict31Fast
        | BuiltInProfile::Predict31Lite
        | BuiltInProfile::Omni11
        | BuiltInProfile::VideoA => Kind::Video,
        BuiltInProfile::GptImage
        | BuiltInProfile::GptImageMax
        | BuiltInProfile::VideoAImage
        | BuiltInProfile::ContentImage
        | BuiltInProfile::NativeImage => Kind::Image,
    }
}
