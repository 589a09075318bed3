//! Compares the description with the endpoints that are served.

use std::collections::BTreeSet;

use http::Method;
use serde_json::Value;

use super::document::text;
use super::operations::{Body, OPERATIONS};
use crate::endpoint::{Endpoint, Target};

const COMMITTED: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/api/public.openapi.json"
);

#[test]
fn the_committed_description_is_current() {
    if std::env::var_os("TOLLGATE_WRITE_EXAMPLE").is_some() {
        std::fs::write(COMMITTED, text()).unwrap();
    }
    let committed = std::fs::read_to_string(COMMITTED).unwrap();
    let advice = "run with TOLLGATE_WRITE_EXAMPLE=1 to write it";
    assert!(committed == text(), "{COMMITTED} is out of date; {advice}");
}

/// The path with values for its placeholders.
fn sample(path: &str) -> String {
    path.replace("/media/{id}", "/media/0123456789abcdefghijklmnopqrstuv.mp4")
        .replace("files/{id}", "files/0123456789abcdefghijklmnopqrstuv")
        .replace("{model}", "maker%2Fm")
        .replace("{voice_id}", "eve")
        .replace("{id}", "018f0000-0000-7000-8000-00000000000a")
}

#[test]
fn every_operation_is_served_in_the_envelope_that_it_names() {
    for operation in OPERATIONS {
        let method: Method = operation.method.to_uppercase().parse().unwrap();
        let found = Target::find(&method, &sample(operation.path), true);
        let what = format!("{method} {}", operation.path);
        assert_ne!(found.endpoint, Endpoint::Unknown, "{what}");
        assert_eq!(found.family, operation.family, "{what}");
    }
}

/// Reads the templates from the source of the endpoints, so that a new endpoint cannot be forgotten.
#[test]
fn every_endpoint_is_described() {
    let source = include_str!("../endpoint/endpoints.rs");
    let (_, source) = source.split_once("fn template").unwrap();
    let literals = source.split('"').skip(1).step_by(2);
    let mut templates: BTreeSet<&str> = literals.filter(|text| text.starts_with('/')).collect();
    templates.insert("/v1/contents/generations/tasks");
    assert!(templates.len() > 30, "{templates:?}");
    // The files of the page are not part of the API.
    templates.remove("/page/{file}");
    for operation in OPERATIONS {
        let method: Method = operation.method.to_uppercase().parse().unwrap();
        let found = Target::find(&method, &sample(operation.path), true);
        templates.remove(found.endpoint.template());
    }
    assert_eq!(templates, BTreeSet::new());
}

#[test]
fn every_reference_leads_to_a_schema() {
    fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(members) => {
                found.extend(members.get("$ref").and_then(Value::as_str));
                members
                    .values()
                    .for_each(|member| references(member, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }
    let document: Value = serde_json::from_str(&text()).unwrap();
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(found.len() > 100);
    for reference in found {
        let schema = document.pointer(reference.trim_start_matches('#'));
        assert!(schema.is_some_and(Value::is_object), "{reference}");
    }
    // An error response is described once and referred to by all operations that share it.
    for operation in OPERATIONS {
        let responses = &document["paths"][operation.path][operation.method]["responses"];
        let refusals = responses.as_object().unwrap().iter();
        for (status, refusal) in refusals.filter(|(status, _)| *status >= &"400".to_owned()) {
            assert!(refusal["$ref"].is_string(), "{} {status}", operation.path);
        }
    }
    let ids: BTreeSet<String> = OPERATIONS
        .iter()
        .map(|it| format!("{} {}", it.method, it.path))
        .collect();
    assert_eq!(ids.len(), OPERATIONS.len(), "an operation is listed twice");
    let forms = OPERATIONS
        .iter()
        .filter(|it| matches!(it.body, Body::Form(_)));
    assert!(forms.count() > 1);
}
