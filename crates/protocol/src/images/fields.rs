//! The members of a request, whether they stand in JSON or in a form.

use std::borrow::Cow;

use crate::failure::Failure;
use crate::guard;
use crate::json::{Integer, Members};
use crate::multipart::Form;

/// Members by name; an explicit `null` is absent.
pub(super) enum Fields<'a> {
    Json(Members<'a>),
    Form(&'a Form),
}

impl<'a> Fields<'a> {
    /// A text.
    pub(super) fn text(&self, name: &str) -> Result<Option<Cow<'a, str>>, Failure> {
        match self {
            Self::Json(members) => members.string(name),
            Self::Form(form) => Self::field(form, name),
        }
    }

    /// A whole number of any size and sign.
    pub(super) fn integer(&self, name: &str) -> Result<Option<Integer>, Failure> {
        match self {
            Self::Json(members) => members.integer(name),
            Self::Form(form) => {
                let Some(text) = Self::field(form, name)? else {
                    return Ok(None);
                };
                let digits = text.trim();
                let negative = digits.starts_with('-');
                let bare = digits.trim_start_matches('-');
                let is_number = !bare.is_empty() && bare.bytes().all(|byte| byte.is_ascii_digit());
                match bare.parse() {
                    Ok(_) if negative => Ok(Some(Integer::Negative)),
                    Ok(value) => Ok(Some(Integer::Value(value))),
                    Err(_) if is_number => Ok(Some(Integer::Huge)),
                    Err(_) => Err(wrong(name, "an integer")),
                }
            }
        }
    }

    /// A boolean.
    pub(super) fn boolean(&self, name: &str) -> Result<Option<bool>, Failure> {
        match self {
            Self::Json(members) => members.boolean(name),
            Self::Form(form) => match Self::field(form, name)?.as_deref() {
                None => Ok(None),
                Some("true" | "True" | "1") => Ok(Some(true)),
                Some("false" | "False" | "0") => Ok(Some(false)),
                Some(_) => Err(wrong(name, "a boolean")),
            },
        }
    }

    /// Whether a member is there with a value.
    pub(super) fn is_set(&self, name: &str) -> Result<bool, Failure> {
        match self {
            Self::Json(members) => Ok(members.get(name)?.is_some()),
            Self::Form(form) => Ok(form.named(name).next().is_some()),
        }
    }

    /// Refuses what every endpoint refuses.
    pub(super) fn guard(&self) -> Result<(), Failure> {
        match self {
            Self::Json(members) => {
                guard::routing(members)?;
                guard::service_tier(members)
            }
            Self::Form(_) => {
                for name in guard::ROUTING {
                    if self.is_set(name)? {
                        return Err(Failure::routing_not_supported(name));
                    }
                }
                guard::free_tier("service_tier", self.text("service_tier")?.as_deref())
            }
        }
    }

    /// The one field of a name. Two would let two readers see two values.
    fn field(form: &'a Form, name: &str) -> Result<Option<Cow<'a, str>>, Failure> {
        let mut fields = form.parts.iter().filter(|part| part.name == name);
        let first = fields.next();
        if fields.next().is_some() {
            let message = format!("The field `{name}` occurs more than once.");
            return Err(Failure::invalid(message).param(name.to_owned()));
        }
        Ok(first.map(|part| part.text()))
    }
}

fn wrong(name: &str, kind: &str) -> Failure {
    Failure::invalid(format!("`{name}` must be {kind}.")).param(name.to_owned())
}
