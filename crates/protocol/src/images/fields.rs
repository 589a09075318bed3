//! Reads the members of a request from JSON or from a form.

use std::borrow::Cow;

use crate::failure::Failure;
use crate::guard;
use crate::guard::form_field;
use crate::json::{Cursor, Integer, Members};
use crate::multipart::{Form, Part};
use crate::tool::Tools;

/// Members by name. An explicit `null` is absent.
pub(super) enum Fields<'a> {
    Json(Members<'a>),
    Form(&'a Form),
}

impl<'a> Fields<'a> {
    pub(super) fn text(&self, name: &str) -> Result<Option<Cow<'a, str>>, Failure> {
        match self {
            Self::Json(members) => members.string(name),
            Self::Form(form) => Ok(form.only_part(name)?.map(Part::text)),
        }
    }

    /// An integer of any size and sign.
    pub(super) fn integer(&self, name: &str) -> Result<Option<Integer>, Failure> {
        match self {
            Self::Json(members) => members.integer(name),
            Self::Form(form) => form.only_part(name)?.map(Part::integer).transpose(),
        }
    }

    pub(super) fn boolean(&self, name: &str) -> Result<Option<bool>, Failure> {
        match self {
            Self::Json(members) => members.boolean(name),
            Self::Form(form) => form.only_part(name)?.map(Part::boolean).transpose(),
        }
    }

    /// Whether a member has a value.
    pub(super) fn is_set(&self, name: &str) -> Result<bool, Failure> {
        match self {
            Self::Json(members) => Ok(members.get(name)?.is_some()),
            Self::Form(form) => Ok(form.only_part(name)?.is_some()),
        }
    }

    /// The built-in tools that the request offers. In a form, their list is the text of a field.
    pub(super) fn tools(&self) -> Result<Tools, Failure> {
        match self {
            Self::Json(members) => Ok(Tools::by_type(members.get("tools")?)),
            Self::Form(form) => {
                let text = form.only_part("tools")?.map(Part::text).unwrap_or_default();
                Ok(Tools::by_type(Cursor::new(&text).value().ok()))
            }
        }
    }

    /// Refuses routing controls and paid tiers.
    pub(super) fn guard(&self) -> Result<(), Failure> {
        match self {
            Self::Json(members) => {
                guard::routing(members)?;
                guard::service_tier(members)
            }
            Self::Form(form) => {
                for part in &form.parts {
                    // The content of a file is not checked, but its field name is.
                    if part.file_name.is_some() {
                        form_field::base(&part.name)?;
                    } else {
                        form_field::check(&part.name, &part.text())?;
                    }
                }
                Ok(())
            }
        }
    }
}
