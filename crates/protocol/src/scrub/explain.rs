//! Rewrites an upstream's error message so that it explains the error without identifying the
//! upstream.

use std::cell::Cell;

use super::identity::{
    ADDRESS, ID, TEXT_BYTES_MAX, UPSTREAM, URL, is_resource, is_separator, kind_of,
    may_be_callers_id, without_request_id,
};
use super::names::Names;
use super::places::{is_host, is_region, is_rooted};
use super::vendors::{is_named_vendor, may_be_vendor};
use super::vocabulary::{is_member, is_plain, is_unit};

/// Replaces a word, or several adjacent words, that are not known to be harmless.
const CUT: &str = "[…]";
/// Only this much of a text is read.
const READ_BYTES_MAX: usize = 4 << 10;
/// Longer numbers are accounts, times or ids.
const DIGITS_MAX: usize = 7;
/// Longer numbers are accounts, even if the client's request contains them.
const CALLERS_DIGITS_MAX: usize = 10;
/// Longer numbers after one of the words of [`NUMBERED`] identify somebody, even if the client's
/// request contains them.
const CALLERS_NUMBERED_DIGITS_MAX: usize = 3;
/// Longer indexes do not occur in member paths.
const INDEX_DIGITS_MAX: usize = 4;
/// The maximum number of words of a text that are searched for in the request.
const SEARCHES_MAX: u32 = 32;
/// Longer paths are not searched for in the request.
const PATH_PARTS_MAX: usize = 8;
/// If words were cut, a message with fewer known words than this explains nothing.
const KEPT_MIN: usize = 2;
/// Longer codes are not passed on.
const CODE_BYTES_MAX: usize = 96;
/// A model's name of at least this length is recognized inside any longer word.
const NAME_BYTES_MIN: usize = 4;

/// A number after any of these words identifies somebody.
const NUMBERED: [&str; 20] = [
    "account",
    "customer",
    "deployment",
    "host",
    "id",
    "instance",
    "job",
    "node",
    "number",
    "operation",
    "org",
    "organization",
    "owner",
    "project",
    "request",
    "server",
    "subscription",
    "team",
    "tenant",
    "user",
];

/// The harmless part of an error message. `None` if too little is left to explain anything.
///
/// Plain English words, API words, small numbers, member paths and words of the client's request
/// that identify nothing are kept. A model's name becomes the public id. Everything else is cut.
pub fn explain(text: &str, names: Names<'_>) -> Option<String> {
    let mut shown = ShownText::default();
    let mut rest = without_request_id(text).trim();
    rest = rest.get(..boundary(rest, READ_BYTES_MAX)).unwrap_or(rest);
    let mut previous = String::new();
    let searches = Cell::new(SEARCHES_MAX);
    while let Some(first) = rest.chars().next() {
        if shown.text.len() >= TEXT_BYTES_MAX {
            break;
        }
        if is_separator(first) {
            shown.separator(first);
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
            continue;
        }
        let length = rest.find(is_separator).unwrap_or(rest.len());
        let (word, after) = rest.split_at(length);
        let core = word.trim_end_matches(['.', ':', '!', '?']);
        match decide(core, &previous, names, &searches) {
            WordDecision::Keep => shown.keep(core),
            WordDecision::Model => shown.keep(names.public),
            WordDecision::Cut(mark) => shown.cut(mark),
        }
        shown
            .text
            .push_str(word.get(core.len()..).unwrap_or_default());
        core.to_ascii_lowercase().clone_into(&mut previous);
        rest = after;
    }
    shown.finish()
}

/// A member path in an upstream's error, if all its parts are harmless.
pub(crate) fn explain_path(path: &str, names: Names<'_>) -> Option<String> {
    let searches = Cell::new(SEARCHES_MAX);
    let parts = path.split(is_separator).filter(|part| !part.is_empty());
    let is_harmless = |part: &str| {
        let part = part.trim_matches('.');
        part.is_empty() || matches!(decide(part, "", names, &searches), WordDecision::Keep)
    };
    let is_short = path.len() <= TEXT_BYTES_MAX && !path.is_empty();
    (is_short && parts.into_iter().all(is_harmless)).then(|| path.to_owned())
}

/// A code of an upstream's error, such as `InvalidParameter.Duration`, if all its parts are plain
/// words.
pub(crate) fn explain_code<'a>(code: &'a str, names: Names<'_>) -> Option<&'a str> {
    let is_form = |byte: u8| byte.is_ascii_alphanumeric() || b"_-. ".contains(&byte);
    let is_short = !code.is_empty() && code.len() <= CODE_BYTES_MAX;
    let tells = parts(code).any(|part| is_named_vendor(part) || names.identifies_channel(part));
    let mut words = code.split(['_', '-', '.', ' ']).flat_map(camel_case_words);
    let is_plain = words.all(|word| is_plain(word) || is_member(word));
    (is_short && code.bytes().all(is_form) && !tells && is_plain).then_some(code)
}

enum WordDecision {
    Keep,
    /// The upstream's name of the model, perhaps inside a longer word.
    Model,
    Cut(&'static str),
}

#[derive(Default)]
struct ShownText {
    text: String,
    kept: usize,
    cut: usize,
    /// The end of the text after the last cut, if nothing was kept since.
    cut_end: Option<usize>,
}

impl ShownText {
    fn separator(&mut self, c: char) {
        self.text.push(if c.is_control() { ' ' } else { c });
    }

    fn keep(&mut self, word: &str) {
        self.cut_end = None;
        self.kept += 1;
        self.text.push_str(word);
    }

    fn cut(&mut self, mark: &str) {
        self.cut += 1;
        if let Some(end) = self.cut_end {
            self.text.truncate(end);
            return;
        }
        self.text.push_str(mark);
        self.cut_end = Some(self.text.len());
    }

    fn finish(mut self) -> Option<String> {
        let is_whole = self.cut == 0 && self.kept > 0;
        if !is_whole && (self.kept < KEPT_MIN || self.cut > self.kept) {
            return None;
        }
        if self.text.len() > TEXT_BYTES_MAX {
            self.text.truncate(boundary(&self.text, TEXT_BYTES_MAX));
            self.text.push('…');
        }
        Some(self.text)
    }
}

/// The largest position up to `at` where the text can be cut.
fn boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at = at.saturating_sub(1);
    }
    at
}

fn decide(word: &str, previous: &str, names: Names<'_>, searches: &Cell<u32>) -> WordDecision {
    if word.is_empty() || word == names.public {
        return WordDecision::Keep;
    }
    if has_model(word, names.upstream) {
        return WordDecision::Model;
    }
    if parts(word).any(|part| is_named_vendor(part) || names.identifies_channel(part))
        || names.identifies_channel(word)
    {
        return WordDecision::Cut(UPSTREAM);
    }
    let kind = kind_of(word);
    let is_known = match number(word) {
        Some(digits) => digits <= DIGITS_MAX && !NUMBERED.contains(&previous),
        None => is_harmless(word),
    };
    if kind.is_none() && is_known {
        return WordDecision::Keep;
    }
    // The request is searched last, because it may be large.
    let left = searches.get();
    searches.set(left.saturating_sub(1));
    if left > 0 && is_callers(word, kind, previous, names) {
        return WordDecision::Keep;
    }
    WordDecision::Cut(kind.unwrap_or(CUT))
}

/// Whether a word is the client's. A word that may identify the upstream is not, even if the request
/// contains it: a request with a list of guesses would find out which of them is right.
fn is_callers(word: &str, kind: Option<&str>, previous: &str, names: Names<'_>) -> bool {
    match kind {
        Some(URL) => names.caller_linked(word),
        // `metadata.org` has the form of a host too.
        None | Some(ADDRESS) if is_rooted(word) && is_callers_path(word, names) => true,
        None | Some(ID) if may_identify(word, previous) => false,
        Some(ID) => may_be_callers_id(word) && names.caller_named(word),
        Some(_) => false,
        None => names.caller_wrote(word) || is_callers_path(word, names),
    }
}

/// Whether a word that is not harmless may be an account, a host, a region or a vendor.
fn may_identify(word: &str, previous: &str) -> bool {
    let is_account = number(word).is_some_and(|digits| {
        let is_long = digits > CALLERS_NUMBERED_DIGITS_MAX && NUMBERED.contains(&previous);
        is_long || digits > CALLERS_DIGITS_MAX
    });
    is_account || is_resource(word) || is_host(word) || is_region(word) || may_be_vendor(word)
}

/// Whether the word is or contains the upstream's name of the model.
fn has_model(word: &str, upstream: &str) -> bool {
    let last = upstream.rsplit('/').next().unwrap_or_default();
    let lower = word.to_ascii_lowercase();
    [upstream, last].into_iter().any(|name| {
        let name = name.to_ascii_lowercase();
        lower == name && !name.is_empty() || name.len() >= NAME_BYTES_MIN && lower.contains(&name)
    })
}

/// The parts of a compound word, split at the words of camel case too.
fn parts(word: &str) -> impl Iterator<Item = &str> {
    let chunks = || word.split(|c: char| !c.is_alphanumeric() && c != '\'');
    chunks()
        .chain(chunks().flat_map(camel_case_words))
        .filter(|part| !part.is_empty())
}

fn camel_case_words(word: &str) -> impl Iterator<Item = &str> {
    let mut rest = word;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let bytes = rest.as_bytes();
        let turns = |pair: &[u8]| matches!(pair, [a, b] if a.is_ascii_lowercase() && b.is_ascii_uppercase());
        let end = bytes
            .windows(2)
            .position(turns)
            .map_or(rest.len(), |at| at.saturating_add(1));
        let (word, behind) = rest.split_at(end);
        rest = behind;
        Some(word)
    })
}

/// The length of the longest run of digits in a number with signs, separators and unit. `None` for
/// other words.
fn number(word: &str) -> Option<usize> {
    let word = word.trim_start_matches(['-', '+', '<', '>', '~', '#', '$', '≤', '≥']);
    let word = word.trim_end_matches(['%', '+']);
    if !word.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let digits_end = word.find(|c: char| c.is_ascii_alphabetic() && c != 'x');
    let (digits, unit) = word.split_at(digits_end.unwrap_or(word.len()));
    let runs: Vec<&str> = digits.split(['.', 'x', '×', ':', '-', '/']).collect();
    let is_run = |run: &&str| !run.is_empty() && run.bytes().all(|byte| byte.is_ascii_digit());
    // Words with two or more separators may be addresses, with or without a port, or versions.
    let is_number = runs.len() <= 2 && runs.iter().all(is_run);
    let is_measure = unit.is_empty() || is_unit(unit);
    (is_number && is_measure).then(|| runs.iter().map(|run| run.len()).max().unwrap_or(0))
}

/// Whether a word that is not a number consists of harmless parts in a harmless form.
fn is_harmless(word: &str) -> bool {
    if !word.contains(char::is_alphanumeric) {
        return word.chars().count() <= 4;
    }
    let word = word.trim_matches([
        '-', '*', '#', '~', '&', '$', '_', '^', '+', '<', '>', '\\', '!',
    ]);
    // The word may follow an index, as in `messages[0].content`.
    let word = word.strip_prefix('.').unwrap_or(word);
    if word.starts_with('/') || !word.is_ascii() {
        return false;
    }
    if is_plain(word) {
        return true;
    }
    if let Some((left, right)) = word.split_once(':') {
        let both = [left, right].into_iter().all(|side| {
            number(side).is_some_and(|digits| digits <= DIGITS_MAX) || is_harmless(side)
        });
        return both && !left.contains('.') && !right.contains(':');
    }
    if let Some((left, right)) = word.split_once('/') {
        return is_plain(left) && (is_plain(right) || right == "*");
    }
    if word.contains('.') {
        return is_path(word, |_| false);
    }
    is_compound(word)
}

/// Whether a word is a path with members that only this request has: `tools.0.input_schema.city`.
fn is_callers_path(word: &str, names: Names<'_>) -> bool {
    let word = word.strip_prefix('.').unwrap_or(word);
    word.contains('.')
        && word.split('.').count() <= PATH_PARTS_MAX
        && is_path(word, |part| names.caller_named(part))
}

/// Whether a word is a path such as `messages.0.content`. A path consists of indexes and names. The names are
/// members of the public protocols, or members that `is_named` accepts.
fn is_path(word: &str, is_named: impl Fn(&str) -> bool) -> bool {
    let is_index = |part: &str| {
        (1..=INDEX_DIGITS_MAX).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit())
    };
    let is_member_name = |part: &str| {
        let mut pieces = part.split(['_', '-']).flat_map(camel_case_words);
        !part.is_empty() && pieces.all(is_member)
    };
    word.split('.')
        .enumerate()
        .all(|(at, part)| is_member_name(part) || at > 0 && is_index(part) || is_named(part))
}

/// Whether a word is a compound such as `max_tokens`, `maxOutputTokens` or `non-empty`. A name in
/// upper camel case is a class name, which means nothing to a client.
fn is_compound(word: &str) -> bool {
    let is_class = word.starts_with(|c: char| c.is_ascii_uppercase())
        && camel_case_words(word).nth(1).is_some();
    let mut pieces = word.split(['_', '-']).flat_map(camel_case_words);
    !is_class && pieces.all(|piece| is_plain(piece) || is_member(piece))
}
