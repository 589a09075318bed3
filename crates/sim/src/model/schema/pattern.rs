//! A text that matches a simple regular expression.
//!
//! Supports literals, classes, escapes, groups, alternatives and counts. Other expressions may give
//! a text that does not match.

use std::iter::Peekable;
use std::str::Chars;

const LENGTH_MAX: usize = 4096;
const DEPTH_MAX: usize = 32;
const REPEAT_MAX: usize = 256;

pub(super) fn example(pattern: &str) -> String {
    let mut reader = Reader {
        rest: pattern.chars().peekable(),
    };
    let mut text = reader.alternatives(0);
    if text.len() > LENGTH_MAX {
        text = text.chars().take(LENGTH_MAX).collect();
    }
    text
}

struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
}

impl Reader<'_> {
    /// Uses the first alternative and skips the others.
    fn alternatives(&mut self, depth: usize) -> String {
        let first = self.sequence(depth);
        while self.rest.next_if_eq(&'|').is_some() {
            self.sequence(depth);
        }
        first
    }

    fn sequence(&mut self, depth: usize) -> String {
        let mut text = String::new();
        while let Some(&sign) = self.rest.peek() {
            if sign == '|' || sign == ')' {
                break;
            }
            self.rest.next();
            let atom = match sign {
                '^' | '$' => continue,
                '(' if depth < DEPTH_MAX => self.group(depth),
                '[' => self.class(),
                '\\' => self.escape(),
                '.' => "a".to_owned(),
                other => other.to_string(),
            };
            let times = self.times();
            if text.len() + atom.len().saturating_mul(times) <= LENGTH_MAX {
                text.push_str(&atom.repeat(times));
            }
        }
        text
    }

    fn group(&mut self, depth: usize) -> String {
        // `(?:` and similar. Lookarounds match no text.
        let mut silent = false;
        if self.rest.next_if_eq(&'?').is_some() {
            match self.rest.next() {
                Some('=' | '!') => silent = true,
                Some('P' | '<') => {
                    for sign in self.rest.by_ref() {
                        if sign == '>' {
                            break;
                        }
                    }
                }
                _ => {}
            }
        }
        let text = self.alternatives(depth + 1);
        self.rest.next_if_eq(&')');
        if silent { String::new() } else { text }
    }

    fn class(&mut self) -> String {
        let negated = self.rest.next_if_eq(&'^').is_some();
        let mut members = Vec::new();
        while let Some(sign) = self.rest.next() {
            match sign {
                ']' if !members.is_empty() => break,
                '\\' => members.extend(self.escape().chars()),
                '-' if !members.is_empty() && self.rest.peek() != Some(&']') => {
                    // The end of a range. Its beginning is already a member.
                    if let Some('\\') = self.rest.next() {
                        self.escape();
                    }
                }
                other => members.push(other),
            }
            if members.len() > LENGTH_MAX {
                break;
            }
        }
        if negated {
            let outside = ('a'..='z').chain('0'..='9').find(|c| !members.contains(c));
            return outside.map(String::from).unwrap_or_default();
        }
        members.first().map(char::to_string).unwrap_or_default()
    }

    fn escape(&mut self) -> String {
        match self.rest.next() {
            Some('d') => "1".to_owned(),
            Some('w' | 'S' | 'D') => "a".to_owned(),
            Some('s') => " ".to_owned(),
            Some('W') => "-".to_owned(),
            Some('n') => "\n".to_owned(),
            Some('t') => "\t".to_owned(),
            Some('b' | 'B' | 'A' | 'z' | 'Z') | None => String::new(),
            Some(other) => other.to_string(),
        }
    }

    /// How often the previous atom is repeated: as rarely as allowed, but at least once.
    fn times(&mut self) -> usize {
        let times = match self.rest.peek() {
            Some('*' | '+' | '?') => {
                self.rest.next();
                1
            }
            Some('{') => {
                self.rest.next();
                let inside: String = self.rest.by_ref().take_while(|sign| *sign != '}').collect();
                let (min, max) = inside.split_once(',').unwrap_or((&inside, &inside));
                let min = min.trim().parse().unwrap_or(0);
                let max = max.trim().parse().unwrap_or(usize::MAX);
                min.max(1).min(max).min(REPEAT_MAX)
            }
            _ => return 1,
        };
        // Lazy and possessive quantifiers make no difference here.
        if self.rest.next_if_eq(&'?').is_none() {
            self.rest.next_if_eq(&'+');
        }
        times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_match_their_patterns() {
        for (pattern, expected) in [
            ("^[A-Z]{3}$", "AAA"),
            (r"^\d{4}-\d{2}-\d{2}$", "1111-11-11"),
            ("^(red|green)$", "red"),
            ("^(?:a|b)c+d?$", "acd"),
            (r"^\+?[1-9]\d{1,14}$", "+11"),
            ("^[^ab]$", "c"),
            ("[a-z0-9._-]+@x", "a@x"),
            ("^(?P<year>[0-9]{4})$", "0000"),
            ("a{0}b", "b"),
            ("[]a]", "]"),
            ("", ""),
        ] {
            assert_eq!(example(pattern), expected, "{pattern}");
        }
    }

    #[test]
    fn hostile_patterns_end() {
        for pattern in [
            "((((((((((",
            "[",
            "\\",
            "{9999999}",
            "a{99999999999}",
            "(?<",
            "((a{256}){256}){256}",
        ] {
            assert!(example(pattern).len() <= LENGTH_MAX, "{pattern}");
        }
        example(&"(".repeat(100_000));
    }
}
