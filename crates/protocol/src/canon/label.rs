//! Writes the name and description of an output format into its schema, for dialects that have no
//! members for them.

use std::borrow::Cow;

use super::dropped::Dropped;
use super::field::Field;
use crate::json::{Members, Spelling, write_string};

/// Adds the format's name to the schema as its title, and the format's description as its description. If the
/// schema has a different value, that value is kept, and the format's value is reported as dropped.
pub(crate) fn label_schema<'s>(
    schema: &'s str,
    name: Option<&str>,
    description: Option<&str>,
    dropped: &mut Dropped,
) -> Cow<'s, str> {
    let labels = [
        ("title", name, Field::FormatName),
        ("description", description, Field::FormatDescription),
    ];
    let members = Members::read(schema.as_bytes(), Spelling::One).ok();
    let mut added = Vec::new();
    for (member, label, field) in labels {
        let (Some(label), Some(members)) = (label, &members) else {
            continue;
        };
        match members.iter().find(|known| known.name == member) {
            None => {
                added.push(if added.is_empty() { b'{' } else { b',' });
                write_string(&mut added, member);
                added.push(b':');
                write_string(&mut added, label);
            }
            Some(own) if own.value.string().is_some_and(|own| own.is(label)) => {}
            Some(_) => dropped.field(field),
        }
    }
    let rest = schema.trim_start().strip_prefix('{');
    let (Some(rest), false) = (rest, added.is_empty()) else {
        return Cow::Borrowed(schema);
    };
    let is_empty = rest.trim_start().starts_with('}');
    let comma = if is_empty { "" } else { "," };
    let added = String::from_utf8_lossy(&added);
    Cow::Owned(format!("{added}{comma}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect;

    #[test]
    fn a_schema_gets_the_name_and_description_of_its_format() {
        for (schema, expected, listed) in [
            ("{}", r#"{"title":"N","description":"\"D"}"#, None),
            (
                r#" { "type":"object"}"#,
                r#"{"title":"N","description":"\"D", "type":"object"}"#,
                None,
            ),
            (
                r#"{"title":"N","type":"object"}"#,
                r#"{"description":"\"D","title":"N","type":"object"}"#,
                None,
            ),
            (
                r#"{"description":"own","title":"other"}"#,
                r#"{"description":"own","title":"other"}"#,
                Some("text.format.name,text.format.description"),
            ),
        ] {
            let mut dropped = Dropped::new(Dialect::Responses);
            let found = label_schema(schema, Some("N"), Some("\"D"), &mut dropped);
            assert_eq!(found, expected);
            assert_eq!(dropped.header().as_deref(), listed);
            assert_eq!(label_schema(schema, None, None, &mut dropped), schema);
        }
    }
}
