//! Reads the routes that a call has tried from the notes of its journal row.

use engine::{FALLBACK, NOTE_SEPARATOR, PASSED_OVER};
use store::JournalRow;

/// The status of calls whose client left. If a row with this status names the channel of the last note, the client left
/// during a second attempt on that channel.
const CLIENT_GONE: u16 = 499;

/// A route that was tried or passed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attempt {
    /// The channel of the route, or the id of a fallback model that cannot serve the request.
    pub(crate) channel: String,
    /// The upstream's name for the model. Notes do not contain this name, so only an attempt without a note has one.
    pub(crate) model: Option<String>,
    /// Why the route failed or was passed over, or how its answer failed.
    pub(crate) reason: Option<String>,
    /// Whether the route was not tried at all.
    pub(crate) is_passed_over: bool,
    /// The model of the route, if it is not the one that the caller named.
    pub(crate) fallback: Option<String>,
}

/// The parsed notes of a row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RouteNotes {
    pub(crate) attempts: Vec<Attempt>,
    /// Upstream messages that the caller did not see.
    pub(crate) upstream_text: Option<String>,
    /// The model that the caller named, if fallbacks were tried too.
    pub(crate) named_model: Option<String>,
}

impl RouteNotes {
    pub(crate) fn of(row: &JournalRow) -> Self {
        let mut notes = Self::default();
        let mut texts = Vec::new();
        let mut fallback = None;
        let written = row.route_notes.iter();
        for note in written.flat_map(|notes| notes.split(NOTE_SEPARATOR)) {
            // A note is an upstream message that the caller did not see, a fallback, or a route that failed or was
            // passed over.
            if let Some(text) = note.strip_prefix("said: ") {
                texts.push(text);
                continue;
            }
            if let Some((before, to)) = read_fallback(note) {
                notes.named_model.get_or_insert_with(|| before.to_owned());
                fallback = Some(to.to_owned());
                continue;
            }
            let (channel, reason) = note.split_once(": ").unwrap_or((note, ""));
            notes.attempts.push(Attempt {
                channel: channel.to_owned(),
                model: None,
                reason: Some(reason.to_owned()),
                is_passed_over: reason.starts_with(PASSED_OVER),
                fallback: fallback.clone(),
            });
        }
        if let Some(channel) = row.channel.as_ref().filter(|_| !notes.has_last(row)) {
            notes.attempts.push(Attempt {
                channel: channel.to_string(),
                model: row.upstream_model.as_deref().map(ToOwned::to_owned),
                reason: row.code.as_deref().map(ToOwned::to_owned),
                is_passed_over: false,
                fallback,
            });
        }
        notes.upstream_text = (!texts.is_empty()).then(|| texts.join("\n"));
        notes
    }

    /// Whether the notes already contain the last route that was tried. If a call failed before its answer began, or
    /// after a stream of nothing but keep-alives, its row names the channel of the last attempt in the notes.
    fn has_last(&self, row: &JournalRow) -> bool {
        let mut tried = self.attempts.iter().filter(|it| !it.is_passed_over);
        let last = tried.next_back().map(|last| last.channel.as_str());
        row.is_error()
            && row.status != CLIENT_GONE
            && (row.timings.first_byte_us.is_none() || row.outcome.as_deref() == Some("released"))
            && last == row.channel.as_deref()
    }
}

/// The models before and after a fallback, if the note is about one.
pub(crate) fn read_fallback(note: &str) -> Option<(&str, &str)> {
    note.strip_prefix(FALLBACK)?.split_once(" to ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_tell_the_routes_in_order_and_what_upstreams_said() {
        let attempt = |channel: &str, model: Option<&str>, reason: Option<&str>| Attempt {
            channel: channel.to_owned(),
            model: model.map(ToOwned::to_owned),
            reason: reason.map(ToOwned::to_owned),
            is_passed_over: reason.is_some_and(|it| it.starts_with("passed over")),
            fallback: None,
        };
        let row = JournalRow {
            route_notes: Some(
                "one: upstream_timeout (no head: 5 s); said: busy: wait; two: upstream_error"
                    .into(),
            ),
            channel: Some("three".into()),
            upstream_model: Some("gpt".into()),
            ..JournalRow::default()
        };
        let notes = RouteNotes::of(&row);
        assert_eq!(
            notes.attempts,
            [
                attempt("one", None, Some("upstream_timeout (no head: 5 s)")),
                attempt("two", None, Some("upstream_error")),
                attempt("three", Some("gpt"), None),
            ]
        );
        assert_eq!(notes.upstream_text.as_deref(), Some("busy: wait"));
        let failed = JournalRow {
            route_notes: Some("one: upstream_timeout; two: upstream_error".into()),
            channel: Some("two".into()),
            status: 502,
            code: Some("upstream_error".into()),
            ..JournalRow::default()
        };
        let both = [
            attempt("one", None, Some("upstream_timeout")),
            attempt("two", None, Some("upstream_error")),
        ];
        assert_eq!(RouteNotes::of(&failed).attempts, both);
        // A route that was passed over last is not the one that failed.
        let limited = JournalRow {
            route_notes: Some(
                "zero: passed over (requests per minute); one: upstream_error; two: passed over (tokens per minute)".into(),
            ),
            channel: Some("one".into()),
            ..failed.clone()
        };
        assert_eq!(
            RouteNotes::of(&limited).attempts,
            [
                attempt("zero", None, Some("passed over (requests per minute)")),
                attempt("one", None, Some("upstream_error")),
                attempt("two", None, Some("passed over (tokens per minute)")),
            ]
        );
        // After a note about a fallback, the routes are those of the fallback model.
        let fell_back = JournalRow {
            route_notes: Some(
                "one: upstream_error; fallback: a/x to b/y; two: upstream_error".into(),
            ),
            channel: Some("three".into()),
            upstream_model: Some("gpt".into()),
            ..JournalRow::default()
        };
        let notes = RouteNotes::of(&fell_back);
        assert_eq!(notes.named_model.as_deref(), Some("a/x"));
        let of: Vec<_> = notes
            .attempts
            .iter()
            .map(|it| it.fallback.as_deref())
            .collect();
        assert_eq!(of, [None, Some("b/y"), Some("b/y")]);
        // Channel `two` was tried again: its answer broke off, or the client left. So there is a third attempt.
        let broke_off = JournalRow {
            timings: store::Timings {
                first_byte_us: Some(1),
                ..store::Timings::default()
            },
            status: 200,
            ..failed.clone()
        };
        // The stream began with keep-alives, while the routes were being tried.
        let began_early = JournalRow {
            timings: broke_off.timings,
            outcome: Some("released".into()),
            ..failed.clone()
        };
        assert_eq!(RouteNotes::of(&began_early).attempts, both);
        let left = JournalRow {
            status: CLIENT_GONE,
            ..failed
        };
        for row in [broke_off, left] {
            assert_eq!(RouteNotes::of(&row).attempts.len(), 3, "{row:?}");
        }
        assert_eq!(
            RouteNotes::of(&JournalRow::default()),
            RouteNotes::default()
        );
    }
}
