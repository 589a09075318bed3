//! Built-in tools, which an upstream runs itself: those that a request offers, and how many times a
//! call used each.
//!
//! Vendors have many names for the same tool, with dates and versions in them. Prices use the names
//! defined here. Tools that the client runs (functions, custom tools, its own shell or screen) are
//! not included, because they cost only tokens.

use std::fmt;

use crate::failure::Failure;
use crate::json::{Cursor, Members, Raw, Shape, SyntaxError};
use crate::usage::count;

/// A built-in tool, independent of the vendor's name for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Tool {
    /// Web search, including "grounding".
    WebSearch,
    /// Pages that the upstream fetches.
    WebFetch,
    /// Code that the upstream runs.
    CodeExecution,
    /// Search in files that are stored at the upstream.
    FileSearch,
    /// Images that are generated during the call.
    ImageGeneration,
    /// Search of maps.
    Maps,
    /// MCP servers that the upstream calls.
    Mcp,
    /// Search of posts on X.
    XSearch,
}

const COUNT: usize = Tool::ALL.len();

/// The member of a request with the list of tools.
const LIST: &str = "tools";

impl Tool {
    /// Every tool, in the order of their numbers.
    pub const ALL: [Self; 8] = [
        Self::WebSearch,
        Self::WebFetch,
        Self::CodeExecution,
        Self::FileSearch,
        Self::ImageGeneration,
        Self::Maps,
        Self::Mcp,
        Self::XSearch,
    ];

    /// The name in prices.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::WebSearch => "web_search",
            Self::WebFetch => "web_fetch",
            Self::CodeExecution => "code_execution",
            Self::FileSearch => "file_search",
            Self::ImageGeneration => "image_generation",
            Self::Maps => "maps",
            Self::Mcp => "mcp",
            Self::XSearch => "x_search",
        }
    }

    /// The tool for a vendor's name: `web_search_20260318`, `googleSearch`, `code_interpreter`.
    pub fn of(word: &str) -> Option<Self> {
        // Routers put their own name before the names of their tools.
        let word = word.rsplit(':').next().unwrap_or(word);
        Some(match without_version(word) {
            "web_search"
            | "web_search_premium"
            | "browser_search"
            | "google_search"
            | "googleSearch"
            | "google_search_retrieval"
            | "googleSearchRetrieval"
            | "enterprise_web_search"
            | "enterpriseWebSearch"
            | "live_search" => Self::WebSearch,
            "web_fetch" | "url_context" | "urlContext" | "visit_website" => Self::WebFetch,
            "code_execution"
            | "codeExecution"
            | "code_interpreter"
            | "bash_code_execution"
            | "text_editor_code_execution" => Self::CodeExecution,
            "file_search" | "fileSearch" | "retrieval" | "document_search"
            | "collections_search" => Self::FileSearch,
            "image_generation" | "image_gen" => Self::ImageGeneration,
            "maps" | "google_maps" | "googleMaps" => Self::Maps,
            "mcp" | "mcp_server" | "mcp_server_tool" | "mcp_toolset" | "mcpServers" => Self::Mcp,
            "x_search" => Self::XSearch,
            _ => return None,
        })
    }
}

/// Types and names of tools that the client runs, without dates and versions. They cost only tokens.
const RUN_BY_CLIENT: [&str; 19] = [
    "apply_patch",
    "bash",
    "browser",
    "computer",
    "computerUse",
    "computer_use",
    "custom",
    "function",
    "functionDeclarations",
    "function_declarations",
    "local_shell",
    "memory",
    "namespace",
    "programmatic_tool_calling",
    "shell",
    "text_editor",
    "tool_search",
    "tool_search_tool_bm",
    "tool_search_tool_regex",
];

/// A type of tool without the date or version after it.
fn without_version(word: &str) -> &str {
    let name = word.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_');
    name.strip_suffix("_preview").unwrap_or(name)
}

/// The type of a shell tool. If its environment is hosted, the upstream runs the shell. Otherwise the client
/// runs it.
pub(crate) const SHELL: &str = "shell";
pub(crate) const ENVIRONMENT: &str = "environment";

/// Whether the environment of a shell is a container of the upstream.
pub(crate) fn is_hosted_environment(environment: Raw<'_>) -> bool {
    if environment.shape() != Shape::Object {
        return !environment.is_null();
    }
    // If there are two types, servers differ in which one they read.
    let (mut is_local, mut is_other) = (false, false);
    // The caller has validated the JSON.
    let _ = Cursor::new(environment.text()).object(|cursor, name| {
        let value = cursor.value()?;
        if name.is("type") {
            let says_local = value.string().is_some_and(|kind| kind.is("local"));
            is_local |= says_local;
            is_other |= !says_local;
        }
        Ok::<(), SyntaxError>(())
    });
    is_other || !is_local
}

/// The built-in tools that a request offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tools(u16);

/// The bit of tools that an upstream may run and that we do not know.
const UNKNOWN: u16 = 1 << COUNT;

impl Tools {
    /// Adds a tool.
    pub fn add(&mut self, tool: Tool) {
        self.0 |= 1 << tool as u8;
    }

    /// Adds a tool that has no name here, and so no price.
    pub(crate) fn add_unknown(&mut self) {
        self.0 |= UNKNOWN;
    }

    /// Adds the tool with this type or name, unless the client runs it.
    fn add_named(&mut self, word: &str) {
        match Tool::of(word) {
            Some(tool) => self.add(tool),
            None if RUN_BY_CLIENT.contains(&without_version(word)) => {}
            None => self.add_unknown(),
        }
    }

    /// Whether there is a tool that an upstream may run and that we do not know.
    pub fn has_unknown(self) -> bool {
        self.0 & UNKNOWN != 0
    }

    /// Whether there are no tools.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The tools in the set.
    pub fn iter(self) -> impl Iterator<Item = Tool> {
        let has = move |tool: &Tool| self.0 & (1 << (*tool as u8)) != 0;
        Tool::ALL.into_iter().filter(has)
    }

    /// Reads the tools of a request, which are identified by their `type`.
    pub(crate) fn by_type(members: &Members<'_>) -> Result<Self, Failure> {
        Ok(list(members)?.map(Self::of_types).unwrap_or_default())
    }

    /// Reads the tools of a form, whose list is the text of a field.
    pub(crate) fn in_field(text: &str) -> Result<Self, Failure> {
        let mut cursor = Cursor::new(text);
        let value = cursor.value().ok().filter(|_| cursor.end().is_ok());
        let list = value.filter(|value| value.shape() == Shape::Array);
        let list = list
            .ok_or_else(|| Failure::invalid(format!("`{LIST}` must be an array.")).param(LIST))?;
        Ok(Self::of_types(list))
    }

    /// Reads a list of tools, which are identified by their `type`.
    pub(crate) fn of_types(list: Raw<'_>) -> Self {
        let mut tools = Self::default();
        // The caller has validated the JSON.
        let _ = Cursor::new(list.text()).array(|cursor| {
            if cursor.shape()? != Shape::Object {
                return cursor.value().map(drop);
            }
            let (mut is_shell, mut is_hosted) = (false, false);
            cursor.object(|cursor, name| {
                let value = cursor.value()?;
                if name.is("type") {
                    if value.is_null() {
                        return Ok(());
                    }
                    let word = value.string().map(|word| word.decode_lossy());
                    let word = word.as_deref().unwrap_or_default();
                    tools.add_named(word);
                    is_shell |= word == SHELL;
                } else if name.is(ENVIRONMENT) {
                    is_hosted |= is_hosted_environment(value);
                }
                Ok::<(), SyntaxError>(())
            })?;
            if is_shell && is_hosted {
                tools.add(Tool::CodeExecution);
            }
            Ok::<(), SyntaxError>(())
        });
        tools
    }

    /// Adds the plugins of a router, such as its own search.
    pub(crate) fn add_plugins(&mut self, members: &Members<'_>) -> Result<(), Failure> {
        if members.get("plugins")?.is_some_and(|list| !list.is_empty()) {
            self.add_unknown();
        }
        Ok(())
    }

    pub(crate) fn extend(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Reads the tools of a request, each identified by the name of a member, as in `{"googleSearch": {}}`.
    pub(crate) fn by_name(members: &Members<'_>) -> Result<Self, Failure> {
        let mut tools = Self::default();
        if let Some(list) = list(members)? {
            each_member(list, |name, value| {
                if !value.is_null() {
                    tools.add_named(name);
                }
            });
        }
        Ok(tools)
    }
}

/// The list of tools. Any other value is refused. Some upstreams accept a single object as a list of one
/// tool, which would then be neither priced nor refused.
fn list<'a>(members: &Members<'a>) -> Result<Option<Raw<'a>>, Failure> {
    members.array(LIST)
}

/// How many times each tool was used.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct ToolCalls([u32; COUNT]);

impl fmt::Debug for ToolCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let used = self.iter().map(|(tool, calls)| (tool.as_str(), calls));
        f.debug_map().entries(used).finish()
    }
}

impl ToolCalls {
    /// The number of calls of a tool.
    pub fn get(&self, tool: Tool) -> u32 {
        self.0.get(tool as usize).copied().unwrap_or(0)
    }

    /// Adds calls of a tool.
    pub fn add(&mut self, tool: Tool, calls: u32) {
        if let Some(count) = self.0.get_mut(tool as usize) {
            *count = count.saturating_add(calls);
        }
    }

    /// Raises each count to the count in `other`, which counts the same calls.
    pub fn raise(&mut self, other: &Self) {
        for (count, reported) in self.0.iter_mut().zip(other.0) {
            *count = (*count).max(reported);
        }
    }

    /// These counts. A count that is zero is taken from `other`.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        let mut calls = *self;
        for (count, reported) in calls.0.iter_mut().zip(other.0) {
            if *count == 0 {
                *count = reported;
            }
        }
        calls
    }

    /// Whether no tool was used.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|count| *count == 0)
    }

    /// The tools that were used, and how many times.
    pub fn iter(&self) -> impl Iterator<Item = (Tool, u32)> {
        let used = Tool::ALL.into_iter().zip(self.0);
        used.filter(|(_, calls)| *calls > 0)
    }

    /// Reads an object of counts whose names end in `suffix`: `web_search_requests`.
    pub(crate) fn read(
        &mut self,
        cursor: &mut Cursor<'_>,
        suffix: &str,
    ) -> Result<(), SyntaxError> {
        if cursor.shape()? != Shape::Object {
            return cursor.value().map(drop);
        }
        let mut reported = Self::default();
        cursor.object(|cursor, name| {
            let value = cursor.value()?;
            let name = name.decode_lossy();
            let tool = name.strip_suffix(suffix).and_then(Tool::of);
            if let (Some(tool), Some(calls)) = (tool, calls(value)) {
                reported.add(tool, calls);
            }
            Ok::<(), SyntaxError>(())
        })?;
        self.raise(&reported);
        Ok(())
    }
}

/// A count of calls. `None` for a value that `count` rejects. A count above `u32::MAX` becomes
/// `u32::MAX`.
pub(crate) fn calls(value: Raw<'_>) -> Option<u32> {
    count(value).map(|calls| u32::try_from(calls).unwrap_or(u32::MAX))
}

/// Calls a function with each member of each object in a list. The caller has validated the JSON.
fn each_member(list: Raw<'_>, mut visit: impl FnMut(&str, Raw<'_>)) {
    let _ = Cursor::new(list.text()).array(|cursor| {
        if cursor.shape()? != Shape::Object {
            return cursor.value().map(drop);
        }
        cursor.object(|cursor, name| {
            visit(&name.decode_lossy(), cursor.value()?);
            Ok::<(), SyntaxError>(())
        })
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::json::Spelling;

    type Read = fn(&Members<'_>) -> Result<Tools, Failure>;

    fn read(how: Read, tools: &str) -> Result<Vec<&'static str>, Failure> {
        let body = format!(r#"{{"tools":{tools}}}"#);
        let members = Members::read_text(&body, Spelling::One).unwrap();
        Ok(names(how(&members)?))
    }

    fn names(tools: Tools) -> Vec<&'static str> {
        tools.iter().map(Tool::as_str).collect()
    }

    #[test]
    fn every_tool_is_known_by_its_own_name() {
        for (number, tool) in Tool::ALL.into_iter().enumerate() {
            assert_eq!(Tool::of(tool.as_str()), Some(tool));
            assert_eq!(tool as usize, number);
        }
    }

    #[test]
    fn vendors_names_mean_the_same_tools() {
        for (word, tool) in [
            ("web_search_20260318", Some(Tool::WebSearch)),
            ("web_search_preview_2025_03_11", Some(Tool::WebSearch)),
            ("googleSearch", Some(Tool::WebSearch)),
            ("url_context", Some(Tool::WebFetch)),
            ("code_interpreter", Some(Tool::CodeExecution)),
            ("bash_code_execution", Some(Tool::CodeExecution)),
            ("mcp_server", Some(Tool::Mcp)),
            ("function", None),
            ("custom", None),
            ("bash_20250124", None),
            ("computer_use_preview", None),
            ("local_shell", None),
            ("", None),
        ] {
            assert_eq!(Tool::of(word), tool, "{word}");
        }
    }

    #[test]
    fn offered_tools_are_identified_by_type_or_by_name() {
        let by_type = r#"[{"type":"function","name":"web_search"},{"type":"web_search_preview"},7,{"type":"mcp"}]"#;
        assert_eq!(
            read(Tools::by_type, by_type).unwrap(),
            ["web_search", "mcp"]
        );
        assert_eq!(
            names(Tools::in_field(by_type).unwrap()),
            ["web_search", "mcp"]
        );
        let by_name = r#"[{"functionDeclarations":[]},{"googleSearch":{},"url_context":{},"codeExecution":null}]"#;
        assert_eq!(
            read(Tools::by_name, by_name).unwrap(),
            ["web_search", "web_fetch"]
        );
        for none in ["null", "[]", "[ ]"] {
            for how in [Tools::by_type as Read, Tools::by_name] {
                assert!(read(how, none).unwrap().is_empty(), "{none}");
            }
        }
        assert!(Tools::in_field(" [] ").unwrap().is_empty());
    }

    #[test]
    fn tools_that_we_do_not_know_are_noticed() {
        for (how, tools, is_unknown) in [
            (
                Tools::by_type as Read,
                r#"[{"type":"builtin_function"}]"#,
                true,
            ),
            (
                Tools::by_type,
                r#"[{"type":"web_search"},{"type":"fusion_20270101"}]"#,
                true,
            ),
            (Tools::by_type, r#"[{"type":"openrouter:shell"}]"#, true),
            (Tools::by_type, r#"[{"type":7}]"#, true),
            (
                Tools::by_type,
                r#"[{"type":"bash_20250124"},{"type":"tool_search_tool_bm25_20251119"}]"#,
                false,
            ),
            (
                Tools::by_type,
                r#"[{"name":"f","input_schema":{}},{"type":null},{"type":"custom"}]"#,
                false,
            ),
            (
                Tools::by_type,
                r#"[{"type":"computer_use_preview"},{"type":"shell"}]"#,
                false,
            ),
            (
                Tools::by_name,
                r#"[{"functionDeclarations":[]},{"computer_use":{}},{"x":null}]"#,
                false,
            ),
            (Tools::by_name, r#"[{"parallelAiSearch":{}}]"#, true),
        ] {
            let body = format!(r#"{{"tools":{tools}}}"#);
            let members = Members::read_text(&body, Spelling::One).unwrap();
            assert_eq!(how(&members).unwrap().has_unknown(), is_unknown, "{tools}");
        }
        assert_eq!(Tool::of("openrouter:web_search"), Some(Tool::WebSearch));
    }

    #[test]
    fn a_shell_in_a_container_of_the_upstream_is_a_built_in_tool() {
        for (tool, expected) in [
            (r#"{"type":"shell"}"#, &[][..]),
            (r#"{"type":"shell","environment":null}"#, &[]),
            (
                r#"{"environment":{"skills":[],"type":"local"},"type":"shell"}"#,
                &[],
            ),
            (
                r#"{"type":"shell","environment":{"type":"container_auto"}}"#,
                &["code_execution"],
            ),
            (
                r#"{"environment":{"t\u0079pe":"container_reference"},"type":"sh\u0065ll"}"#,
                &["code_execution"],
            ),
            (
                r#"{"type":"shell","environment":{"type":"local","type":"container_auto"}}"#,
                &["code_execution"],
            ),
            (
                r#"{"type":"function","environment":{"type":"container_auto"}}"#,
                &[],
            ),
        ] {
            let found = read(Tools::by_type, &format!("[{tool}]")).unwrap();
            assert_eq!(found, expected, "{tool}");
        }
    }

    #[test]
    fn tools_that_are_not_a_list_are_refused() {
        for value in [
            "{}",
            r#"{"google_search":{}}"#,
            r#"{"type":"web_search"}"#,
            r#""web_search""#,
            "true",
            "7",
        ] {
            let found = [
                read(Tools::by_type, value).unwrap_err(),
                read(Tools::by_name, value).unwrap_err(),
                Tools::in_field(value).unwrap_err(),
            ];
            for failure in found {
                assert_eq!(
                    failure,
                    Failure::invalid("`tools` must be an array.").param("tools")
                );
            }
        }
        // A field allows no `null`, and its whole text must be a list.
        for text in ["", "null", "[", "[]x", "[{}] {}"] {
            assert!(Tools::in_field(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_report_goes_before_what_was_seen() {
        let mut reported = ToolCalls::default();
        let text = r#"{"web_search_requests":2,"web_fetch_requests":-1,"other_requests":9,"web_search":5}"#;
        reported.read(&mut Cursor::new(text), "_requests").unwrap();
        let mut seen = ToolCalls::default();
        seen.add(Tool::WebSearch, 7);
        seen.add(Tool::CodeExecution, 1);
        let all: Vec<_> = reported.or(&seen).iter().collect();
        assert_eq!(all, [(Tool::WebSearch, 2), (Tool::CodeExecution, 1)]);
    }
}
