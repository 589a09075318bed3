//! The routes that a call has tried, read from the notes of its journal row.

use store::JournalRow;

/// One route that was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attempt {
    pub(crate) channel: String,
    /// The model as the upstream knows it, if the route answered.
    pub(crate) model: Option<String>,
    /// Why the route was left, or how its answer failed.
    pub(crate) reason: Option<String>,
}

/// What the notes of a row tell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RouteNotes {
    /// In the order in which they were tried.
    pub(crate) attempts: Vec<Attempt>,
    /// Texts of upstreams that the caller did not see.
    pub(crate) upstream_text: Option<String>,
}

impl RouteNotes {
    pub(crate) fn of(row: &JournalRow) -> Self {
        let mut notes = Self::default();
        let mut texts = Vec::new();
        for note in row.route_notes.iter().flat_map(|notes| notes.split("; ")) {
            // A note is a text of the upstream that the caller did not see, or a route that failed.
            if let Some(text) = note.strip_prefix("said: ") {
                texts.push(text);
                continue;
            }
            let (channel, reason) = note.split_once(": ").unwrap_or((note, ""));
            notes.attempts.push(Attempt {
                channel: channel.to_owned(),
                model: None,
                reason: Some(reason.to_owned()),
            });
        }
        if let Some(channel) = &row.channel {
            notes.attempts.push(Attempt {
                channel: channel.to_string(),
                model: row.upstream_model.as_deref().map(ToOwned::to_owned),
                reason: row.code.as_deref().map(ToOwned::to_owned),
            });
        }
        notes.upstream_text = (!texts.is_empty()).then(|| texts.join("\n"));
        notes
    }
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
        assert_eq!(
            RouteNotes::of(&JournalRow::default()),
            RouteNotes::default()
        );
    }
}
