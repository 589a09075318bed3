//! The names in `x-dropped-params`. A name is the path of a member in the client's request: names
//! separated by dots, with the index of each list item. A tool that the vendor runs is named by its
//! type. A member that is dropped as a whole is named once, without its content.
//!
//! `fixtures/properties/whole.json` has one request of each dialect with everything that its reader
//! knows. Each member is removed in turn: either this changes the request for the upstream, or the
//! member is named. And an unknown member is added to each object: it must be named, too.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use protocol::Dialect;
use serde_json::{Value, json};

use super::pairs;
use super::requests::convert;

/// A request of each dialect with everything that its reader knows.
pub(super) static WHOLE: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../../fixtures/properties/whole.json")).unwrap()
});

/// Members whose content belongs to the client.
const FREE: [&str; 14] = [
    "parameters",
    "parametersJsonSchema",
    "input_schema",
    "schema",
    "responseJsonSchema",
    "args",
    "labels",
    "logit_bias",
    "response",
    "input_examples",
    "stop",
    "stop_sequences",
    "stopSequences",
    "allowedFunctionNames",
];

/// Members that give the type of their object, or that repeat something. Removing one of them may
/// change nothing.
pub(super) const KINDS: [&str; 8] = [
    "model",
    "type",
    "role",
    "mime_type",
    "media_type",
    "mimeType",
    "id",
    "status",
];

/// One member or item of a request.
pub(super) struct Node {
    /// The name of the node, as the module documentation describes it.
    pub(super) path: String,
    pub(super) pointer: String,
    is_object: bool,
    pub(super) is_leaf: bool,
}

fn nodes(dialect: Dialect) -> Vec<Node> {
    nodes_of(dialect, &WHOLE[dialect.as_str()])
}

pub(super) fn nodes_of(dialect: Dialect, body: &Value) -> Vec<Node> {
    let mut nodes = Vec::new();
    walk(dialect, body, "", "", &mut nodes);
    nodes
}

fn walk(dialect: Dialect, value: &Value, path: &str, pointer: &str, nodes: &mut Vec<Node>) {
    let name = pointer.rsplit('/').next().unwrap_or_default();
    // The input of a call and its result belong to the tool.
    let is_said = ["arguments", "input"].contains(&name) && path.contains('[') && value.is_object();
    let is_object = value.is_object();
    let is_free = match name {
        "metadata" => dialect != Dialect::Messages,
        "citations" => !is_object,
        name => is_said || FREE.contains(&name),
    };
    let inside: Vec<(String, String, &Value)> = match value {
        Value::Object(members) if !is_free => members
            .iter()
            .map(|(name, value)| {
                let path = member_path(dialect, path, name);
                (path, format!("{pointer}/{name}"), value)
            })
            .collect(),
        Value::Array(items) if !is_free && !items.iter().all(Value::is_string) => items
            .iter()
            .enumerate()
            .map(|(at, item)| {
                let path = item_path(dialect, path, at, item);
                (path, format!("{pointer}/{at}"), item)
            })
            .collect(),
        _ => Vec::new(),
    };
    nodes.push(Node {
        path: path.to_owned(),
        pointer: pointer.to_owned(),
        is_object: is_object && !is_free,
        is_leaf: inside.is_empty() && !name.is_empty() && name.parse::<usize>().is_err(),
    });
    for (path, pointer, value) in inside {
        walk(dialect, value, &path, &pointer, nodes);
    }
}

fn member_path(dialect: Dialect, path: &str, name: &str) -> String {
    let is_tool = dialect == Dialect::Generate && path.starts_with("tools[") && path.ends_with(']');
    match path {
        "" => name.to_owned(),
        _ if is_tool && !path.contains('.') && name != "functionDeclarations" => {
            format!("tools.{name}")
        }
        _ => format!("{path}.{name}"),
    }
}

fn item_path(dialect: Dialect, path: &str, at: usize, item: &Value) -> String {
    let kind = item["type"].as_str().unwrap_or("function");
    match (path, dialect) {
        (
            "tools",
            Dialect::Chat | Dialect::Responses | Dialect::Messages | Dialect::Interactions,
        ) if kind != "function" => {
            format!("tools.{kind}")
        }
        _ => format!("{path}[{at}]"),
    }
}

/// Whether the name reports that the member at the path was dropped.
pub(super) fn covers(name: &str, path: &str) -> bool {
    let rest = path.strip_prefix(name);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Members that may change nothing and need not be named, because nothing is lost.
fn is_exempt(node: &Node, to: Dialect, body: &Value) -> bool {
    let name = node.path.rsplit('.').next().unwrap();
    let value = body.pointer(&node.pointer).unwrap();
    let google = matches!(to, Dialect::Generate | Dialect::Interactions);
    match name {
        name if KINDS.contains(&name) => true,
        // Usage is always requested, the text explains an error, and other members repeat the rest.
        "include_usage" | "error" | "include" | "responseMimeType" => true,
        // These dialects have no member for the error, but the text says what went wrong.
        "is_error" => matches!(to, Dialect::Chat | Dialect::Responses),
        // These dialects apply every schema strictly.
        "strict" if node.path.contains("format") => google || to == Dialect::Messages,
        // The call has the same name.
        "name" => *value == "f",
        // Members of an earlier answer, sent back.
        "annotations" | "logprobs" => node.path.contains('['),
        // The default.
        "mode" => *value == "auto" || *value == "AUTO",
        "display" => *value == "summarized",
        // All tools are allowed, so the list of tools is enough.
        "tools" | "allowedFunctionNames" => to == Dialect::Messages,
        // There is one setting for all images, and another image asks for the same level.
        "detail" | "resolution" => to == Dialect::Generate,
        _ => false,
    }
}

#[test]
fn each_member_has_its_effect_or_is_named_by_its_path() {
    let mut wrongs = Vec::new();
    for (from, to) in pairs().filter(|(from, to)| from != to) {
        let body = &WHOLE[from.as_str()];
        let (sent, dropped) = convert(from, to, body).unwrap();
        let nodes = nodes(from);
        let paths: BTreeSet<&str> = nodes.iter().map(|node| node.path.as_str()).collect();
        for name in &dropped {
            if !paths.contains(name.as_str()) {
                wrongs.push(format!(
                    "{from} to {to}: `{name}` is no path of the request"
                ));
            }
            let outer = dropped
                .iter()
                .find(|outer| *outer != name && covers(outer, name));
            if let Some(outer) = outer {
                wrongs.push(format!("{from} to {to}: `{name}` is inside of `{outer}`"));
            }
        }
        for node in nodes.iter().filter(|node| node.is_leaf) {
            let mut less = body.clone();
            let (outer, name) = node.pointer.rsplit_once('/').unwrap();
            less.pointer_mut(outer)
                .unwrap()
                .as_object_mut()
                .unwrap()
                .remove(name);
            let has_effect = convert(from, to, &less).map_or(true, |(without, _)| without != sent);
            let is_named = dropped.iter().any(|name| covers(name, &node.path));
            let path = &node.path;
            if has_effect && is_named && dropped.contains(path) {
                wrongs.push(format!(
                    "{from} to {to}: `{path}` has its effect and is named"
                ));
            }
            if !has_effect && !is_named && !is_exempt(node, to, body) {
                wrongs.push(format!("{from} to {to}: `{path}` is lost silently"));
            }
        }
    }
    assert!(wrongs.is_empty(), "{}", wrongs.join("\n"));
}

#[test]
fn an_unknown_member_is_named_in_every_place() {
    let mut wrongs = Vec::new();
    for (from, to) in pairs().filter(|(from, to)| from != to) {
        let body = &WHOLE[from.as_str()];
        let (_, before) = convert(from, to, body).unwrap();
        let new = match from {
            Dialect::Generate => "somethingNew",
            _ => "something_new",
        };
        for node in nodes(from).iter().filter(|node| node.is_object) {
            let mut more = body.clone();
            let object = more.pointer_mut(&node.pointer).unwrap();
            object[new] = json!({"a": 1});
            let path = match (from, node.path.as_str()) {
                (_, "") => new.to_owned(),
                // In Generate Content, a member of a tool's object is another tool of the vendor.
                (from, path) => member_path(from, path, new),
            };
            let is_inside = before.iter().any(|name| covers(name, &path));
            let mut expected = before.clone();
            if !is_inside {
                expected.push(path.clone());
            }
            let (sent, mut dropped) = match convert(from, to, &more) {
                Ok(converted) => converted,
                Err(failure) => {
                    wrongs.push(format!("{from} to {to}: `{path}`: {failure}"));
                    continue;
                }
            };
            expected.sort();
            dropped.sort();
            if dropped != expected || sent.to_string().contains(new) {
                let listed: Vec<_> = dropped.iter().filter(|it| !before.contains(it)).collect();
                wrongs.push(format!("{from} to {to}: `{path}` is listed as {listed:?}"));
            }
        }
    }
    assert!(wrongs.is_empty(), "{}", wrongs.join("\n"));
}
