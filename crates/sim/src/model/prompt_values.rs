//! Finds values in a prompt that can serve as arguments: named values, quotations, proper names, numbers.

use serde_json::{Map, Number, Value};

/// The number of bytes of a prompt that are searched.
const TEXT_BYTES_MAX: usize = 32 * 1024;
const QUOTES: [char; 3] = ['"', '\'', '`'];
const FOUND_MAX: usize = 64;
/// Capitalized words that are not names.
const NON_NAME_WORDS: &[&str] = &[
    "A",
    "An",
    "And",
    "Answer",
    "Are",
    "As",
    "Ask",
    "At",
    "Both",
    "Call",
    "Can",
    "Check",
    "Compare",
    "Create",
    "Do",
    "Does",
    "Each",
    "Explain",
    "Extract",
    "Fetch",
    "Find",
    "First",
    "For",
    "From",
    "Get",
    "Give",
    "Hello",
    "Hey",
    "Hi",
    "How",
    "I",
    "If",
    "In",
    "Invoke",
    "Is",
    "JSON",
    "Let",
    "List",
    "Look",
    "Make",
    "May",
    "My",
    "Now",
    "Of",
    "On",
    "Or",
    "Parallel",
    "Parse",
    "Please",
    "Read",
    "Reply",
    "Return",
    "Run",
    "Search",
    "Send",
    "Set",
    "Show",
    "Tell",
    "Thanks",
    "That",
    "The",
    "Then",
    "There",
    "This",
    "To",
    "Translate",
    "Use",
    "Using",
    "We",
    "What",
    "When",
    "Where",
    "Which",
    "Who",
    "Why",
    "Will",
    "With",
    "Write",
    "You",
    "Your",
];

#[derive(Debug, Clone)]
pub(super) struct PromptValues<'a> {
    text: &'a str,
    lower: String,
    /// The first JSON object in the text.
    object: Option<Map<String, Value>>,
    phrases: Vec<&'a str>,
    phrase_at: usize,
    numbers: Vec<Number>,
    number_at: usize,
}

impl<'a> PromptValues<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let text = clipped(text, TEXT_BYTES_MAX);
        let mut phrases = quotations(text);
        if phrases.is_empty() {
            phrases = names(text);
        }
        Self {
            text,
            lower: text.to_ascii_lowercase(),
            object: first_object(text),
            phrases,
            phrase_at: 0,
            numbers: numbers(text),
            number_at: 0,
        }
    }

    /// The values without the phrase `word`, which names a tool and is not a value.
    pub(super) fn without(mut self, word: &str) -> Self {
        self.phrases.retain(|phrase| *phrase != word);
        self
    }

    pub(super) fn text(&self) -> &'a str {
        self.text
    }

    /// The quotations, or the proper names if nothing is quoted.
    pub(super) fn phrases(&self) -> &[&'a str] {
        &self.phrases
    }

    /// A copy that skips the first `index` phrases.
    pub(super) fn starting_at(&self, index: usize) -> Self {
        Self {
            phrase_at: index,
            ..self.clone()
        }
    }

    pub(super) fn next_phrase(&mut self) -> Option<&'a str> {
        let phrase = self.phrases.get(self.phrase_at)?;
        self.phrase_at += 1;
        Some(phrase)
    }

    pub(super) fn next_number(&mut self) -> Option<&Number> {
        let number = self.numbers.get(self.number_at)?;
        self.number_at += 1;
        Some(number)
    }

    pub(super) fn mentions(&self, word: &str) -> bool {
        self.position(word).is_some()
    }

    /// The position of the first occurrence of a word that no letter or digit directly precedes.
    pub(super) fn position(&self, word: &str) -> Option<usize> {
        let word = word.to_ascii_lowercase();
        if word.is_empty() {
            return None;
        }
        self.lower
            .match_indices(&word)
            .map(|(at, _)| at)
            .find(|at| {
                let before = self
                    .lower
                    .get(..*at)
                    .and_then(|text| text.chars().next_back());
                !before.is_some_and(char::is_alphanumeric)
            })
    }

    /// A member of the JSON object in the text.
    pub(super) fn value_of(&self, name: &str) -> Option<&Value> {
        self.object.as_ref()?.get(name)
    }

    /// The value that the text gives to a name, as `name=x`, `name: x` or `name is x`.
    pub(super) fn text_of(&self, name: &str) -> Option<&'a str> {
        let spaced = name.replace(['_', '-'], " ");
        [name, &spaced].into_iter().find_map(|name| {
            let at = self.position(name)?;
            let rest = self.text.get(at + name.len()..)?.trim_start();
            let value = match rest.strip_prefix('=').map(str::trim_start) {
                Some(rest) if rest.starts_with(QUOTES) => first_value(rest),
                // A value after `=` that is not quoted ends at the next space.
                Some(rest) => first_value(rest.split_whitespace().next()?),
                None => {
                    let rest = rest.strip_prefix(':').or(rest.strip_prefix("is "))?;
                    first_value(rest.trim_start())
                }
            };
            (!value.is_empty()).then_some(value)
        })
    }
}

/// Finds a string in a text, ignoring the case of ASCII letters.
pub(super) fn find_ignoring_case(text: &str, needle: &str) -> Option<usize> {
    text.to_ascii_lowercase().find(&needle.to_ascii_lowercase())
}

/// Removes enclosing quotation marks.
pub(super) fn unquoted(text: &str) -> &str {
    QUOTES
        .into_iter()
        .find_map(|mark| text.strip_prefix(mark)?.strip_suffix(mark))
        .unwrap_or(text)
}

/// Cuts a text to at most `bytes_max` bytes, at a character boundary.
pub(super) fn clipped(text: &str, bytes_max: usize) -> &str {
    let mut end = bytes_max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// The value at the beginning of a text.
fn first_value(text: &str) -> &str {
    for mark in QUOTES {
        if let Some(rest) = text.strip_prefix(mark) {
            return rest.split(mark).next().unwrap_or_default();
        }
    }
    let end = [", ", ". ", "; ", "\n", " and ", " with "]
        .iter()
        .filter_map(|end| text.find(end))
        .min()
        .unwrap_or(text.len());
    text.get(..end)
        .unwrap_or_default()
        .trim()
        .trim_end_matches(['.', ',', '!', '?', ';'])
}

fn quotations(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while found.len() < FOUND_MAX {
        let Some((_, inside)) = rest.split_once('"') else {
            break;
        };
        let Some((quoted, after)) = inside.split_once('"') else {
            break;
        };
        if !quoted.trim().is_empty() {
            found.push(quoted);
        }
        rest = after;
    }
    found
}

/// Finds runs of capitalized words: `New York`, `Paris`. A word at the beginning of a sentence counts only in a list
/// (`Paris and Rome`), or if there are no other names.
fn names(text: &str) -> Vec<&str> {
    let mut sure = Vec::new();
    let mut unsure = Vec::new();
    let mut run: Option<NameRun> = None;
    let mut opening = true;
    for (start, word) in words(text).filter(|(_, word)| !word.is_empty()) {
        let bare = word.trim_end_matches(['.', ',', '!', '?', ';', ':', ')', '\'']);
        let bare = bare.strip_suffix("'s").unwrap_or(bare);
        let named = bare.starts_with(char::is_uppercase)
            && bare.chars().all(|c| c.is_alphabetic() || c == '-')
            && !NON_NAME_WORDS.contains(&bare);
        if !named && let Some(run) = run.take() {
            let listed = ["and", "or"].contains(&word);
            run.close(text, listed, &mut sure, &mut unsure);
        }
        if named {
            let run = run.get_or_insert(NameRun {
                start,
                end: start,
                opening,
            });
            run.end = start + bare.len();
        }
        // Punctuation ends a name.
        if bare.len() < word.len()
            && let Some(run) = run.take()
        {
            run.close(text, word.ends_with(','), &mut sure, &mut unsure);
        }
        opening = word.ends_with(['.', '!', '?', ':']);
        if sure.len() + unsure.len() >= FOUND_MAX {
            break;
        }
    }
    if let Some(run) = run {
        run.close(text, false, &mut sure, &mut unsure);
    }
    if sure.is_empty() { unsure } else { sure }
}

/// A run of capitalized words.
struct NameRun {
    start: usize,
    end: usize,
    /// Whether the run begins a sentence.
    opening: bool,
}

impl NameRun {
    fn close<'a>(
        self,
        text: &'a str,
        listed: bool,
        sure: &mut Vec<&'a str>,
        unsure: &mut Vec<&'a str>,
    ) {
        let list = if self.opening && !listed {
            unsure
        } else {
            sure
        };
        list.extend(text.get(self.start..self.end));
    }
}

/// Splits a text into words with their positions.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut start = 0;
    text.split_inclusive(char::is_whitespace).map(move |piece| {
        let word = (start, piece.trim_end());
        start += piece.len();
        word
    })
}

fn numbers(text: &str) -> Vec<Number> {
    text.split(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-'))
        .map(|word| word.trim_end_matches(['.', '-']))
        .filter(|word| !word.is_empty())
        .filter_map(|word| serde_json::from_str(word).ok())
        .take(FOUND_MAX)
        .collect()
}

fn first_object(text: &str) -> Option<Map<String, Value>> {
    text.match_indices('{').take(FOUND_MAX).find_map(|(at, _)| {
        let rest = text.get(at..)?;
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        match values.next()?.ok()? {
            Value::Object(map) => Some(map),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_and_quotations_are_found() {
        for (text, phrases) in [
            ("What is the weather in Paris?", vec!["Paris"]),
            (
                "Weather in New York, Berlin and São Paulo!",
                vec!["New York", "Berlin", "São Paulo"],
            ),
            ("Paris, Rome and Bonn please", vec!["Paris", "Rome", "Bonn"]),
            ("Oslo and Rome", vec!["Oslo", "Rome"]),
            ("Oslo weather", vec!["Oslo"]),
            (
                "Search \"red shoes\" and \"hats\" in Rome",
                vec!["red shoes", "hats"],
            ),
            ("nothing here", vec![]),
            ("an open \"quote", vec![]),
        ] {
            assert_eq!(PromptValues::new(text).phrases(), phrases, "{text}");
        }
    }

    #[test]
    fn named_values_are_found() {
        let from_prompt =
            PromptValues::new("Book it: city=Rome, max_price: 12.50. The first name is \"Ada\" ok");
        assert_eq!(from_prompt.text_of("city"), Some("Rome"));
        assert_eq!(from_prompt.text_of("max_price"), Some("12.50"));
        assert_eq!(from_prompt.text_of("first_name"), Some("Ada"));
        assert_eq!(from_prompt.text_of("country"), None);
    }

    #[test]
    fn an_object_in_the_text_is_read() {
        let from_prompt = PromptValues::new(r#"Call f with {"a": [1, 2], "b": "x"} now {broken"#);
        assert_eq!(from_prompt.value_of("a"), Some(&json!([1, 2])));
        assert_eq!(
            PromptValues::new("{oops} {\"c\": 1}").value_of("c"),
            Some(&json!(1))
        );
    }

    #[test]
    fn numbers_are_found_in_order() {
        let mut from_prompt = PromptValues::new("Add 2 and 3.5, then -7. Not 1.2.3 nor --.");
        let mut found = Vec::new();
        while let Some(number) = from_prompt.next_number() {
            found.push(number.to_string());
        }
        assert_eq!(found, ["2", "3.5", "-7"]);
    }

    #[test]
    fn a_word_is_mentioned_only_at_its_beginning() {
        let from_prompt = PromptValues::new("The weathercock in Bonn");
        assert!(from_prompt.mentions("weather"));
        assert!(!from_prompt.mentions("cock"));
        assert!(!from_prompt.mentions(""));
    }

    #[test]
    fn a_long_text_is_looked_at_up_to_a_limit() {
        let text = "é".repeat(TEXT_BYTES_MAX);
        assert_eq!(PromptValues::new(&text).text().len(), TEXT_BYTES_MAX);
        assert_eq!(clipped("é", 1), "");
    }
}
