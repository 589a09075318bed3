//! The protocols that can serve each kind of model.

use protocol::{Base, Kind};
use upstream::Protocol;

/// The protocols that can serve models of this kind and base. A channel must speak one of them.
pub(crate) fn protocols_for(kind: Kind, base: Option<Base>) -> &'static [Protocol] {
    use Protocol::{
        Chat, Converse, Embeddings, Generate, Images, Interactions, Messages, Responses, Voice,
    };
    match kind {
        Kind::Text => &[Chat, Responses, Messages, Generate, Interactions, Converse],
        Kind::Embedding => &[Embeddings, Generate],
        Kind::Image => match base {
            Some(Base::NativeImage) => &[Generate],
            Some(_) => &[Images],
            None => &[Images, Generate],
        },
        Kind::Video => engine::video_protocols(base),
        Kind::Audio => &[Voice],
    }
}

/// The kind of model that a built-in profile describes.
pub(crate) fn kind_of(base: Base) -> Kind {
    match base {
        Base::Content25
        | Base::Content20
        | Base::Content15Pro
        | Base::Content10
        | Base::Predict31
        | Base::Predict31Fast
        | Base::Predict31Lite
        | Base::Omni11
        | Base::VideoA => Kind::Video,
        Base::GptImage
        | Base::GptImageMax
        | Base::VideoAImage
        | Base::ContentImage
        | Base::NativeImage => Kind::Image,
    }
}
