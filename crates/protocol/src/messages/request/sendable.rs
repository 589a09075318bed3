//! Selects the parts of a conversation that a Messages upstream accepts.

use crate::canon::{
    Document, Dropped, Field, Image, ImageDetail, ImageSource, Member, MergedConversation,
    MergedTurn, Part, Path, Role, Target, Thought,
};
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::shared::signature;

/// Accepted image types: the names that clients use, and their names in this dialect.
const IMAGES: [(&str, &str); 6] = [
    // A missing type is detected from the first bytes.
    ("", ""),
    ("image/jpeg", "image/jpeg"),
    ("image/jpg", "image/jpeg"),
    ("image/png", "image/png"),
    ("image/gif", "image/gif"),
    ("image/webp", "image/webp"),
];

/// Removes the parts that cannot be sent and reports them. A turn without parts is removed, and the
/// turns around it are merged.
pub(super) fn sendable_turns<'a>(
    merged: MergedConversation<'a>,
    detail: Option<ImageDetail>,
    target: &Target<'_>,
    dropped: &mut Dropped,
) -> Result<Vec<MergedTurn<'a>>, Failure> {
    let mut turns: Vec<MergedTurn<'a>> = Vec::with_capacity(merged.turns.len());
    for mut turn in merged.turns {
        let mut parts = Vec::with_capacity(turn.parts.len());
        let mut lost = None;
        for (path, part) in turn.parts {
            match check_part(path, part, turn.role, (target, detail), dropped)? {
                PartCheck::Sent => parts.push((path, part)),
                PartCheck::Empty => {}
                PartCheck::Lost => {
                    dropped.path(path);
                    lost = Some(path);
                }
            }
        }
        turn.parts = parts;
        match (turns.last_mut(), lost) {
            (_, Some(path)) if turn.parts.is_empty() && turn.role == Role::User => {
                // Without this turn, the model would not know that the user asked something.
                let message = "Nothing of this turn can be sent to this model.";
                return Err(Failure::invalid(message).param(path.to_string()));
            }
            _ if turn.parts.is_empty() => {}
            (Some(before), _) if before.role == turn.role => {
                before.parts.append(&mut turn.parts);
            }
            _ => turns.push(turn),
        }
    }
    if turns.is_empty() {
        return Err(Failure::invalid("The request says nothing to the model."));
    }
    Ok(turns)
}

/// Whether the conversation is in a tool loop whose first thought is missing.
pub(super) fn resumes_without_thought(turns: &[MergedTurn<'_>]) -> bool {
    let mut turns = turns.iter().rev();
    let mut next = || turns.next()?.parts.first().map(|(_, part)| *part);
    matches!(next(), Some(Part::ToolResult(_))) && !matches!(next(), Some(Part::Thought(_)))
}

/// The result of the check whether a part can be sent.
enum PartCheck {
    Sent,
    Empty,
    Lost,
}

fn check_part(
    path: Path,
    part: &Part,
    role: Role,
    (target, detail): (&Target<'_>, Option<ImageDetail>),
    dropped: &mut Dropped,
) -> Result<PartCheck, Failure> {
    let is_user = role == Role::User;
    let is_sent = match part {
        Part::Text(text) | Part::Refusal(text) if !is_not_blank(text) => {
            return Ok(PartCheck::Empty);
        }
        Part::Text(_) | Part::Refusal(_) => true,
        Part::Image(image) if is_user => {
            check_image(image, path, detail, dropped)?;
            true
        }
        Part::Document(document) => is_user && is_readable(document),
        Part::ToolResult(result) if is_user => {
            for (path, part) in &result.parts {
                match part {
                    Part::Image(image) => check_image(image, *path, detail, dropped)?,
                    Part::Text(_) | Part::Refusal(_) | Part::Document(_) => {}
                    _ => dropped.path(*path),
                }
            }
            true
        }
        Part::Thought(thought) => !is_user && signed(thought, target).is_some(),
        Part::ToolCall(call) => {
            // Calls have no member for a signature.
            if call.opaque.is_some() {
                dropped.signature(path, call);
            }
            !is_user
        }
        Part::Image(_) | Part::ToolResult(_) | Part::Foreign => false,
    };
    Ok(if is_sent {
        PartCheck::Sent
    } else {
        PartCheck::Lost
    })
}

/// Whether a text contains more than white space. Upstreams refuse other texts.
pub(super) fn is_not_blank(text: &str) -> bool {
    !text.trim().is_empty()
}

/// The signature of a thought, if the target model made it.
pub(super) fn signed<'a>(thought: &'a Thought, target: &Target<'_>) -> Option<&'a str> {
    signature::for_upstream(
        thought.opaque.as_ref(),
        Dialect::Messages,
        target.public_model,
    )
}

/// Whether upstreams read this type of document: PDF and text.
fn is_readable(document: &Document) -> bool {
    document.mime == "application/pdf" || document.mime.starts_with("text/")
}

/// The name of an image type in this dialect, if it is accepted.
pub(super) fn image_type(mime: &str) -> Option<&'static str> {
    let mut known = IMAGES.iter();
    let found = known.find(|(name, _)| name.eq_ignore_ascii_case(mime));
    found.map(|(_, mime)| *mime)
}

/// Refuses an image that cannot be sent, because without it the answer would be about something
/// else. Reports its level of detail as dropped, unless it is `auto`.
fn check_image(
    image: &Image,
    path: Path,
    detail: Option<ImageDetail>,
    dropped: &mut Dropped,
) -> Result<(), Failure> {
    match (image.detail, detail) {
        (Some(ImageDetail::Auto), _) | (None, None | Some(ImageDetail::Auto)) => {}
        (Some(_), _) => dropped.member(path, Member::ImageDetail),
        (None, Some(_)) => dropped.field(Field::ImageDetail),
    }
    let message = match &image.source {
        ImageSource::Url(url) if is_secure(url) => return Ok(()),
        ImageSource::Inline { mime, .. } if image_type(mime).is_some() => return Ok(()),
        ImageSource::Url(_) => "Images must be inline or have an `https` address.",
        ImageSource::Inline { .. } => "Images must be JPEG, PNG, GIF or WebP.",
    };
    Err(Failure::invalid(message).param(path.to_string()))
}

fn is_secure(url: &str) -> bool {
    let scheme = url.get(..8);
    scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://"))
}
