//! Suggests the name that an operator probably meant.

/// The candidate nearest to `given`, if it is close enough to be a typing error.
pub(crate) fn nearest<'a>(
    given: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    // Up to a third of the characters may differ; in a name of fewer than six characters, one. At least one character
    // of the candidate must stay the same.
    let distance_max = (given.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (distance(given, candidate), candidate))
        .filter(|(distance, candidate)| {
            *distance <= distance_max && *distance < candidate.chars().count()
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The number of characters that must be inserted, removed, replaced or swapped with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    let mut previous = None;
    for (row, x) in a.chars().enumerate() {
        let mut line = Vec::with_capacity(b.len() + 1);
        line.push(row + 1);
        for (column, y) in b.iter().enumerate() {
            let replaced = last[column] + usize::from(x != *y);
            let mut best = replaced.min(last[column + 1] + 1).min(line[column] + 1);
            let swapped = column > 0 && previous == Some(*y) && b[column - 1] == x;
            if swapped && let Some(cost) = before_last.get(column - 1) {
                best = best.min(cost + 1);
            }
            line.push(best);
        }
        before_last = std::mem::replace(&mut last, line);
        previous = Some(x);
    }
    last.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_single_slips() {
        for (a, b, expected) in [
            ("", "", 0),
            ("listen", "listen", 0),
            ("listn", "listen", 1),
            ("lisetn", "listen", 1),
            ("listen", "list", 2),
            ("", "abc", 3),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
            assert_eq!(distance(b, a), expected, "{b} {a}");
        }
    }

    #[test]
    fn only_a_close_name_is_suggested() {
        let known = ["listen", "public_url", "node"];
        for (given, expected) in [
            ("lisen", Some("listen")),
            ("publc_ulr", Some("public_url")),
            ("nod", Some("node")),
            ("trusted", None),
            ("x", None),
        ] {
            assert_eq!(nearest(given, known), expected, "{given}");
        }
    }
}
