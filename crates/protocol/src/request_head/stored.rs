//! Refuses requests that name objects that the upstream stores: files, vector stores, buckets.
//!
//! All clients share the operator's account at the upstream. A client that names an object of this
//! account would read the data of another client (docs/decisions/032).

use std::fmt::Write as _;

use super::urls::{holds_url, is_tool_data};
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::json::members::normalized_name;
use crate::json::{Cursor, Members, Shape, Text};

/// Members that name a stored object, in lower case and without underscores.
const NAMES: [&str; 11] = [
    "collectionids",
    "datastore",
    "fileid",
    "fileids",
    "filesearchstorenames",
    "ragcorpora",
    "ragresources",
    // A tunnel of the operator's account, which leads tools into a private network.
    "tunnelid",
    "vectorstoreid",
    "vectorstoreids",
    "vertexaisearch",
];

/// Members with earlier output of the upstream's tools. Ids in them do not request anything.
const TOOL_OUTPUT: [&str; 6] = [
    "action",
    "annotations",
    "citations",
    "outputs",
    "results",
    "sources",
];

/// The length limit for a path in a message to the client.
const PATH_CHARS_MAX: usize = 200;

/// Whether a name is one of [`NAMES`]. The first and the last letter rule out most other names.
pub(super) fn is_stored_name(name: &str) -> bool {
    let (Some(first), Some(last)) = (name.bytes().next(), name.bytes().next_back()) else {
        return false;
    };
    if !first.is_ascii() || !last.is_ascii() || first == b'_' || last == b'_' {
        return is_known_name(name);
    }
    let may_begin = matches!(first | 0x20, b'c' | b'd' | b'f' | b'r' | b't' | b'v');
    let may_end = matches!(last | 0x20, b'a' | b'd' | b'e' | b'h' | b's');
    may_begin && may_end && is_known_name(name)
}

/// Whether a string in a member with this name is the address of a stored object.
pub(super) fn is_stored_url(name: &str, text: Text<'_>) -> bool {
    let is_inline = text.raw().starts_with("data:");
    holds_url(name) && !is_inline && is_stored_address(&text.decode_lossy())
}

/// Refuses a request if one of its members names a stored object.
pub(crate) fn refuse(dialect: Dialect, members: &Members<'_>) -> Result<(), Failure> {
    let mut search = StoredObjectSearch {
        dialect,
        path: String::new(),
    };
    for member in members.iter() {
        let mut found = ObjectCheck::default();
        search.member(
            &mut Cursor::new(member.value.text()),
            &member.name,
            &mut found,
        )?;
        found.refuse()?;
    }
    Ok(())
}

/// Visits each byte of a request once, at any depth of nesting.
struct StoredObjectSearch {
    dialect: Dialect,
    /// The current path, for the message to the client.
    path: String,
}

/// The result for the members of one object.
#[derive(Default)]
struct ObjectCheck {
    /// The refusal for the first member that names a stored object.
    refusal: Option<Failure>,
    /// Whether the object is the output of a tool, or a citation of such output, in the history. Every `type`
    /// member must say so, because servers differ in which of two `type` members they read.
    is_tool_output: Option<bool>,
}

impl ObjectCheck {
    /// Returns the refusal, unless the object is tool output, which may contain ids. Call this at the end of
    /// the object, when all its members are known.
    fn refuse(self) -> Result<(), Failure> {
        match self.refusal {
            Some(refusal) if self.is_tool_output != Some(true) => Err(refusal),
            _ => Ok(()),
        }
    }
}

impl StoredObjectSearch {
    fn member(
        &mut self,
        cursor: &mut Cursor<'_>,
        name: &str,
        found: &mut ObjectCheck,
    ) -> Result<(), Failure> {
        // A `result` that is a list is content that the upstream reads. An object is the output of a
        // function.
        let is_result = self.dialect == Dialect::Interactions
            && name == "result"
            && cursor.shape()? == Shape::Object;
        if is_result || is_tool_data(self.dialect, name) || TOOL_OUTPUT.contains(&name) {
            cursor.value()?;
            return Ok(());
        }
        let length = self.path.len();
        if length > 0 {
            self.path.push('.');
        }
        self.path.push_str(name);
        if name == "type" {
            let kind = cursor.value()?.string().map(|kind| kind.decode_lossy());
            let is_tool_output = kind.is_some_and(|kind| self.is_tool_output(&kind));
            found.is_tool_output = Some(is_tool_output && found.is_tool_output != Some(false));
        } else if is_known_name(name) {
            let value = cursor.value()?;
            if !value.is_null() && !value.is_empty() {
                found.refusal.get_or_insert_with(|| self.refusal());
            }
        } else {
            self.value(cursor, name, found)?;
        }
        self.path.truncate(length);
        Ok(())
    }

    fn value(
        &mut self,
        cursor: &mut Cursor<'_>,
        name: &str,
        found: &mut ObjectCheck,
    ) -> Result<(), Failure> {
        match cursor.shape()? {
            Shape::Object => self.object(cursor),
            Shape::Array => {
                let mut index = 0_usize;
                let length = self.path.len();
                cursor.array(|cursor| {
                    // Writing to a string cannot fail.
                    let _ = write!(self.path, "[{index}]");
                    index += 1;
                    self.value(cursor, name, found)?;
                    self.path.truncate(length);
                    Ok(())
                })
            }
            Shape::String => {
                if is_stored_url(name, cursor.string()?) {
                    found.refusal.get_or_insert_with(|| self.refusal());
                }
                Ok(())
            }
            _ => cursor.value().map(drop).map_err(Failure::from),
        }
    }

    fn object(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Failure> {
        let mut found = ObjectCheck::default();
        cursor.object(|cursor, name| self.member(cursor, &name.decode_lossy(), &mut found))?;
        found.refuse()
    }

    /// Whether an object of this type is tool output. Chat and Generate Content have no such types, and read
    /// members without checking the type of their object.
    fn is_tool_output(&self, kind: &str) -> bool {
        use Dialect::{Interactions, Messages, Responses};
        let endings = ["_output", "_result", "_citation"];
        matches!(self.dialect, Interactions | Messages | Responses)
            && (kind == "file_path" || endings.iter().any(|ending| kind.ends_with(ending)))
    }

    fn refusal(&self) -> Failure {
        let path: String = self.path.chars().take(PATH_CHARS_MAX).collect();
        let message = format!(
            "`{path}` is not supported: the service keeps no files and no stores. Send the content \
             itself, or a public URL."
        );
        Failure::stateful_not_supported(message).param(path)
    }
}

fn is_known_name(name: &str) -> bool {
    if !name.is_ascii() {
        return NAMES.contains(&&*normalized_name(name));
    }
    let letters = || name.bytes().filter(|byte| *byte != b'_');
    let lower_case = || letters().map(|letter| letter.to_ascii_lowercase());
    NAMES.iter().any(|known| lower_case().eq(known.bytes()))
}

/// Whether an address is `files/abc`, a URL of the vendor with such a path, or an object in a bucket.
pub(crate) fn is_stored_address(address: &str) -> bool {
    let address = address.trim().to_ascii_lowercase();
    let is_bucket = ["gs:", "s3:"].iter().any(|it| address.starts_with(it));
    let is_file = address.trim_start_matches('/').starts_with("files/");
    let (_, rest) = address.split_once("//").unwrap_or_default();
    let (host, path) = rest.split_at(rest.find(['/', '?', '\\']).unwrap_or(rest.len()));
    // URLs of Google's storage are public, or signed by their owner.
    let is_vendor = host.contains("googleapis.com") && !host.contains("storage.googleapis.com");
    let mut segments = path.split(['/', '?', '\\']);
    is_bucket || is_file || is_vendor && segments.any(|it| it == "files" || it.contains('%'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Code;
    use crate::native::{read_head, read_named_head};

    fn refused(dialect: Dialect, member: &str) -> Option<(Code, String)> {
        let usual = match dialect {
            Dialect::Chat | Dialect::Messages => {
                r#""max_tokens":9,"messages":[{"role":"user","content":"x"}]"#
            }
            Dialect::Responses | Dialect::Interactions => r#""input":"x""#,
            Dialect::Generate => r#""contents":[{"parts":[{"text":"x"}]}]"#,
        };
        let replaces = |name: &str| member.starts_with(&format!("\"{name}\""));
        let usual = if ["messages", "input", "contents"].into_iter().any(replaces) {
            r#""max_tokens":9"#
        } else {
            usual
        };
        let body = format!(r#"{{{member},{usual},"model":"maker/m"}}"#).replace('\n', " ");
        let body = bytes::Bytes::from(body);
        let head = match dialect {
            Dialect::Generate => read_named_head(&body, "maker/m", false),
            dialect => read_head(dialect, &body),
        };
        let failure = head.err()?;
        Some((failure.code, failure.param.clone()?.into_owned()))
    }

    #[test]
    fn every_spelling_of_a_stored_name_is_noticed() {
        for known in NAMES {
            let upper = known.to_ascii_uppercase();
            let parted = format!("_{}_{}_", &known[..2], &known[2..]);
            for spelling in [known, &upper, &parted] {
                assert!(is_stored_name(spelling), "{spelling}");
            }
        }
        for other in ["", "content", "role", "fileids2", "name"] {
            assert!(!is_stored_name(other), "{other}");
        }
    }

    #[test]
    fn objects_stored_upstream_cannot_be_named() {
        use Dialect::{Chat, Generate, Interactions, Messages, Responses};
        for (dialect, member, param) in [
            (Responses, r#""prompt":{"id":"pmpt_1"}"#, "prompt"),
            (Responses, r#""pr\u006fmpt":{"id":"pmpt_1"}"#, "prompt"),
            (
                Responses,
                r#""tools":[{"type":"file_search","vector_store_ids":["vs_1"]}]"#,
                "tools[0].vector_store_ids",
            ),
            (
                Responses,
                r#""tools":[{"type":"function"},{"type":"file_search","vector\u005fstore_ids":["vs_1"]}]"#,
                "tools[1].vector_store_ids",
            ),
            (
                Responses,
                r#""tools":[{"type":"code_interpreter","container":{"type":"auto","file_ids":["f"]}}]"#,
                "tools[0].container.file_ids",
            ),
            (
                Responses,
                r#""input":[{"role":"user","content":[{"type":"input_file","file_id":"f"}]}]"#,
                "input[0].content[0].file_id",
            ),
            (
                Responses,
                r#""input":[{"role":"user","content":[{"file\u005fid":"f","type":"input_image"}]}]"#,
                "input[0].content[0].file_id",
            ),
            (
                Responses,
                r#""input":[{"type":"function_call_output","call_id":"c","output":[{"type":"input_file","file_id":"f"}]}]"#,
                "input[0].output[0].file_id",
            ),
            (
                Responses,
                r#""input":[{"role":"user","content":"x","attachments":[{"File_ID":"f"}]}]"#,
                "input[0].attachments[0].File_ID",
            ),
            (
                Chat,
                r#""messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"f"}}]}]"#,
                "messages[0].content[0].file.file_id",
            ),
            (
                Messages,
                r#""messages":[{"role":"user","content":[{"type":"document","source":{"type":"file","file_id":"f"}}]}]"#,
                "messages[0].content[0].source.file_id",
            ),
            (
                Messages,
                r#""messages":[{"role":"user","content":[{"type":"container_upload","file_id":"f"}]}]"#,
                "messages[0].content[0].file_id",
            ),
            (
                Generate,
                r#""contents":[{"parts":[{"fileData":{"fileUri":"https://generativelanguage.googleapis.com/v1beta/files/abc"}}]}]"#,
                "contents[0].parts[0].fileData.fileUri",
            ),
            (
                Generate,
                r#""contents":[{"parts":[{"file_data":{"file_uri":"\u0066iles/abc"}}]}]"#,
                "contents[0].parts[0].file_data.file_uri",
            ),
            (
                Generate,
                r#""contents":[{"parts":[{"fileData":{"fileUri":"GS://bucket/a.png"}}]}]"#,
                "contents[0].parts[0].fileData.fileUri",
            ),
            (
                Generate,
                r#""tools":[{"fileSearch":{"fileSearchStoreNames":["fileSearchStores/a"]}}]"#,
                "tools[0].fileSearch.fileSearchStoreNames",
            ),
            (
                Interactions,
                r#""input":[{"type":"image","uri":"files/abc"}]"#,
                "input[0].uri",
            ),
            (
                Interactions,
                r#""input":[{"type":"function_result","result":[{"type":"image","uri":"files/abc"}]}]"#,
                "input[0].result[0].uri",
            ),
            (
                Interactions,
                r#""tools":[{"type":"file_search","file_search_store_names":["a"]}]"#,
                "tools[0].file_search_store_names",
            ),
        ] {
            let expected = Some((Code::StatefulNotSupported, param.to_owned()));
            assert_eq!(refused(dialect, member), expected, "{dialect} {member}");
        }
    }

    #[test]
    fn no_tool_reaches_the_network_of_the_operator() {
        for (dialect, member, param) in [
            (
                Dialect::Responses,
                r#""tools":[{"type":"mcp","server_label":"a","tunn\u0065l_id":"t"}]"#,
                "tools[0].tunnel_id",
            ),
            (
                Dialect::Responses,
                r#""input":[{"type":"tool_search_output","tools":[{"type":"mcp","tunnel_id":"t"}]}]"#,
                "input[0].tools[0].tunnel_id",
            ),
        ] {
            let expected = Some((Code::StatefulNotSupported, param.to_owned()));
            assert_eq!(refused(dialect, member), expected, "{dialect} {member}");
        }
    }

    #[test]
    fn a_type_that_the_client_invents_hides_nothing() {
        use Dialect::{Chat, Responses};
        for (dialect, member, param) in [
            (
                Responses,
                r#""input":[{"role":"user","content":[{"type":"input_file","file_id":"f","type":"x_result"}]}]"#,
                "input[0].content[0].file_id",
            ),
            (
                Responses,
                r#""input":[{"role":"user","content":[{"type":["x_result"],"file_id":"f"}]}]"#,
                "input[0].content[0].file_id",
            ),
            (
                Chat,
                r#""messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"f","type":"x_result"}}]}]"#,
                "messages[0].content[0].file.file_id",
            ),
        ] {
            let expected = Some((Code::StatefulNotSupported, param.to_owned()));
            assert_eq!(refused(dialect, member), expected, "{dialect} {member}");
        }
    }

    #[test]
    fn a_long_path_is_shortened() {
        let member = format!(r#""{}":{{"file_id":"f"}}"#, "n".repeat(100_000));
        let (_, param) = refused(Dialect::Chat, &member).unwrap();
        assert!(param.len() <= PATH_CHARS_MAX, "{}", param.len());
    }

    #[test]
    fn members_that_only_look_like_references_are_accepted() {
        use Dialect::{Chat, Generate, Interactions, Messages, Responses};
        for (dialect, member) in [
            (Responses, r#""prompt":null"#),
            (
                Responses,
                r#""tools":[{"type":"function","name":"f","parameters":{"properties":{"file_id":{"type":"string"},"file_ids":{}}}}]"#,
            ),
            (
                Responses,
                r#""tools":[{"type":"code_interpreter","container":{"type":"auto","file_ids":[]}}]"#,
            ),
            (Responses, r#""metadata":{"file_id":"mine"}"#),
            (
                Responses,
                r#""input":[{"role":"user","content":[{"type":"input_image","file_id":null,"image_url":"https://a.example"}]}]"#,
            ),
            (
                Responses,
                r#""input":[{"role":"assistant","content":[{"type":"output_text","text":"x","annotations":[{"type":"container_file_citation","file_id":"f"}]}]}]"#,
            ),
            (
                Messages,
                r#""messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{"file_id":"mine"}},
                {"type":"bash_code_execution_tool_result","content":{"content":[{"type":"bash_code_execution_output","file_id":"f"}]}}]}]"#,
            ),
            (
                Chat,
                r#""messages":[{"role":"user","content":[{"type":"file","file":{"file_data":"data:a/b;base64,AA"}}]}]"#,
            ),
            (
                Generate,
                r#""contents":[{"parts":[{"fileData":{"fileUri":"https://www.youtube.com/watch?v=1"}},
                {"functionCall":{"args":{"file_id":"mine","uri":"gs://a/b"}}},{"functionResponse":{"response":{"fileUri":"files/a"}}}]}]"#,
            ),
            (
                Messages,
                r#""messages":[{"role":"user","content":[{"type":"web_search_tool_result","content":[
                {"type":"web_search_result","url":"https://x.googleapis.com/files/a.pdf"}]}]}],
                "tools":[{"name":"read","input_schema":{},"input_examples":[{"file_id":"mine"}]}]"#,
            ),
            (
                Chat,
                r#""messages":[{"role":"user","content":[{"type":"image_url",
                "image_url":{"url":"https://storage.googleapis.com/bucket/files/profiles/a.png"}}]}]"#,
            ),
            (
                Interactions,
                r#""response_format":{"type":"object","properties":{"file_id":{"type":"string"}}}"#,
            ),
            (
                Interactions,
                r#""input":[{"type":"image","uri":"https://a.example/files/1.png"},
                {"type":"function_result","result":{"file_id":"mine"}}]"#,
            ),
        ] {
            assert_eq!(refused(dialect, member), None, "{dialect} {member}");
        }
    }
}
