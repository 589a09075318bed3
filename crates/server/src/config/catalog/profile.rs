//! `profile = { … }`: the capabilities of a model.

use protocol::{Kind, Profile};
use serde::de::{Deserialize, Deserializer, Error as _, Visitor};
use serde_json::{Map, Value};
use toml::de::DeValue;

use super::protocols;
use crate::config::document::{Section, kind_of, nearest};

/// The value of `base` that selects the profile from the catalog of known models.
const CATALOG: &str = "catalog";

/// Reads a profile member by member, to report each problem at its place.
pub(crate) fn read_profile(
    section: &mut Section<'_, '_, '_>,
    key: &'static str,
    kind: Option<Kind>,
    known: Option<&Profile>,
) -> Option<Profile> {
    let Some(raw) = section.raw(key) else {
        return Some(known.cloned().unwrap_or_default());
    };
    let path = section.path_of(key);
    let Some(table) = raw.get_ref().as_table() else {
        let message = format!("must be a table, found {}", kind_of(raw.get_ref()));
        section.log.report(Some(raw.span()), path, message);
        return None;
    };
    let mut whole = Map::new();
    let mut faults = false;
    for (name, value) in table {
        let name = name.get_ref().as_ref();
        let path = format!("{path}.{name}");
        if name == "base" && value.get_ref().as_str() == Some(CATALOG) {
            if let Some(Ok(Value::Object(members))) = known.map(serde_json::to_value) {
                // Members of the entry override those of the base.
                for (name, value) in members {
                    whole.entry(name).or_insert(value);
                }
            } else {
                faults = true;
                let message = "the catalog does not know this model";
                section.log.report(Some(value.span()), path, message);
            }
            continue;
        }
        let member = [(name.to_owned(), json_of(value.get_ref()))];
        match Profile::deserialize(Value::Object(member.clone().into_iter().collect())) {
            Ok(profile) => {
                whole.extend(member);
                if let Some((base, kind)) = profile.base.zip(kind)
                    && protocols::kind_of(base) != kind
                {
                    let (given, wanted) = (protocols::kind_of(base).as_str(), kind.as_str());
                    let message = format!("describes {given} models; this one is of kind {wanted}");
                    section.log.report(Some(value.span()), path, message);
                }
            }
            Err(error) => {
                faults = true;
                section
                    .log
                    .report(Some(value.span()), path, fault(name, &error));
            }
        }
    }
    if faults {
        return None;
    }
    Profile::deserialize(Value::Object(whole)).ok()
}

fn fault(name: &str, error: &serde_json::Error) -> String {
    let known = fields_of::<Profile>();
    if known.contains(&name) {
        return error.to_string();
    }
    match nearest(name, known.iter().copied()) {
        Some(meant) => format!("unknown capability; did you mean `{meant}`?"),
        None => format!("unknown capability; known here: {}", known.join(", ")),
    }
}

/// Converts a value to JSON, from which `Profile` is deserialized.
pub(crate) fn json_of(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Integer(digits) => i64::from_str_radix(digits.as_str(), digits.radix())
            .map_or_else(|_| Value::from(digits.as_str()), Value::from),
        // A fraction becomes a string, never a JSON number, so that no float is read.
        DeValue::Float(digits) => Value::from(digits.as_str()),
        DeValue::Boolean(flag) => Value::from(*flag),
        DeValue::Datetime(time) => Value::from(time.to_string()),
        DeValue::Array(items) => items.iter().map(|item| json_of(item.get_ref())).collect(),
        DeValue::Table(table) => table
            .iter()
            .map(|(key, value)| (key.get_ref().as_ref().to_owned(), json_of(value.get_ref())))
            .collect(),
    }
}

/// The member names of a struct, as its `Deserialize` passes them to serde.
fn fields_of<'de, T: Deserialize<'de>>() -> &'static [&'static str] {
    struct Ask<'a>(&'a mut &'static [&'static str]);

    impl<'de> Deserializer<'de> for Ask<'_> {
        type Error = serde::de::value::Error;

        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
            Err(Self::Error::custom("only the names are asked for"))
        }

        fn deserialize_struct<V: Visitor<'de>>(
            self,
            _: &'static str,
            fields: &'static [&'static str],
            visitor: V,
        ) -> Result<V::Value, Self::Error> {
            *self.0 = fields;
            self.deserialize_any(visitor)
        }

        serde::forward_to_deserialize_any! {
            bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit
            unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
        }
    }

    let mut fields: &'static [&'static str] = &[];
    // Deserializing always fails, after it has recorded the names.
    let _ = T::deserialize(Ask(&mut fields));
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_a_profile_are_known() {
        let fields = fields_of::<Profile>();
        for name in [
            "base",
            "context_tokens",
            "max_output_tokens",
            "references_max",
        ] {
            assert!(fields.contains(&name), "{name}");
        }
    }
}
