//! Creates an instance of a schema.

use super::check::{bound, resolve, satisfies, types};
use super::{number, text};
use crate::model::prompt_values::PromptValues;
use serde_json::{Map, Value};

/// Below this depth, `Optional::All` fills only required members, and lists are as short as possible. Otherwise,
/// filling a recursive schema would not end.
const EAGER_DEPTH_MAX: usize = 6;
const DEPTH_MAX: usize = 40;
/// The maximum number of values in an instance.
const VALUES_MAX: usize = 2000;
/// The maximum number of `allOf` parts, including nested ones.
const PARTS_MAX: usize = 200;
const ITEMS_MAX: u64 = 1000;
/// The length of a list whose schema sets no limits.
const ITEMS_USUAL: u64 = 2;

/// The optional members that are filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::model) enum Optional {
    All,
    /// Only those for which the prompt has a value.
    Named,
}

pub(in crate::model) fn fill(
    schema: &Value,
    optional: Optional,
    from_prompt: &mut PromptValues<'_>,
) -> Value {
    let mut filler = Filler {
        root: schema,
        optional,
        from_prompt,
        left: VALUES_MAX,
    };
    filler.value("", schema, 0)
}

struct Filler<'s, 'e, 't> {
    root: &'s Value,
    optional: Optional,
    from_prompt: &'e mut PromptValues<'t>,
    left: usize,
}

impl Filler<'_, '_, '_> {
    fn value(&mut self, name: &str, schema: &Value, depth: usize) -> Value {
        self.left = self.left.saturating_sub(1);
        if depth > DEPTH_MAX || self.left == 0 {
            return Value::Null;
        }
        let root = self.root;
        let Some(schema) = resolve(schema, root) else {
            return Value::Null;
        };
        let Some(rules) = schema.as_object() else {
            return Value::String(format!("example {name}"));
        };
        // The value in the prompt's JSON object is preferred if it fits.
        if let Some(given) = self.from_prompt.value_of(name)
            && satisfies(given, schema, root)
        {
            return given.clone();
        }
        if let Some(only) = rules.get("const") {
            return only.clone();
        }
        if let Some(all) = rules.get("enum").and_then(Value::as_array) {
            return self.one_of(all);
        }
        if rules.contains_key("allOf") {
            let mut left = PARTS_MAX;
            let merged = merged(rules, root, &mut left);
            return self.value(name, &Value::Object(merged), depth + 1);
        }
        if let Some(branches) = ["anyOf", "oneOf"]
            .iter()
            .find_map(|word| rules.get(*word)?.as_array())
        {
            return self.branch(name, rules, branches, depth);
        }
        self.of_type(name, schema, rules, depth)
    }

    /// The value that the prompt mentions, or else the first value.
    fn one_of(&mut self, all: &[Value]) -> Value {
        let mentioned = all
            .iter()
            .filter_map(|value| Some((self.from_prompt.position(value.as_str()?)?, value)))
            .min_by_key(|(at, _)| *at)
            .map(|(_, value)| value);
        mentioned.or(all.first()).cloned().unwrap_or_default()
    }

    /// Fills the first suitable branch. Down to `EAGER_DEPTH_MAX`, branches that do not allow null are tried first.
    /// Deeper, branches that allow null are tried first, and then branches without nesting.
    fn branch(
        &mut self,
        name: &str,
        rules: &Map<String, Value>,
        branches: &[Value],
        depth: usize,
    ) -> Value {
        let root = self.root;
        let plainness = |branch: &&Value| {
            let null = types(branch).contains(&"null");
            let nested = branch.get("$ref").is_some() || types(branch).contains(&"object");
            match (depth > EAGER_DEPTH_MAX, null, nested) {
                (true, true, _) | (false, false, _) => 0,
                (true, false, false) => 1,
                _ => 2,
            }
        };
        let mut order: Vec<_> = branches.iter().collect();
        order.sort_by_key(plainness);
        // Keywords beside `anyOf` or `oneOf` apply to every branch.
        let mut beside = rules.clone();
        beside.remove("anyOf");
        beside.remove("oneOf");
        for branch in order {
            if self.left == 0 {
                break;
            }
            let schema = match (beside.is_empty(), branch.as_object()) {
                (false, Some(_)) => {
                    let mut both = beside.clone();
                    if let Some(branch) = resolve(branch, root).and_then(Value::as_object) {
                        merge_into(&mut both, branch);
                    }
                    Value::Object(both)
                }
                _ => branch.clone(),
            };
            let value = self.value(name, &schema, depth + 1);
            if satisfies(&value, &schema, root) || branches.len() == 1 {
                return value;
            }
        }
        Value::Null
    }

    fn of_type(
        &mut self,
        name: &str,
        schema: &Value,
        rules: &Map<String, Value>,
        depth: usize,
    ) -> Value {
        let kinds = types(schema);
        let kind = if depth > EAGER_DEPTH_MAX && kinds.contains(&"null") {
            Some("null")
        } else {
            kinds
                .iter()
                .copied()
                .find(|kind| *kind != "null")
                .or(kinds.first().copied())
        };
        let kind = kind.unwrap_or_else(|| kind_by_rules(rules));
        match kind {
            "null" => Value::Null,
            "boolean" => Value::Bool(self.flag(name)),
            "integer" => self
                .named_number(name, schema)
                .unwrap_or_else(|| number::integer(rules, self.from_prompt)),
            "number" => self
                .named_number(name, schema)
                .unwrap_or_else(|| number::number(rules, self.from_prompt)),
            "array" => self.list(name, rules, depth),
            "object" => self.object(rules, depth),
            _ => Value::String(text::text(name, rules, self.from_prompt)),
        }
    }

    fn flag(&self, name: &str) -> bool {
        !matches!(
            self.from_prompt.text_of(name),
            Some("false" | "no" | "off" | "False" | "No")
        )
    }

    fn named_number(&self, name: &str, schema: &Value) -> Option<Value> {
        let value = serde_json::from_str(self.from_prompt.text_of(name)?).ok()?;
        satisfies(&value, schema, self.root).then_some(value)
    }

    fn list(&mut self, name: &str, rules: &Map<String, Value>, depth: usize) -> Value {
        let min = bound(rules, "minItems").unwrap_or(0).min(ITEMS_MAX);
        let max = bound(rules, "maxItems").unwrap_or(u64::MAX);
        // A list of one item has only unique items.
        let usual = match rules.get("uniqueItems") {
            _ if depth > EAGER_DEPTH_MAX => 0,
            Some(Value::Bool(true)) => 1,
            _ => ITEMS_USUAL,
        };
        let count = usize::try_from(usual.max(min).min(max)).unwrap_or_default();
        let first = rules.get("prefixItems").and_then(Value::as_array);
        let first: &[Value] = first.map_or(&[], Vec::as_slice);
        let more = rules.get("items");
        let any = Value::Object(Map::new());
        let mut items: Vec<Value> = Vec::new();
        let count = if first.is_empty() {
            count
        } else {
            count.max(first.len())
        };
        for index in 0..count {
            let Some(schema) = first
                .get(index)
                .or(more)
                .or(first.is_empty().then_some(&any))
            else {
                break;
            };
            if self.left == 0 || schema == &Value::Bool(false) {
                break;
            }
            items.push(self.value(name, schema, depth + 1));
        }
        Value::Array(items)
    }

    fn object(&mut self, rules: &Map<String, Value>, depth: usize) -> Value {
        let none = Map::new();
        let known = rules
            .get("properties")
            .and_then(Value::as_object)
            .unwrap_or(&none);
        let required: Vec<&str> = rules
            .get("required")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let more = rules
            .get("additionalProperties")
            .cloned()
            .unwrap_or_default();
        let mut members = Map::new();
        // Required members come first, so that they get the first values of the prompt.
        for name in &required {
            let schema = known.get(*name).unwrap_or(&more);
            let value = self.value(name, schema, depth + 1);
            members.insert((*name).to_owned(), value);
        }
        for (name, schema) in known {
            let wanted = match self.optional {
                Optional::All => depth <= EAGER_DEPTH_MAX,
                Optional::Named => self.is_named(name, schema),
            };
            if wanted && self.left > 0 && !members.contains_key(name) {
                let value = self.value(name, schema, depth + 1);
                if satisfies(&value, schema, self.root) {
                    members.insert(name.clone(), value);
                }
            }
        }
        Value::Object(members)
    }

    /// Whether the prompt has a value for an optional member.
    fn is_named(&self, name: &str, schema: &Value) -> bool {
        let values = resolve(schema, self.root)
            .and_then(|schema| schema.get("enum"))
            .and_then(Value::as_array);
        self.from_prompt.value_of(name).is_some()
            || self.from_prompt.text_of(name).is_some()
            || values.is_some_and(|values| {
                values
                    .iter()
                    .filter_map(Value::as_str)
                    .any(|value| self.from_prompt.mentions(value))
            })
    }
}

/// The type of a schema without `type`, derived from its other keywords.
fn kind_by_rules(rules: &Map<String, Value>) -> &'static str {
    for (rule, kind) in [
        ("properties", "object"),
        ("required", "object"),
        ("additionalProperties", "object"),
        ("items", "array"),
        ("prefixItems", "array"),
        ("minimum", "number"),
        ("maximum", "number"),
    ] {
        if rules.contains_key(rule) {
            return kind;
        }
    }
    "string"
}

/// Merges a schema with the parts of its `allOf`.
fn merged(rules: &Map<String, Value>, root: &Value, left: &mut usize) -> Map<String, Value> {
    let mut whole = rules.clone();
    let Some(Value::Array(parts)) = whole.remove("allOf") else {
        return whole;
    };
    for part in &parts {
        *left = left.saturating_sub(1);
        if *left == 0 {
            break;
        }
        if let Some(part) = resolve(part, root).and_then(Value::as_object) {
            merge_into(&mut whole, &merged(part, root, left));
        }
    }
    whole
}

fn merge_into(whole: &mut Map<String, Value>, part: &Map<String, Value>) {
    for (rule, value) in part {
        match (whole.get_mut(rule), value) {
            (Some(Value::Object(known)), Value::Object(more)) if rule == "properties" => {
                known.extend(more.clone());
            }
            (Some(Value::Array(known)), Value::Array(more)) if rule == "required" => {
                known.extend(more.iter().cloned());
            }
            _ => {
                whole.insert(rule.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn filled(schema: &Value, optional: Optional, prompt: &str) -> Value {
        fill(schema, optional, &mut PromptValues::new(prompt))
    }

    #[test]
    fn instances_satisfy_their_schemas() {
        let tree = json!({
            "$defs": {"node": {"type": "object", "properties": {
                "label": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                "parent": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}
            }, "required": ["label", "children", "parent"], "additionalProperties": false}},
            "$ref": "#/$defs/node"
        });
        for schema in [
            tree,
            json!({"type": "object", "properties": {}}),
            json!({"type": "object", "properties": {
                "steps": {"type": "array", "minItems": 3, "items": {"type": "object", "properties": {
                    "explanation": {"type": "string", "minLength": 30},
                    "output": {"type": ["string", "null"]}
                }, "required": ["explanation", "output"], "additionalProperties": false}},
                "kind": {"type": "string", "enum": ["sum", "product"]},
                "ratio": {"type": "number", "minimum": 0.1, "maximum": 0.5},
                "count": {"type": "integer", "minimum": 12},
                "when": {"type": "string", "format": "date-time"},
                "flag": {"type": "boolean"},
                "pair": {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": false},
                "tags": {"type": "array", "uniqueItems": true, "items": {"type": "string"}},
                "map": {"type": "object", "additionalProperties": {"type": "integer"}},
                "const": {"const": 42},
                "nothing": {"type": "null"}
            }, "required": ["steps", "kind", "map"], "additionalProperties": false}),
            json!({"allOf": [
                {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
                {"properties": {"b": {"type": "string"}}, "required": ["b"]}
            ]}),
            json!({"type": "object", "properties": {"x": {"type": "integer"}},
                   "anyOf": [{"required": ["x"]}, {"required": ["y"]}]}),
            json!({"oneOf": [{"type": "object", "properties": {"k": {"const": "a"}}, "required": ["k"]}]}),
            json!(true),
            json!({}),
        ] {
            for optional in [Optional::All, Optional::Named] {
                let value = filled(&schema, optional, "Weather in Paris, 3 days, product");
                assert!(satisfies(&value, &schema, &schema), "{schema}\n{value}");
            }
        }
    }

    #[test]
    fn values_come_from_the_prompt() {
        let schema = json!({"type": "object", "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer"},
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
            "note": {"type": "string"}
        }, "required": ["city"]});
        for (prompt, expected) in [
            ("What is the weather in Paris?", json!({"city": "Paris"})),
            (
                "Weather for city=Rome in fahrenheit",
                json!({"city": "Rome", "unit": "fahrenheit"}),
            ),
            (
                "call it with {\"city\": \"Oslo\", \"days\": 4}",
                json!({"city": "Oslo", "days": 4}),
            ),
            (
                "city: Bonn, days: 2, note is \"hurry\"",
                json!({"city": "Bonn", "days": 2, "note": "hurry"}),
            ),
        ] {
            assert_eq!(
                filled(&schema, Optional::Named, prompt),
                expected,
                "{prompt}"
            );
        }
        let sum = json!({"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]});
        assert_eq!(
            filled(&sum, Optional::Named, "Add 2 and 3.5"),
            json!({"a": 2, "b": 3.5})
        );
    }

    #[test]
    fn hostile_schemas_end() {
        let mut deep = json!({"type": "string"});
        for _ in 0..100 {
            deep = json!({"type": "array", "items": deep, "minItems": 2});
        }
        for schema in [
            deep,
            json!({"$ref": "#"}),
            json!({"$ref": "#/nowhere"}),
            json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}]}),
            json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}, {"$ref": "#"}]}),
            json!({"anyOf": [{"$ref": "#"}]}),
            json!({"anyOf": []}),
            json!({"enum": []}),
            json!({"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#"}}}),
            json!({"type": "array", "minItems": 18_446_744_073_709_551_615_u64, "items": {}}),
            json!({"type": "string", "minLength": 18_446_744_073_709_551_615_u64}),
            json!({"type": 7, "properties": 3, "required": "x"}),
            json!(null),
        ] {
            filled(&schema, Optional::All, "hello");
        }
    }
}
