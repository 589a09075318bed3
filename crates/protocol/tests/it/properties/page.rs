//! Computes `docs/conversion.md` and checks that the file is current. The page says what a conversion does
//! with each member. The test removes a member from a whole request, or gives it another value. The page then
//! names the places of the upstream's request that change, or says that the member is listed in
//! `x-dropped-params`.

mod answers;
mod differences;
mod variants;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use protocol::Dialect;
use serde_json::Value;

use super::paths::{KINDS, Node, covers, nodes_of};
use super::requests::convert;
use differences::{differences, item, member};
use variants::{request, with_ours, with_required};

/// The result of converting a member for one upstream protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    /// The member changes these places of the upstream's request.
    Sent(BTreeSet<String>),
    /// The member changes these places, but is dropped from some of the items that have it.
    SentPartly(BTreeSet<String>),
    /// The member changes these places, but only in a request without the members that exclude it.
    SentWithout(BTreeSet<String>, &'static [&'static str]),
    /// The member changes these places, but only if its opaque value is one of ours, made by the same model.
    SentBack(BTreeSet<String>),
    /// The member cannot be left out or changed alone, because other members refer to it.
    Linked,
    /// The member is left out and listed.
    Dropped,
    /// The member changes nothing, and nothing is lost: the upstream does it anyway, or another member says
    /// the same.
    Implied,
}

/// A member of a dialect, and its outcome towards every other dialect.
struct Row {
    path: String,
    /// Whether the member gives the type of its object, and so represents the whole object.
    is_kind: bool,
    outcomes: Vec<Outcome>,
}

/// Members that exclude others in the same request, by the dialect that has them. Thinking excludes sampling.
/// Of two names for one thing, only one can be sent.
fn excluding_members(dialect: Dialect) -> &'static [&'static [&'static str]] {
    match dialect {
        Dialect::Chat => &[
            &["reasoning_effort"],
            &["max_completion_tokens"],
            &["safety_identifier"],
        ],
        Dialect::Responses => &[&["reasoning"], &["safety_identifier"]],
        Dialect::Messages => &[&["thinking"]],
        Dialect::Generate => &[&["generationConfig.thinkingConfig"]],
        Dialect::Interactions => &[&[
            "generation_config.thinking_level",
            "generation_config.thinking_summaries",
        ]],
    }
}

const HEAD: &str = "# What conversion keeps, maps and drops

A call whose upstream speaks the caller's protocol is not converted: every member passes as it is. This page is about all other calls. A
test writes it from the conversions themselves: `TOLLGATE_WRITE_CONVERSION=1 cargo test -p tollgate-protocol --test it page`.

Each row is a member of a request, by its path; an item of a list is named by its role or type: `messages[user].content[text].text`. Each
column is the protocol of an upstream:

| cell | meaning |
|---|---|
| a path | the member is sent, and this is its place in the upstream's request |
| same | the same, under the same path |
| sent | the same; other members refer to it, such as to the name of a tool, and it is sent wherever they are |
| a path, without a member | the same, but only if the request does not have that member, which excludes it; otherwise it is dropped |
| a path, or dropped | it depends on the item: a file that is an image is sent, a video is not |
| a path, if from this gateway | the same, but only if its signature came with an answer of this gateway, which marks signatures with the model that made them, and goes to the same model; otherwise it is dropped |
| dropped | the upstream's protocol cannot express it. The call is served without it, and `x-dropped-params` names it |
| implied | nothing is sent and nothing is lost: the upstream does it anyway, or another member says the same |

Members that are not listed here are dropped and named too. Members that only say what an object is (`type`, `role`, `id`, `status`) follow
from the rest. What a model itself cannot do is a matter of its profile: sampling that is fixed, images that must be inline, a thinking
budget. Members that choose a route, a paid tier or stored objects are [refused](api/README.md#rules-for-every-model-call), and never
dropped. [Decision 011](decisions/011-conversion.md) says how single values change, and [033](decisions/033-names-of-dropped-members.md) how
dropped members are named.
";

fn title(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Chat => "Chat completions",
        Dialect::Responses => "Responses",
        Dialect::Messages => "Messages",
        Dialect::Generate => "Generate Content",
        Dialect::Interactions => "Interactions",
    }
}

/// The heading of a table with one column for each of these dialects.
fn heading(first: &'static str, dialects: impl Iterator<Item = Dialect>) -> String {
    let names: Vec<&str> = std::iter::once(first).chain(dialects.map(title)).collect();
    let rule = "|---".repeat(names.len());
    format!("| {} |\n{rule}|\n", names.join(" | "))
}

/// The path of a node, with items named by their kinds.
fn label(body: &Value, pointer: &str) -> String {
    let mut value = body;
    let mut path = String::new();
    for name in pointer.split('/').skip(1) {
        let inner = match value {
            Value::Array(items) => &items[name.parse::<usize>().unwrap()],
            value => &value[name],
        };
        path = match value {
            Value::Array(_) => item(&path, inner),
            _ => member(&path, name),
        };
        value = inner;
    }
    path
}

/// The pointer to a member that is in no list.
fn pointer(path: &str) -> String {
    format!("/{}", path.replace('.', "/"))
}

fn without<'a>(body: &Value, pointers: impl Iterator<Item = &'a str>) -> Value {
    let mut less = body.clone();
    for pointer in pointers {
        let (outer, name) = pointer.rsplit_once('/').unwrap();
        if let Some(Value::Object(object)) = less.pointer_mut(outer) {
            object.remove(name);
        }
    }
    less
}

/// The body with other values of these members: texts get a letter, numbers are changed by
/// `number`, and all others become `null`.
fn with_others(body: &Value, nodes: &[&Node], number: fn(u64) -> u64) -> Value {
    let mut other = body.clone();
    for node in nodes {
        let Some(value) = other.pointer_mut(&node.pointer) else {
            continue;
        };
        *value = match value {
            Value::String(text) => format!("{text}x").into(),
            Value::Number(old) => number(old.as_u64().unwrap_or_default()).into(),
            _ => Value::Null,
        };
    }
    other
}

/// The places of the upstream's request that change if these members require a tool call instead of
/// `auto`. Leaving the members out would mean `auto` too. Members that exclude them are removed
/// from the request.
fn places_of_required(
    from: Dialect,
    to: Dialect,
    body: &Value,
    nodes: &[&Node],
) -> Option<BTreeSet<String>> {
    let required = with_required(body, nodes)?;
    let rivals = excluding_members(from).iter().copied().flatten();
    let pointers: Vec<String> = rivals.map(|path| pointer(path)).collect();
    let alone = |body| {
        let less = without(body, pointers.iter().map(String::as_str));
        Some(convert(from, to, &less).ok()?.0)
    };
    Some(differences(&alone(&required)?, &alone(body)?))
}

/// The outcome for the members at these nodes, which share one name in the page.
fn outcome(from: Dialect, to: Dialect, body: &Value, nodes: &[&Node]) -> Outcome {
    let (sent, dropped) = convert(from, to, body).unwrap();
    let is_dropped = |node: &&Node| dropped.iter().any(|name| covers(name, &node.path));
    let kept: Vec<&Node> = nodes.iter().copied().filter(|it| !is_dropped(it)).collect();
    if kept.is_empty() {
        return Outcome::Dropped;
    }
    let bodies = [
        without(body, kept.iter().map(|node| node.pointer.as_str())),
        // A budget becomes a level, so a small change may change nothing.
        with_others(body, &kept, |old| old * 2),
        with_others(body, &kept, |old| old / 2),
    ];
    let converted: Vec<Value> = bodies
        .iter()
        .filter_map(|body| Some(convert(from, to, body).ok()?.0))
        .collect();
    let places = converted.iter().map(|other| differences(&sent, other));
    let mut places = places.chain(places_of_required(from, to, body, &kept));
    match places.find(|places| !places.is_empty()) {
        Some(places) if kept.len() < nodes.len() => Outcome::SentPartly(places),
        Some(places) => Outcome::Sent(places),
        None if converted.is_empty() => Outcome::Linked,
        None => Outcome::Implied,
    }
}

/// Like `outcome`, but if the members are dropped, also tries our own signatures and requests
/// without members that exclude them.
fn best_outcome(from: Dialect, to: Dialect, body: &Value, nodes: &[&Node]) -> Outcome {
    let first = outcome(from, to, body, nodes);
    if first != Outcome::Dropped {
        return first;
    }
    let ours = outcome(from, to, &with_ours(body, to), nodes);
    if let Outcome::Sent(places) | Outcome::SentPartly(places) = ours {
        return Outcome::SentBack(places);
    }
    let alone = excluding_members(from).iter().find_map(|rivals| {
        let pointers: Vec<String> = rivals.iter().map(|path| pointer(path)).collect();
        if nodes
            .iter()
            .any(|node| pointers.iter().any(|it| node.pointer.starts_with(it)))
        {
            return None;
        }
        let less = without(body, pointers.iter().map(String::as_str));
        match outcome(from, to, &less, nodes) {
            Outcome::Sent(places) => Some(Outcome::SentWithout(places, rivals)),
            _ => None,
        }
    });
    alone.unwrap_or(first)
}

fn others(from: Dialect) -> impl Iterator<Item = Dialect> {
    Dialect::ALL.into_iter().filter(move |to| *to != from)
}

fn rows(from: Dialect) -> Vec<Row> {
    let body = &request(from);
    let nodes = nodes_of(from, body);
    let mut named: Vec<(String, bool, Vec<&Node>)> = Vec::new();
    for node in nodes.iter().filter(|node| node.is_leaf) {
        let mut path = label(body, &node.pointer);
        let name = node.pointer.rsplit('/').next().unwrap();
        let is_kind = KINDS.contains(&name);
        if is_kind {
            path.truncate(path.rfind('.').unwrap_or_default());
        }
        // This type is a placeholder for types that nobody knows yet.
        let (outer, _) = node.pointer.rsplit_once('/').unwrap();
        let is_unknown = body.pointer(outer).unwrap()["type"] == "something_new";
        if path.is_empty() || is_unknown {
            continue;
        }
        match named
            .iter_mut()
            .find(|it| (&it.0, it.1) == (&path, is_kind))
        {
            Some((_, _, nodes)) => nodes.push(node),
            None => named.push((path, is_kind, vec![node])),
        }
    }
    let rows = named.into_iter().map(|(path, is_kind, nodes)| Row {
        path,
        is_kind,
        outcomes: others(from)
            .map(|to| best_outcome(from, to, body, &nodes))
            .collect(),
    });
    shown(&rows.collect::<Vec<_>>())
}

fn is_dropped(row: &Row) -> bool {
    row.outcomes.iter().all(|it| *it == Outcome::Dropped)
}

/// The rows of the page. An object that no upstream receives is one row. Any other object is
/// represented by the rows of its members.
fn shown(rows: &[Row]) -> Vec<Row> {
    let inside =
        |outer: &str| -> Vec<&Row> { rows.iter().filter(|row| covers(outer, &row.path)).collect() };
    let is_whole = |outer: &str| inside(outer).into_iter().all(is_dropped);
    let mut paths: Vec<&str> = Vec::new();
    for row in rows {
        let path = row.path.as_str();
        let cuts = path.match_indices(['.', '[']).map(|(at, _)| &path[..at]);
        let outer = cuts.chain([path]).find(|outer| is_whole(outer));
        let is_listed = row.is_kind && outer.is_none();
        let path = outer.unwrap_or(path);
        if !is_listed && !paths.contains(&path) {
            paths.push(path);
        }
    }
    let all: Vec<_> = paths
        .into_iter()
        .map(|path| {
            let same = rows.iter().find(|row| row.path == path && !row.is_kind);
            let row = same.unwrap_or(inside(path)[0]);
            (path.to_owned(), row.outcomes.clone())
        })
        .collect();
    let all = all.into_iter().map(|(path, outcomes)| Row {
        path,
        is_kind: false,
        outcomes,
    });
    all.collect()
}

/// The places as a cell shows them. Members inside a schema or arguments come from the fixture and
/// are cut off.
fn places(path: &str, places: &BTreeSet<String>) -> String {
    let mut words: Vec<String> = Vec::new();
    for place in places {
        let place = place.strip_suffix(".x").unwrap_or(place);
        let place = place.strip_suffix(".properties").unwrap_or(place);
        let word = match place {
            place if place == path => "same".to_owned(),
            place => format!("`{place}`"),
        };
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words.join(", ")
}

fn cell(path: &str, outcome: &Outcome) -> String {
    match outcome {
        Outcome::Sent(sent) => places(path, sent),
        Outcome::SentPartly(sent) => format!("{}, or dropped", places(path, sent)),
        Outcome::SentWithout(sent, rivals) => {
            let rivals: Vec<_> = rivals.iter().map(|it| format!("`{it}`")).collect();
            format!("{}, without {}", places(path, sent), rivals.join(" and "))
        }
        Outcome::SentBack(sent) => format!("{}, if from this gateway", places(path, sent)),
        Outcome::Linked => "sent".to_owned(),
        Outcome::Dropped => "dropped".to_owned(),
        Outcome::Implied => "implied".to_owned(),
    }
}

fn requests(page: &mut String) {
    for from in Dialect::ALL {
        writeln!(page, "\n## Requests of {}\n", title(from)).unwrap();
        page.push_str(&heading("member", others(from)));
        let rows = rows(from);
        assert!(rows.len() > 20, "{from} has too few members");
        for row in rows {
            let cells = row.outcomes.iter().map(|it| cell(&row.path, it));
            let cells: Vec<_> = cells.collect();
            writeln!(page, "| `{}` | {} |", row.path, cells.join(" | ")).unwrap();
        }
    }
}

#[test]
fn the_page_of_conversions_is_current() {
    let mut page = HEAD.to_owned();
    requests(&mut page);
    answers::write(&mut page);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/conversion.md");
    if std::env::var_os("TOLLGATE_WRITE_CONVERSION").is_some() {
        std::fs::write(&file, &page).unwrap();
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        found == page,
        "docs/conversion.md is out of date; TOLLGATE_WRITE_CONVERSION=1 writes it"
    );
}
