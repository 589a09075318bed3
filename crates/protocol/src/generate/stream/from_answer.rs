//! Writes a whole answer as the one chunk of a stream. Both have the same members.

use crate::answer_layout::Events;
use crate::broken::Broken;
use crate::json::{Raw, RawObject};

/// One chunk with all members.
#[cold]
pub(crate) fn write_events(answer: Raw<'_>, events: &mut Events<'_>) -> Result<(), Broken> {
    let answer = RawObject::of(answer).ok_or_else(|| Broken::malformed("no answer"))?;
    events.data(|it| answer.write_to(it, &[]))
}
