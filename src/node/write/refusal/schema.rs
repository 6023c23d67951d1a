//! `$jsonSchema`: the rules that a value breaks.
//!
//! The real server tells of the rules in the order in which its parser takes up the keywords, whatever their order in the
//! schema. A keyword is asked by itself, with the neighbours that it means nothing without.

use super::Refusal;
use document::{Doc, Document, Value, ValueRef, doc};
use query::fields::Fields;
use query::matcher::ops::schema::Schema;
use query::matcher::pattern::Pattern;

/// The keywords that refuse a value, in the order in which they are told.
const KEYWORDS: [&str; 26] = [
    "pattern",
    "maxLength",
    "minLength",
    "multipleOf",
    "maximum",
    "minimum",
    "minItems",
    "maxItems",
    "uniqueItems",
    "items",
    "additionalItems",
    "encrypt",
    "properties",
    "additionalProperties",
    "patternProperties",
    "required",
    "minProperties",
    "maxProperties",
    "dependencies",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "enum",
    "bsonType",
    "type",
];

/// Whether a value satisfies a schema that was part of an accepted one.
fn accepts(schema: Doc<'_>, value: ValueRef<'_>) -> bool {
    Schema::parse(schema).is_ok_and(|s| s.accepts(value))
}

/// Whether the one keyword accepts the value.
fn obeys(rule: &Document, value: ValueRef<'_>) -> bool {
    accepts(rule.to_doc_buf().doc(), value)
}

/// The keyword alone, with what belongs to it.
fn rule(keyword: &str, argument: ValueRef<'_>, schema: Doc<'_>) -> Document {
    let mut rule = super::single(keyword, argument.to_value());
    let neighbour = match keyword {
        "minimum" => "exclusiveMinimum",
        "maximum" => "exclusiveMaximum",
        _ => return rule,
    };
    if let Some(v) = schema.get(neighbour) {
        rule.push(neighbour, v.to_value());
    }
    rule
}

/// Whether the schema has the field's name not among its properties, nor a pattern for it.
fn is_additional(properties: &Fields<'_>, patterns: &[(&str, Pattern, Doc<'_>)], name: &str) -> bool {
    properties.get(name).is_none()
        && !patterns.iter().any(|(_, pattern, _)| pattern.is_match(name.as_bytes()).unwrap_or(false))
}

fn patterns_of(schema: Doc<'_>) -> Vec<(&str, Pattern, Doc<'_>)> {
    let patterns = schema.get_document("patternProperties").into_iter().flat_map(Doc::iter);
    patterns
        .filter_map(|e| Some((e.name(), Pattern::compile(e.name(), "").ok()?, e.value().as_document()?)))
        .collect()
}

/// `title` and `description`, by which a schema says what it is for.
fn push_annotations(d: &mut Document, schema: Doc<'_>) {
    for name in ["title", "description"] {
        if let Some(text) = schema.get_str(name) {
            d.push(name, text);
        }
    }
}

fn documents(list: Doc<'_>) -> impl Iterator<Item = (usize, Doc<'_>)> {
    list.iter().enumerate().filter_map(|(i, e)| Some((i, e.value().as_document()?)))
}

impl Refusal<'_> {
    /// The whole schema, asked of the document.
    pub(super) fn schema(&self, schema: Doc<'_>, inverted: bool) -> Document {
        let value = ValueRef::Document(self.document);
        let types = ["bsonType", "type"].into_iter().find_map(|k| schema.element(k));
        if !inverted && types.is_some_and(|e| !obeys(&rule(e.name(), e.value(), schema), value)) {
            let specified = doc! { "$jsonSchema": schema.to_document() };
            return self.start("$jsonSchema", &specified, "expression always evaluates to false");
        }
        let mut d = doc! { "operatorName": "$jsonSchema" };
        push_annotations(&mut d, schema);
        match inverted {
            true => d.push("reason", "schema matched"),
            false => d.push("schemaRulesNotSatisfied", self.rules(schema, value)),
        }
        d
    }

    /// The rules of the schema that the value breaks; none exactly when it breaks none.
    fn rules(&self, schema: Doc<'_>, value: ValueRef<'_>) -> Vec<Document> {
        KEYWORDS
            .into_iter()
            .filter_map(|keyword| self.broken(keyword, schema.get(keyword)?, schema, value))
            .collect()
    }

    fn broken(
        &self,
        keyword: &str,
        argument: ValueRef<'_>,
        schema: Doc<'_>,
        value: ValueRef<'_>,
    ) -> Option<Document> {
        match (keyword, argument, value) {
            ("items" | "additionalItems", _, ValueRef::Array(items)) => {
                self.items(keyword, argument, schema, items)
            }
            ("properties", ValueRef::Document(properties), ValueRef::Document(d)) => {
                self.properties(properties, d)
            }
            ("additionalProperties", _, ValueRef::Document(d)) => self.additional(argument, schema, d),
            ("patternProperties", _, ValueRef::Document(d)) => self.patterns(schema, d),
            ("required", ValueRef::Array(names), ValueRef::Document(d)) => self.required(names, d),
            ("dependencies", ValueRef::Document(rules), ValueRef::Document(d)) => self.dependencies(rules, d),
            ("items" | "additionalItems" | "properties", ..) => None,
            ("additionalProperties" | "patternProperties" | "required" | "dependencies", ..) => None,
            ("allOf" | "anyOf" | "oneOf", ValueRef::Array(schemas), _) => {
                self.composed(keyword, schemas, value)
            }
            ("not", ValueRef::Document(inner), _) => accepts(inner, value)
                .then(|| doc! { "operatorName": "not", "reason": "child expression matched" }),
            _ => self.plain(keyword, rule(keyword, argument, schema), value),
        }
    }

    /// A keyword without schemas inside.
    fn plain(&self, keyword: &str, rule: Document, value: ValueRef<'_>) -> Option<Document> {
        if obeys(&rule, value) {
            return None;
        }
        let reason = match keyword {
            "bsonType" | "type" => "type did not match",
            "encrypt" if matches!(value, ValueRef::Binary(6, _)) => "encrypted value has wrong type",
            "encrypt" => "value was not encrypted",
            "enum" => "value was not found in enum",
            "pattern" => "regular expression did not match",
            "minLength" | "maxLength" => "specified string length was not satisfied",
            "minItems" | "maxItems" => "array did not match specified length",
            "uniqueItems" => "found a duplicate item",
            "multipleOf" => "considered value is not a multiple of the specified value",
            "minProperties" | "maxProperties" => "specified number of properties was not satisfied",
            _ => "comparison failed",
        };
        let mut d = self.start(keyword, &rule, reason);
        match (keyword, value) {
            ("minProperties" | "maxProperties", ValueRef::Document(fields)) => {
                d.push("numberOfProperties", fields.iter().count() as i32);
                return Some(d);
            }
            _ => self.push_value(&mut d, "consideredValue", value),
        }
        match (keyword, value) {
            ("minItems" | "maxItems", ValueRef::Array(items)) => {
                d.push("numberOfItems", items.iter().count() as i32);
            }
            ("uniqueItems", ValueRef::Array(items)) => {
                if let Some(twice) = Schema::duplicate(items) {
                    self.push_value(&mut d, "duplicatedValue", twice);
                }
            }
            ("bsonType" | "type", _) => d.push("consideredType", value.type_name()),
            _ => {}
        }
        Some(d)
    }

    fn items(
        &self,
        keyword: &str,
        argument: ValueRef<'_>,
        schema: Doc<'_>,
        items: Doc<'_>,
    ) -> Option<Document> {
        let listed = match schema.get("items") {
            Some(ValueRef::Array(list)) => list.iter().count(),
            _ => 0,
        };
        let (after, reason) = match keyword {
            "items" => (0, "At least one item did not match the sub-schema"),
            // Without a list nothing is additional.
            _ if listed == 0 => return None,
            _ => (listed, "At least one additional item did not match the sub-schema"),
        };
        let mut rest = items.iter().enumerate().skip(after).map(|(i, e)| (i, e.value()));
        match argument {
            ValueRef::Document(inner) => {
                let compiled = Schema::parse(inner).ok()?;
                let (i, item) = rest.find(|(_, item)| !compiled.accepts(*item))?;
                let mut d = doc! { "operatorName": keyword };
                push_annotations(&mut d, inner);
                d.push("reason", reason);
                d.push("itemIndex", i as i64);
                d.push("details", self.rules(inner, item));
                Some(d)
            }
            ValueRef::Array(list) => {
                let failed: Vec<Document> = documents(list)
                    .zip(rest)
                    .map(|((i, inner), (_, item))| (i, self.rules(inner, item)))
                    .filter(|(_, rules)| !rules.is_empty())
                    .map(|(i, rules)| doc! { "itemIndex": i as i64, "details": rules })
                    .collect();
                (!failed.is_empty()).then(|| doc! { "operatorName": keyword, "details": failed })
            }
            ValueRef::Boolean(false) => {
                let more: Vec<ValueRef<'_>> = rest.map(|(_, item)| item).collect();
                if more.is_empty() {
                    return None;
                }
                let mut d = self.start(keyword, &doc! { keyword: false }, "found additional items");
                self.push_values(&mut d, keyword, more.into_iter());
                Some(d)
            }
            _ => None,
        }
    }

    fn properties(&self, properties: Doc<'_>, d: Doc<'_>) -> Option<Document> {
        let mut failed = Vec::new();
        let fields = Fields::of(d, properties.iter().count()).ok()?;
        for property in properties {
            let (Some(inner), Some(field)) = (property.value().as_document(), fields.get(property.name()))
            else {
                continue;
            };
            let rules = self.rules(inner, field.value());
            if rules.is_empty() {
                continue;
            }
            let mut one = doc! { "propertyName": property.name() };
            push_annotations(&mut one, inner);
            one.push("details", rules);
            failed.push(one);
        }
        (!failed.is_empty()).then(|| doc! { "operatorName": "properties", "propertiesNotSatisfied": failed })
    }

    /// `additionalProperties`: false tells all names, a schema the first field that it refuses.
    fn additional(&self, argument: ValueRef<'_>, schema: Doc<'_>, d: Doc<'_>) -> Option<Document> {
        let patterns = patterns_of(schema);
        let properties = schema.get_document("properties").unwrap_or(Doc::empty());
        let properties = Fields::of(properties, d.iter().count()).ok()?;
        let mut more = d.iter().filter(|e| is_additional(&properties, &patterns, e.name()));
        let mut told = doc! { "operatorName": "additionalProperties" };
        match argument {
            ValueRef::Boolean(false) => {
                let names: Vec<&str> = more.map(|e| e.name()).collect();
                if names.is_empty() {
                    return None;
                }
                self.push_specified(&mut told, doc! { "additionalProperties": false });
                self.push_names(&mut told, "additionalProperties", names.into_iter());
            }
            ValueRef::Document(inner) => {
                let compiled = Schema::parse(inner).ok()?;
                let field = more.find(|e| !compiled.accepts(e.value()))?;
                push_annotations(&mut told, inner);
                told.push("reason", "at least one additional property did not match the subschema");
                told.push("failingProperty", field.name());
                told.push("details", self.rules(inner, field.value()));
            }
            _ => return None,
        }
        Some(told)
    }

    /// `patternProperties`: of each pattern the first field that its schema refuses.
    fn patterns(&self, schema: Doc<'_>, d: Doc<'_>) -> Option<Document> {
        let mut failed = Vec::new();
        for (text, pattern, inner) in patterns_of(schema) {
            let compiled = Schema::parse(inner).ok()?;
            let mut named = d.iter().filter(|e| pattern.is_match(e.name_bytes()).unwrap_or(false));
            let Some(field) = named.find(|e| !compiled.accepts(e.value())) else { continue };
            let mut one = doc! { "propertyName": field.name() };
            push_annotations(&mut one, inner);
            one.push("regexMatched", text);
            one.push("details", self.rules(inner, field.value()));
            failed.push(one);
        }
        (!failed.is_empty()).then(|| doc! { "operatorName": "patternProperties", "details": failed })
    }

    fn required(&self, names: Doc<'_>, d: Doc<'_>) -> Option<Document> {
        let missing = missing(names, d);
        if missing.is_empty() {
            return None;
        }
        let mut told = doc! { "operatorName": "required" };
        self.push_specified(&mut told, doc! { "required": names.to_array() });
        self.push_names(&mut told, "missingProperties", missing.into_iter());
        Some(told)
    }

    fn dependencies(&self, rules: Doc<'_>, d: Doc<'_>) -> Option<Document> {
        let mut failed = Vec::new();
        for rule in rules.iter().filter(|rule| d.element(rule.name()).is_some()) {
            let mut one = doc! { "conditionalProperty": rule.name() };
            match rule.value() {
                ValueRef::Array(names) => match missing(names, d) {
                    missing if missing.is_empty() => continue,
                    missing => self.push_names(&mut one, "missingProperties", missing.into_iter()),
                },
                ValueRef::Document(inner) => match self.rules(inner, ValueRef::Document(d)) {
                    rules if rules.is_empty() => continue,
                    rules => one.push("details", rules),
                },
                _ => continue,
            }
            failed.push(one);
        }
        (!failed.is_empty()).then(|| doc! { "operatorName": "dependencies", "failingDependencies": failed })
    }

    fn composed(&self, keyword: &str, schemas: Doc<'_>, value: ValueRef<'_>) -> Option<Document> {
        let accepting: Vec<i32> =
            documents(schemas).filter(|(_, s)| accepts(*s, value)).map(|(i, _)| i as i32).collect();
        let obeyed = match keyword {
            "allOf" => accepting.len() == schemas.iter().count(),
            "anyOf" => !accepting.is_empty(),
            _ => accepting.len() == 1,
        };
        if obeyed {
            return None;
        }
        if keyword == "oneOf" && !accepting.is_empty() {
            let indexes: Vec<Value> = accepting.into_iter().map(Value::Int32).collect();
            return Some(doc! {
                "operatorName": keyword, "reason": "more than one subschema matched",
                "matchingSchemaIndexes": Value::Array(indexes),
            });
        }
        let failed: Vec<Document> = documents(schemas)
            .filter(|(i, _)| !accepting.contains(&(*i as i32)))
            .map(|(i, inner)| {
                let mut one = doc! { "index": i as i64 };
                push_annotations(&mut one, inner);
                one.push("details", self.rules(inner, value));
                one
            })
            .collect();
        Some(doc! { "operatorName": keyword, "schemasNotSatisfied": failed })
    }
}

/// The names that the document has no field of.
fn missing<'n>(names: Doc<'n>, d: Doc<'_>) -> Vec<&'n str> {
    let Ok(fields) = Fields::of(d, names.iter().count()) else { return Vec::new() };
    let names = names.iter().filter_map(|n| n.value().as_str());
    names.filter(|n| fields.get(n).is_none()).collect()
}
