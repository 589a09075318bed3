//! Writes a whole answer as a stream of one chunk. Both have the same members.

use crate::answer_layout::Events;
use crate::json::{Raw, RawObject};
use crate::unusable_answer::UnusableAnswer;

#[cold]
pub(crate) fn write_events(answer: Raw<'_>, events: &mut Events<'_>) -> Result<(), UnusableAnswer> {
    let answer = RawObject::of(answer).ok_or_else(|| UnusableAnswer::malformed("no answer"))?;
    events.data(|it| answer.write_to(it, &[]))
}
