//! Amounts in JSON: credits as decimal strings, and the same amounts in micro-credits.

use ledger::Micro;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::openapi::schema::SchemaType;
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// Credits as a decimal text, such as `"12.5"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Credits(pub(crate) Micro);

impl Serialize for Credits {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Credits {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let refused = || {
            D::Error::custom(
                "an amount is a text of credits with at most 6 decimals, such as \"12.5\"",
            )
        };
        let text = <std::borrow::Cow<'_, str>>::deserialize(from).map_err(|_| refused())?;
        text.parse().map(Self).map_err(|_| refused())
    }
}

impl PartialSchema for Credits {
    fn schema() -> RefOr<Schema> {
        text_schema(r"^-?\d+(\.\d{1,6})?$", "12.5")
    }
}

impl ToSchema for Credits {}

/// Whole micro-credits as a string, such as `"12500000"`. In answers it accompanies each [`Credits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MicroText(pub(crate) Micro);

impl Serialize for MicroText {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&self.0.get())
    }
}

impl PartialSchema for MicroText {
    fn schema() -> RefOr<Schema> {
        text_schema(r"^-?\d+$", "12500000")
    }
}

impl ToSchema for MicroText {}

fn text_schema(pattern: &str, example: &str) -> RefOr<Schema> {
    let schema = ObjectBuilder::new()
        .schema_type(SchemaType::Type(Type::String))
        .pattern(Some(pattern))
        .examples([serde_json::json!(example)]);
    RefOr::T(Schema::Object(schema.build()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_texts_on_the_wire() {
        let amount: Credits = serde_json::from_str("\"12.5\"").unwrap();
        assert_eq!(amount.0, Micro::new(12_500_000));
        assert_eq!(serde_json::to_string(&amount).unwrap(), "\"12.5\"");
        assert_eq!(
            serde_json::to_string(&MicroText(amount.0)).unwrap(),
            "\"12500000\""
        );
        for text in [
            "12.5",
            "\"1e3\"",
            "\"0.0000001\"",
            "\"\"",
            "null",
            "\"99999999999999999\"",
        ] {
            assert!(serde_json::from_str::<Credits>(text).is_err(), "{text}");
        }
    }
}
