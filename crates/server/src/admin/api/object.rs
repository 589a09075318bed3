//! A wrapper that deserializes its value from a JSON object only.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

/// A value that is deserialized from an object. A struct with a derived `Deserialize` also accepts an array of its
/// members in order, which the API description does not mention.
#[derive(Debug)]
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Members<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
            type Value = T;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(members))
            }
        }

        from.deserialize_map(Members(PhantomData)).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Pair {
        a: u8,
        b: Option<u8>,
    }

    #[test]
    fn only_an_object_is_read() {
        let read = |json| serde_json::from_str::<Object<Pair>>(json).map(|Object(pair)| pair);
        assert_eq!(read(r#"{"a":1}"#).unwrap(), Pair { a: 1, b: None });
        for json in ["[1]", "[1,2]", "null", "1", r#""a""#, r#"{"a":1,"c":2}"#] {
            assert!(read(json).is_err(), "{json}");
        }
    }
}
