//! Determines the family of image protocols that a model belongs to.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Gpt,
    VideoA,
    Content,
}

impl Family {
    pub(super) fn of(name: &str) -> Self {
        if name.starts_with("sim-paint-a") {
            Self::VideoA
        } else if name.starts_with("sim-paint-content") {
            Self::Content
        } else {
            Self::Gpt
        }
    }
}
