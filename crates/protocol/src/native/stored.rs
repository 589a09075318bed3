//! Refuses requests that name what is kept with the upstream: files, vector stores, buckets.
//!
//! All callers share the operator's account there. A caller who names an object of that account would
//! read what somebody else has put into it (docs/decisions/032).

use std::fmt::Write as _;

use super::links::{holds_words, names_a_place};
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::json::span::folded;
use crate::json::{Cursor, Members, Raw, Shape, Text};

/// Members that name something kept, in lower case and without underscores.
const NAMES: [&str; 10] = [
    "collectionids",
    "datastore",
    "fileid",
    "fileids",
    "filesearchstorenames",
    "ragcorpora",
    "ragresources",
    "vectorstoreid",
    "vectorstoreids",
    "vertexaisearch",
];

/// Members that hold what a tool of the upstream has told before: ids in them ask for nothing.
const TOLD: [&str; 3] = ["annotations", "outputs", "results"];

/// Whether a name is one of [`NAMES`]. Its first and last letter decide for most of the others.
pub(super) fn may_name(name: &str) -> bool {
    let (Some(first), Some(last)) = (name.bytes().next(), name.bytes().next_back()) else {
        return false;
    };
    if !first.is_ascii() || !last.is_ascii() || first == b'_' || last == b'_' {
        return names_stored(name);
    }
    let is_begun = matches!(first | 0x20, b'c' | b'd' | b'f' | b'r' | b'v');
    let is_ended = matches!(last | 0x20, b'a' | b'd' | b'e' | b'h' | b's');
    is_begun && is_ended && names_stored(name)
}

/// Whether a string in a member of this name is the address of something kept.
pub(super) fn may_address(name: &str, text: Text<'_>) -> bool {
    let is_inline = text.raw().starts_with("data:");
    names_a_place(name) && !is_inline && is_stored_address(&text.decode_lossy())
}

/// Refuses a request in which one of the members names something kept.
pub(super) fn refuse(dialect: Dialect, members: &Members<'_>) -> Result<(), Failure> {
    let mut walk = Walk {
        dialect,
        path: String::new(),
    };
    for member in members.iter() {
        walk.member(&member.name, member.value)?;
    }
    Ok(())
}

struct Walk {
    dialect: Dialect,
    /// Where the walk is, for the caller.
    path: String,
}

impl Walk {
    fn member(&mut self, name: &str, value: Raw<'_>) -> Result<(), Failure> {
        // A list is content that the upstream reads; an object is what a function has told.
        let is_result = self.dialect == Dialect::Interactions
            && name == "result"
            && value.shape() == Shape::Object;
        if is_result || holds_words(self.dialect, name) || TOLD.contains(&name) {
            return Ok(());
        }
        let length = self.path.len();
        if length > 0 {
            self.path.push('.');
        }
        self.path.push_str(name);
        if names_stored(name) && !value.is_null() && !value.is_empty() {
            return Err(self.refusal());
        }
        self.value(name, value)?;
        self.path.truncate(length);
        Ok(())
    }

    fn value(&mut self, name: &str, value: Raw<'_>) -> Result<(), Failure> {
        let mut cursor = Cursor::new(value.text());
        match value.shape() {
            Shape::Object => self.object(&mut cursor),
            Shape::Array => {
                let mut index = 0_usize;
                let length = self.path.len();
                cursor.array(|cursor| {
                    // Writing to a string cannot fail.
                    let _ = write!(self.path, "[{index}]");
                    index += 1;
                    self.value(name, cursor.value()?)?;
                    self.path.truncate(length);
                    Ok(())
                })
            }
            Shape::String if value.string().is_some_and(|text| may_address(name, text)) => {
                Err(self.refusal())
            }
            _ => Ok(()),
        }
    }

    fn object(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Failure> {
        let is_told = is_told(cursor.clone());
        cursor.object(|cursor, name| {
            let (name, value) = (name.decode_lossy(), cursor.value()?);
            // What a tool has told may hold an id; what stands deeper is looked at all the same.
            if is_told && names_stored(&name) {
                return Ok(());
            }
            self.member(&name, value)
        })
    }

    fn refusal(&self) -> Failure {
        let message = format!(
            "`{}` is not supported: the service keeps no files and no stores. Send the content \
             itself, or a public URL.",
            self.path
        );
        Failure::stateful_not_supported(message).param(self.path.clone())
    }
}

/// Whether an object is an output of a tool, or a citation of one, in a conversation so far.
fn is_told(mut cursor: Cursor<'_>) -> bool {
    let mut is_told = false;
    // The text has been checked already.
    let _ = cursor.object(|cursor, name| {
        let value = cursor.value()?;
        if name.is("type") {
            let kind = value.string().map(|text| text.decode_lossy());
            let kind = kind.unwrap_or_default();
            let endings = ["_output", "_result", "_citation"];
            is_told = kind == "file_path" || endings.iter().any(|ending| kind.ends_with(ending));
        }
        Ok::<(), Failure>(())
    });
    is_told
}

fn names_stored(name: &str) -> bool {
    if !name.is_ascii() {
        return NAMES.contains(&&*folded(name));
    }
    let letters = || name.bytes().filter(|byte| *byte != b'_');
    let folded = || letters().map(|letter| letter.to_ascii_lowercase());
    NAMES.iter().any(|known| folded().eq(known.bytes()))
}

/// `files/abc`, the same as an address of the vendor's, or an object in a bucket.
fn is_stored_address(address: &str) -> bool {
    let address = address.trim().to_ascii_lowercase();
    let is_bucket = ["gs:", "s3:"].iter().any(|it| address.starts_with(it));
    let is_file = address.trim_start_matches('/').starts_with("files/");
    let (_, rest) = address.split_once("//").unwrap_or_default();
    let (host, path) = rest.split_at(rest.find(['/', '?', '\\']).unwrap_or(rest.len()));
    is_bucket || is_file || host.contains("googleapis.com") && path.contains("files/")
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
    fn no_spelling_of_a_kept_name_is_passed_over() {
        for known in NAMES {
            let upper = known.to_ascii_uppercase();
            let parted = format!("_{}_{}_", &known[..2], &known[2..]);
            for spelling in [known, &upper, &parted] {
                assert!(may_name(spelling), "{spelling}");
            }
        }
        for other in ["", "content", "role", "fileids2", "name"] {
            assert!(!may_name(other), "{other}");
        }
    }

    #[test]
    fn what_is_kept_upstream_cannot_be_named() {
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
    fn what_only_looks_like_it_passes() {
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
                Interactions,
                r#""input":[{"type":"image","uri":"https://a.example/files/1.png"},
                {"type":"function_result","result":{"file_id":"mine"}}]"#,
            ),
        ] {
            assert_eq!(refused(dialect, member), None, "{dialect} {member}");
        }
    }
}
