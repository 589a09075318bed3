//! Collects the members that a conversion left out, by the names that the client uses.

use std::fmt::{self, Write as _};

use super::field::{Field, Member};
use super::path::Path;
use super::request::{Logprobs, Reasoning, SignedAt, ToolCall};
use crate::dialect::Dialect;

const HEADER_BYTES_MAX: usize = 2048;
/// Names beyond this number are only counted, because the header could not hold them.
const NAMES_MAX: usize = 512;
/// Room for the number of names that did not fit: `...+12345`.
const MORE_BYTES: usize = 16;

/// The members that were left out, in the order of their discovery, without duplicates.
///
/// Each is named by its path in the client's request, with dots between names and the index of each
/// list item. A tool that the vendor runs is named by its type: `tools.web_search`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropped {
    client_dialect: Dialect,
    names: Vec<String>,
    more: usize,
}

impl Dropped {
    /// An empty list, for a client of this dialect.
    pub const fn new(client_dialect: Dialect) -> Self {
        Self {
            client_dialect,
            names: Vec::new(),
            more: 0,
        }
    }

    /// The client's dialect, which determines the spelling of the names.
    pub const fn client_dialect(&self) -> Dialect {
        self.client_dialect
    }

    /// Reports a member of the common form as dropped.
    pub fn field(&mut self, field: Field) {
        self.name(field.name_in(self.client_dialect));
    }

    /// Reports all members about reasoning as dropped.
    pub fn reasoning(&mut self, reasoning: &Reasoning) {
        match self.client_dialect {
            Dialect::Messages => {
                if reasoning.budget_tokens.is_some() || reasoning.show {
                    self.field(Field::Reasoning);
                }
                if reasoning.effort.is_some() {
                    self.name("output_config.effort");
                }
                return;
            }
            Dialect::Generate => {
                if reasoning.budget_tokens.is_some() {
                    self.name("generationConfig.thinkingConfig.thinkingBudget");
                }
                if reasoning.effort.is_some() {
                    self.field(Field::Reasoning);
                }
            }
            Dialect::Chat | Dialect::Responses | Dialect::Interactions => {
                if reasoning.effort.is_some() || reasoning.budget_tokens.is_some() {
                    self.field(Field::Reasoning);
                }
            }
        }
        self.shown_reasoning(reasoning);
    }

    /// Reports the client's own request to show reasoning as dropped. A default is not reported.
    pub(crate) fn shown_reasoning(&mut self, reasoning: &Reasoning) {
        if reasoning.show && !reasoning.show_is_default {
            self.field(Field::ReasoningShown);
        }
    }

    /// Reports the request for log probabilities as dropped.
    pub fn logprobs(&mut self, logprobs: Logprobs) {
        if !logprobs.is_implied {
            self.field(Field::Logprobs);
        }
        if logprobs.top.is_some() {
            self.field(Field::TopLogprobs);
        }
    }

    /// Reports the signature of a call as dropped.
    pub fn signature(&mut self, path: Path, call: &ToolCall) {
        match call.signed_at {
            SignedAt::Id => {}
            SignedAt::Call => self.member(path, Member::Signature),
            SignedAt::Item(index) => self.name(&format!("input[{index}]")),
        }
    }

    /// Reports a member of the item at `path` as dropped.
    pub fn member(&mut self, path: Path, member: Member) {
        let spelt = member.name_in(self.client_dialect);
        // Items of the older `functions` list have no `function` member.
        let spelt = match spelt.strip_prefix("function.") {
            Some(bare) if path.is_in("functions") => bare,
            _ => spelt,
        };
        if !path.is_nowhere() && !spelt.is_empty() {
            self.name(&format!("{path}.{spelt}"));
        }
    }

    /// Reports a part of the conversation as dropped.
    pub fn path(&mut self, path: Path) {
        if path.is_nowhere() {
            return;
        }
        if self.names.len() < NAMES_MAX {
            self.name(&path.to_string());
        } else {
            self.more = self.more.saturating_add(1);
        }
    }

    /// Reports a member by its name in the client's request. If a member is dropped as a whole, its
    /// own members are not listed.
    pub fn name(&mut self, name: &str) {
        if name.is_empty() || self.names.iter().any(|outer| covers(outer, name)) {
            return;
        }
        self.names.retain(|inner| !covers(name, inner));
        if self.names.len() < NAMES_MAX {
            self.names.push(name.to_owned());
        } else {
            self.more = self.more.saturating_add(1);
        }
    }

    /// Whether nothing was dropped.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The names, in order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The value of `x-dropped-params`. `None` if nothing was dropped.
    pub fn header(&self) -> Option<String> {
        if self.names.is_empty() {
            return None;
        }
        let mut header = String::new();
        for (written, name) in self.names.iter().enumerate() {
            let before = header.len();
            if written > 0 {
                header.push(',');
            }
            // Writing to a string cannot fail.
            let _ = write!(header, "{}", PercentEncoded(name));
            if header.len() > HEADER_BYTES_MAX - MORE_BYTES {
                header.truncate(before);
                let _ = write!(header, "...+{}", self.names.len() - written + self.more);
                return Some(header);
            }
        }
        if self.more > 0 {
            let _ = write!(header, "...+{}", self.more);
        }
        Some(header)
    }
}

/// Whether `path` equals `outer` or is inside it.
fn covers(outer: &str, path: &str) -> bool {
    let rest = path.strip_prefix(outer);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Writes letters, digits and `_-.[]` unchanged, and percent-encodes everything else.
struct PercentEncoded<'a>(&'a str);

impl fmt::Display for PercentEncoded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0.bytes() {
            if byte.is_ascii_alphanumeric() || b"_-.[]".contains(&byte) {
                f.write_char(char::from(byte))?;
            } else {
                write!(f, "%{byte:02X}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_lists_each_name_once_in_the_callers_spelling() {
        let mut dropped = Dropped::new(Dialect::Generate);
        assert_eq!(dropped.header(), None);
        dropped.field(Field::TopK);
        dropped.name("tools.googleSearch");
        dropped.field(Field::TopK);
        dropped.path(Path::item("contents", 2).inner("parts", 0));
        dropped.name("odd name,\u{e9}");
        assert_eq!(
            dropped.header().unwrap(),
            "generationConfig.topK,tools.googleSearch,contents[2].parts[0],odd%20name%2C%C3%A9"
        );
    }

    #[test]
    fn members_of_a_dropped_member_are_not_listed() {
        let mut dropped = Dropped::new(Dialect::Chat);
        for name in [
            "a[1].b", "a[10]", "ab", "a[1].c.d", "a[1]", "a[1].e", "ab.c",
        ] {
            dropped.name(name);
        }
        assert_eq!(dropped.names(), ["a[10]", "ab", "a[1]"]);
    }

    #[test]
    fn a_long_list_is_cut_and_counted() {
        let mut dropped = Dropped::new(Dialect::Chat);
        for number in 0..1000 {
            dropped.name(&format!("member_{number}"));
        }
        let header = dropped.header().unwrap();
        assert!(header.len() <= HEADER_BYTES_MAX);
        let named = header.matches("member_").count();
        assert!(header.ends_with(&format!("...+{}", 1000 - named)));
    }
}
