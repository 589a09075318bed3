//! Finds commands in a prompt that determine the answer.

use super::prompt_values::{find_ignoring_case, unquoted};

const COUNT_MAX: usize = 10_000;
const WORDS_MAX: usize = 100_000;
/// The words of generated texts. Each word is one token, together with the space before it.
const WORDS: [&str; 24] = [
    "the", "river", "runs", "past", "old", "mills", "and", "quiet", "farms", "while", "light",
    "falls", "over", "green", "hills", "where", "birds", "sing", "until", "night", "comes", "down",
    "from", "above",
];

/// The answer to the command in a text; `None` if there is no command.
pub(super) fn commanded_text(text: &str) -> Option<String> {
    if let Some(exact) = after(text, "say exactly:") {
        return Some(unquoted(exact.trim()).to_owned());
    }
    if let Some(count) = after(text, "count to ").and_then(leading_number) {
        let numbers: Vec<_> = (1..=count.min(COUNT_MAX)).map(|n| n.to_string()).collect();
        return Some(numbers.join(", "));
    }
    let count = ["reply with ", "answer with ", "in exactly ", "in "]
        .into_iter()
        .find_map(|order| word_count(after(text, order)?))?;
    Some(words(count.min(WORDS_MAX)))
}

/// A text of `count` words, each of which is one token.
pub(super) fn words(count: usize) -> String {
    let words: Vec<_> = WORDS.iter().copied().cycle().take(count).collect();
    words.join(" ")
}

/// A text of `count` bytes.
pub(super) fn bytes(count: usize) -> String {
    let mut text = String::with_capacity(count);
    for word in WORDS.iter().cycle() {
        if text.len() >= count {
            break;
        }
        text.push_str(word);
        text.push(' ');
    }
    text.truncate(count);
    text
}

fn word_count(text: &str) -> Option<usize> {
    let count = leading_number(text)?;
    let unit = text
        .trim_start_matches(|c: char| c.is_ascii_digit())
        .trim_start();
    ["word", "token"]
        .iter()
        .any(|word| unit.starts_with(word))
        .then_some(count)
}

fn after<'a>(text: &'a str, order: &str) -> Option<&'a str> {
    let start = find_ignoring_case(text, order)?;
    text.get(start + order.len()..)
}

fn leading_number(text: &str) -> Option<usize> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text.get(..end)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::count_tokens;

    #[test]
    fn orders_are_obeyed() {
        for (text, answer) in [
            ("Say exactly: hello there", Some("hello there")),
            ("Please say exactly: \"a b\"", Some("a b")),
            ("say exactly:", Some("")),
            ("Count to 3.", Some("1, 2, 3")),
            ("Reply with 2 words", Some("the river")),
            ("Tell me in 3 words", Some("the river runs")),
            ("Tell me in 3 days", None),
            ("count to infinity", None),
            ("Hello", None),
        ] {
            assert_eq!(commanded_text(text).as_deref(), answer, "{text}");
        }
    }

    #[test]
    fn so_many_words_are_so_many_tokens() {
        for count in [1, 24, 25, 1000] {
            assert_eq!(count_tokens(&words(count)), count as u64);
        }
        assert_eq!(words(0), "");
        assert_eq!(bytes(1000).len(), 1000);
    }
}
