//! Removes the upstream's costs from the usage report that a client sees.

use crate::json::typed::compact;
use crate::json::{Cursor, Raw, Shape, SyntaxError, Text, write_string};
use crate::needle::Needle;

/// Members in which upstreams state the cost of a call for their own customer.
const COSTS: [&str; 8] = [
    "cost",
    "cost_details",
    "cost_in_usd_ticks",
    "estimated_cost",
    "is_byok",
    "response_cost",
    "total_cost",
    "upstream_inference_cost",
];

/// Each name in [`COSTS`] contains one of these words.
static COST_NEEDLES: [Needle; 2] = [Needle::new("cost"), Needle::new("byok")];

/// Whether a report has members that the client must not see.
pub(super) fn has_costs(report: &str) -> bool {
    if !may_have_costs(report.as_bytes()) {
        return false;
    }
    let mut found = false;
    // The text has been checked already.
    let _ = each(report, |name, _| found |= !is_shown(name));
    found
}

/// Whether a report can have such members. Nearly all reports have none, and searching for a part of their names is
/// much faster than reading the report.
fn may_have_costs(report: &[u8]) -> bool {
    let has_escapes = memchr::memchr(b'\\', report).is_some();
    has_escapes || COST_NEEDLES.iter().any(|needle| needle.is_in(report))
}

pub(super) fn without_costs(report: &str) -> Result<Vec<u8>, SyntaxError> {
    let mut out = vec![b'{'];
    each(report, |name, value| {
        if is_shown(name) {
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

fn is_shown(name: Text<'_>) -> bool {
    !COSTS.contains(&&*name.decode_lossy())
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
}
