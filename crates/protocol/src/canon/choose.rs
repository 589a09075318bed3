//! Decisions about tools and sampling that several request writers share.

use std::collections::BTreeSet;

use serde_json::Number;

use super::dropped::Dropped;
use super::field::Field;
use super::request::{Request, ToolChoice};
use crate::failure::Failure;
use crate::profile::Profile;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolCalling {
    May,
    Must,
    MustNot,
}

/// The tool choice and the names that it is restricted to. `None` if tools may be called freely,
/// which is the default. A choice in a request without tools is dropped. A choice of an undeclared
/// tool is refused, because no upstream could honor it.
pub(crate) fn choose<'a>(
    request: &'a Request,
    dropped: &mut Dropped,
) -> Result<Option<(ToolCalling, Vec<&'a str>)>, Failure> {
    let Some(choice) = &request.tool_choice else {
        return Ok(None);
    };
    let (calling, names) = match choice {
        ToolChoice::Auto => return Ok(None),
        ToolChoice::None => (ToolCalling::MustNot, Vec::new()),
        ToolChoice::Required => (ToolCalling::Must, Vec::new()),
        ToolChoice::Named(name) => (ToolCalling::Must, vec![name.as_str()]),
        ToolChoice::Allowed { names, required } => {
            let names = names.iter().map(String::as_str).collect();
            let calling = if *required {
                ToolCalling::Must
            } else {
                ToolCalling::May
            };
            (calling, names)
        }
    };
    let declared: BTreeSet<&str> = request
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    if let Some(name) = names.iter().find(|name| !declared.contains(**name)) {
        let message = format!("The tool `{name}` is to be called but not declared.");
        let param = Field::ToolChoice.name_in(dropped.client_dialect());
        return Err(Failure::invalid(message).param(param));
    }
    if request.tools.is_empty() {
        if calling != ToolCalling::MustNot {
            dropped.field(Field::ToolChoice);
        }
        return Ok(None);
    }
    Ok(Some((calling, names)))
}

/// A sampling parameter, unless the model refuses it. A value that equals the default is left out
/// without being reported.
pub fn accepted_sampling<'a>(
    value: Option<&'a Number>,
    field: Field,
    profile: &Profile,
    dropped: &mut Dropped,
) -> Option<&'a Number> {
    let value = value?;
    if profile.fixed_sampling != Some(true) {
        return Some(value);
    }
    if !["1", "1.0"].contains(&value.to_string().as_str()) {
        dropped.field(field);
    }
    None
}

pub(crate) fn is_usual_verbosity(request: &Request) -> bool {
    let verbosity = request.verbosity.as_deref();
    verbosity.is_none_or(|verbosity| verbosity == "medium")
}

/// Whether a number is zero, in any notation.
pub(crate) fn is_zero(number: &Number) -> bool {
    ["0", "-0", "0.0", "-0.0"].contains(&number.to_string().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canon::{Path, Tool};
    use crate::dialect::Dialect;

    fn request(choice: ToolChoice, tools: &[&str]) -> Request {
        let tool = |name: &&str| Tool {
            path: Path::default(),
            name: (*name).to_owned(),
            description: None,
            parameters: None,
            strict: None,
        };
        Request {
            tool_choice: Some(choice),
            tools: tools.iter().map(tool).collect(),
            ..Request::default()
        }
    }

    #[test]
    fn choices_are_bound_to_declared_tools() {
        let named = |name: &str| ToolChoice::Named(name.to_owned());
        let allowed = |required| ToolChoice::Allowed {
            names: vec!["f".to_owned(), "g".to_owned()],
            required,
        };
        let both: &[&str] = &["f", "g"];
        for (choice, tools, chosen, listed) in [
            (ToolChoice::Auto, both, None, None),
            (
                ToolChoice::None,
                both,
                Some((ToolCalling::MustNot, vec![])),
                None,
            ),
            (
                ToolChoice::Required,
                both,
                Some((ToolCalling::Must, vec![])),
                None,
            ),
            (named("g"), both, Some((ToolCalling::Must, vec!["g"])), None),
            (
                allowed(true),
                both,
                Some((ToolCalling::Must, vec!["f", "g"])),
                None,
            ),
            (
                allowed(false),
                both,
                Some((ToolCalling::May, vec!["f", "g"])),
                None,
            ),
            (ToolChoice::Required, &[], None, Some("tool_choice")),
            (ToolChoice::None, &[], None, None),
        ] {
            let request = request(choice, tools);
            let mut dropped = Dropped::new(Dialect::Chat);
            assert_eq!(choose(&request, &mut dropped), Ok(chosen));
            assert_eq!(dropped.header().as_deref(), listed);
        }
        for (choice, tools) in [
            (named("h"), both),
            (allowed(false), &["f"]),
            (named("f"), &[]),
        ] {
            let request = request(choice, tools);
            let failure = choose(&request, &mut Dropped::new(Dialect::Generate)).unwrap_err();
            assert_eq!(
                failure.param.as_deref(),
                Some("toolConfig.functionCallingConfig")
            );
        }
    }

    #[test]
    fn models_with_fixed_sampling_receive_no_sampling_members() {
        let free = Profile::default();
        let fixed = Profile {
            fixed_sampling: Some(true),
            ..Profile::default()
        };
        for (value, profile, sent, listed) in [
            ("0.5", &free, true, false),
            ("1", &free, true, false),
            ("0.5", &fixed, false, true),
            ("1", &fixed, false, false),
            ("1.0", &fixed, false, false),
        ] {
            let value: Number = value.parse().unwrap();
            let mut dropped = Dropped::new(Dialect::Chat);
            let found = accepted_sampling(Some(&value), Field::TopP, profile, &mut dropped);
            assert_eq!(found.is_some(), sent);
            assert_eq!(!dropped.is_empty(), listed);
        }
    }
}
