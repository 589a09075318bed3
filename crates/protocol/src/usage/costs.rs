//! Removes the upstream's costs from the usage report that a client sees.

use crate::json::typed::compact;
use crate::json::{Cursor, Raw, Shape, SyntaxError, Text, write_string};
use crate::needle::Needle;

/// Members in which upstreams state the cost of a call for their own customer.
const COSTS: [&str; 8] = [
    "cost",
    "cost_details",
    USD_TICKS,
    "estimated_cost",
    "is_byok",
    "response_cost",
    "total_cost",
    "upstream_inference_cost",
];

/// The cost that video-A reports, which its clients read (`docs/api/images.md`, `docs/api/video-a.md`).
pub(crate) const USD_TICKS: &str = "cost_in_usd_ticks";

/// Each name in [`COSTS`] contains one of these words.
static COST_NEEDLES: [Needle; 2] = [Needle::new("cost"), Needle::new("byok")];

/// Whether a report has members that the client must not see.
pub(crate) fn has_costs(report: &str) -> bool {
    has_costs_besides(report, None)
}

/// Like [`has_costs`], for a protocol whose clients read the cost with the name `shown`.
pub(crate) fn has_costs_besides(report: &str, shown: Option<&str>) -> bool {
    if !may_have_costs(report.as_bytes()) {
        return false;
    }
    let mut found = false;
    // The text has been checked already.
    let _ = each(report, |name, _| found |= !is_shown(name, shown));
    found
}

/// Whether a report can have costs. Nearly all reports have none, and searching for a part of the names is
/// much faster than reading the report.
fn may_have_costs(report: &[u8]) -> bool {
    let has_escapes = memchr::memchr(b'\\', report).is_some();
    has_escapes || COST_NEEDLES.iter().any(|needle| needle.is_in(report))
}

pub(crate) fn without_costs(report: &str) -> Result<Vec<u8>, SyntaxError> {
    without_costs_besides(report, None)
}

/// Like [`without_costs`], for a protocol whose clients read the cost with the name `shown`.
pub(crate) fn without_costs_besides(
    report: &str,
    shown: Option<&str>,
) -> Result<Vec<u8>, SyntaxError> {
    let mut out = vec![b'{'];
    each(report, |name, value| {
        if is_shown(name, shown) {
            if out.len() > 1 {
                out.push(b',');
            }
            write_string(&mut out, &name.decode_lossy());
            out.push(b':');
            out.extend_from_slice(compact(value.text()).as_bytes());
        }
    })?;
    out.push(b'}');
    Ok(out)
}

fn each<'a>(report: &'a str, mut note: impl FnMut(Text<'a>, Raw<'a>)) -> Result<(), SyntaxError> {
    let mut cursor = Cursor::new(report);
    if cursor.shape()? != Shape::Object {
        return Ok(());
    }
    cursor.object(|cursor, name| {
        note(name, cursor.value()?);
        Ok(())
    })
}

fn is_shown(name: Text<'_>, shown: Option<&str>) -> bool {
    let name = &*name.decode_lossy();
    !COSTS.contains(&name) || shown == Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_of_a_cost_is_searched_for() {
        for name in COSTS {
            assert!(may_have_costs(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn counts_stay_and_costs_go() {
        for (report, shown) in [
            (r#"{"prompt_tokens":1,"completion_tokens":2}"#, None),
            (r#"{"promptTokenCount":1,"trafficType":"X"}"#, None),
            (
                r#"{"input_tokens":1,"server_tool_use":{"web_search_requests":1}}"#,
                None,
            ),
            ("7", None),
            (
                r#"{"cost":0.1,"prompt_tokens":1,"cost_details":{"a":1},"is_byok":false,"total_tokens":3}"#,
                Some(r#"{"prompt_tokens":1,"total_tokens":3}"#),
            ),
            (r#"{"total_time":1,"x_cost":0.10}"#, None),
            (r#"{"c\u006fst": 1}"#, Some("{}")),
            (r#"{"is_byok":true}"#, Some("{}")),
        ] {
            assert_eq!(has_costs(report), shown.is_some(), "{report}");
            if let Some(shown) = shown {
                assert_eq!(without_costs(report).unwrap(), shown.as_bytes());
            }
        }
    }

    #[test]
    fn one_protocol_shows_one_cost() {
        let shown = Some(USD_TICKS);
        let ticks = r#"{"cost_in_usd_ticks":4}"#;
        assert!(has_costs(ticks) && !has_costs_besides(ticks, shown));
        let both = r#"{"cost_in_usd_ticks":4,"cost":1}"#;
        assert!(has_costs_besides(both, shown));
        assert_eq!(
            without_costs_besides(both, shown).unwrap(),
            ticks.as_bytes()
        );
    }
}
