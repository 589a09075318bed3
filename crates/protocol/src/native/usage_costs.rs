//! Removes the upstream's costs from the usage report that a client sees.

use crate::json::typed::compact;
use crate::json::{Cursor, Raw, Shape, SyntaxError, Text, write_string};

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

/// Whether a report has members that the client must not see.
pub(super) fn has_costs(report: Raw<'_>) -> bool {
    let mut found = false;
    // The text has been checked already.
    let _ = each(report, |name, _| found |= !is_shown(name));
    found
}

/// The report without its costs.
pub(super) fn without_costs(report: &str) -> Result<Vec<u8>, SyntaxError> {
    let mut out = vec![b'{'];
    each(Cursor::new(report).value()?, |name, value| {
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

fn each<'a>(report: Raw<'a>, mut note: impl FnMut(Text<'a>, Raw<'a>)) -> Result<(), SyntaxError> {
    if report.shape() != Shape::Object {
        return Ok(());
    }
    Cursor::new(report.text()).object(|cursor, name| {
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
        ] {
            let raw = Cursor::new(report).value().unwrap();
            assert_eq!(has_costs(raw), shown.is_some(), "{report}");
            if let Some(shown) = shown {
                assert_eq!(without_costs(report).unwrap(), shown.as_bytes());
            }
        }
    }
}
