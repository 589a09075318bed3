//! Describes where a dialect's answers hold the members that the native path must find or change.

use super::identity::{FixedMember, IdentityMember, IdentitySet};
use super::incomplete_event::FillIn;
use super::output::Output;
use crate::json::{Cursor, SyntaxError, Text};
use crate::needle::Needle;
use crate::usage::Usage;

/// The members of one dialect's answers and events that the native path needs.
#[derive(Debug)]
pub(crate) struct AnswerLayout {
    /// The member of an event that contains the members of the answer, if there is one.
    pub(crate) envelope: Option<&'static str>,
    /// Members whose content may also identify the upstream: the envelope, or the lists and objects
    /// of the output.
    pub(crate) nested: &'static [&'static str],
    pub(crate) id: &'static str,
    /// Another member that repeats the response id, if there is one.
    pub(crate) id_again: Option<&'static str>,
    pub(crate) model: &'static str,
    /// The member with the creation time in Unix seconds, if the dialect has one.
    pub(crate) created: Option<&'static str>,
    /// A member that is set to the same value in every answer.
    pub(crate) fixed: Option<FixedMember>,
    pub(crate) usage: &'static str,
    /// Reads the usage report at the cursor. Values that the report omits are taken from the second argument,
    /// the previous report. Returns `None` if billing cannot use the report.
    pub(crate) read_usage: fn(&mut Cursor<'_>, Option<Usage>) -> Result<Option<Usage>, SyntaxError>,
    /// Whether a usage report contains the output, in dialects whose later reports may omit it. A report
    /// without the output is interim.
    pub(crate) has_output: Option<fn(&str) -> bool>,
    /// Reads a member that contains output or describes the event. Returns `false` for every other member,
    /// which stays unread.
    pub(crate) read_output: fn(Text<'_>, &mut Cursor<'_>, &mut Output) -> Result<bool, SyntaxError>,
    /// Every answer or event that mentions a built-in tool outside its usage report contains one of
    /// these strings.
    pub(crate) tool_needles: &'static [Needle],
    /// Whether a whole answer must have items (choices, candidates).
    pub(crate) needs_items: bool,
    /// The event that only ends the stream, if the dialect has one.
    pub(crate) end_mark: Option<EndMark>,
    /// Whether clients of the dialect accept only lines that start with `data: `. They treat a
    /// comment or an `event:` line as the end of the stream.
    pub(crate) data_only: bool,
    /// Whether usage comes in an event of its own, which a client gets only on request.
    pub(crate) usage_event: bool,
    /// The member that repeats the name of an event, if events have names.
    pub(crate) event_name: Option<&'static str>,
    /// Fills in required members that an event lacks, if the dialect has any.
    pub(crate) fill_in: Option<FillIn>,
}

impl AnswerLayout {
    /// The identity members of an answer, with their names in the dialect.
    pub(crate) fn identity_members(&self) -> [(IdentityMember, Option<&'static str>); 4] {
        [
            (IdentityMember::Id, Some(self.id)),
            (IdentityMember::Created, self.created),
            (IdentityMember::Model, Some(self.model)),
            (IdentityMember::Fixed, self.fixed.map(|(name, _)| name)),
        ]
    }

    pub(crate) fn required_identity(&self) -> IdentitySet {
        let members = self.identity_members().into_iter();
        let required = members.filter(|(_, member)| member.is_some());
        required.fold(IdentitySet::default(), |all, (name, _)| all.with(name))
    }

    pub(crate) fn is_end_mark(&self, data: &[u8]) -> bool {
        let end_mark = self.end_mark.map(|mark| mark.data.as_bytes());
        end_mark.is_some_and(|end_mark| data.trim_ascii() == end_mark)
    }

    pub(crate) fn identity(&self, name: Text<'_>) -> Option<IdentityMember> {
        if name.is(self.id) || self.id_again.is_some_and(|again| name.is(again)) {
            Some(IdentityMember::Id)
        } else if name.is(self.model) {
            Some(IdentityMember::Model)
        } else if self.created.is_some_and(|created| name.is(created)) {
            Some(IdentityMember::Created)
        } else if self.fixed.is_some_and(|(fixed, _)| name.is(fixed)) {
            Some(IdentityMember::Fixed)
        } else {
            None
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct EndMark {
    /// The data by which the event is recognized.
    pub(crate) data: &'static str,
    /// The event as it is sent.
    pub(crate) frame: &'static str,
}
