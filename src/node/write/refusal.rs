//! Why a document fails a validator, in the words by which the real server says it (`errInfo.details`).
//!
//! The validator is taken apart again and each clause asked by itself; only refused documents pay for that.

use document::{Doc, Document, Value, ValueRef, doc, path};
use query::QueryContext;
use query::matcher::Matcher;

/// What of `validator` the document does not satisfy.
pub fn details(validator: Doc<'_>, document: Doc<'_>) -> Document {
    let clauses = clauses_of(&validator.to_document());
    let failed = |clause: &Document| !holds(clause, document);
    match clauses.as_slice() {
        [one] => clause_details(one, document),
        several => {
            let unsatisfied: Vec<Document> = several
                .iter()
                .enumerate()
                .filter(|(_, clause)| failed(clause))
                .map(|(i, clause)| doc! { "index": i as i32, "details": clause_details(clause, document) })
                .collect();
            doc! { "operatorName": "$and", "clausesNotSatisfied": unsatisfied }
        }
    }
}

fn holds(filter: &Document, document: Doc<'_>) -> bool {
    let matcher = Matcher::parse(filter.to_doc_buf().doc(), &QueryContext::default());
    matcher.and_then(|m| m.matches(document)).unwrap_or(true)
}

/// The filter as filters of one operator each.
fn clauses_of(filter: &Document) -> Vec<Document> {
    let mut clauses = Vec::new();
    for (name, value) in filter.iter() {
        match value {
            Value::Document(operators)
                if !name.starts_with('$') && operators.first().is_some_and(|(o, _)| o.starts_with('$')) =>
            {
                for (operator, argument) in operators.iter().filter(|(o, _)| *o != "$options") {
                    let mut one = Document::new();
                    one.push(operator, argument.clone());
                    if let (Some(options), "$regex") = (operators.get("$options"), operator) {
                        one.push("$options", options.clone());
                    }
                    clauses.push(single(name, Value::Document(one)));
                }
            }
            _ => clauses.push(single(name, value.clone())),
        }
    }
    clauses
}

fn single(name: &str, value: Value) -> Document {
    Document(vec![(name.to_string(), value)])
}

fn clause_details(clause: &Document, document: Doc<'_>) -> Document {
    let Some((name, argument)) = clause.first() else { return Document::new() };
    match (name, argument) {
        ("$and" | "$or" | "$nor", Value::Array(parts)) => of_list(name, parts, document),
        ("$jsonSchema", Value::Document(schema)) => {
            let value = Value::Document(document.to_document());
            doc! { "operatorName": "$jsonSchema", "schemaRulesNotSatisfied": schema_rules(schema, &value) }
        }
        ("$expr", _) => doc! {
            "operatorName": "$expr", "specifiedAs": clause.clone(), "reason": "expression did not match",
            "expressionResult": false,
        },
        (path, argument) => leaf(clause, path, argument, document),
    }
}

fn of_list(name: &str, parts: &[Value], document: Doc<'_>) -> Document {
    let wanted = name != "$nor";
    let described: Vec<Document> = parts
        .iter()
        .filter_map(Value::as_document)
        .enumerate()
        .filter(|(_, part)| holds(part, document) != wanted)
        .map(|(i, part)| match wanted {
            true => doc! { "index": i as i32, "details": details(part.to_doc_buf().doc(), document) },
            false => doc! { "index": i as i32, "details": satisfied(part, document) },
        })
        .collect();
    let list = if wanted { "clausesNotSatisfied" } else { "clausesSatisfied" };
    doc! { "operatorName": name, list: described }
}

/// A clause that holds where it should not.
fn satisfied(clause: &Document, document: Doc<'_>) -> Document {
    let Some((path, argument)) = clause.first() else { return Document::new() };
    let operator = operator_of(argument);
    let mut d =
        doc! { "operatorName": operator, "specifiedAs": clause.clone(), "reason": "comparison succeeded" };
    push_considered(&mut d, path, document);
    d
}

fn operator_of(argument: &Value) -> &str {
    let first = argument.as_document().and_then(|d| d.first()).map(|(name, _)| name);
    match (first.filter(|name| name.starts_with('$')), argument) {
        (Some(operator), _) => operator,
        (None, Value::Regex(_)) => "$regex",
        (None, _) => "$eq",
    }
}

fn leaf(clause: &Document, path: &str, argument: &Value, document: Doc<'_>) -> Document {
    let operator = operator_of(argument);
    let found = path::get(document, path);
    let mut d = doc! { "operatorName": operator, "specifiedAs": clause.clone() };
    let inverted = matches!(operator, "$ne" | "$nin" | "$not");
    if operator == "$exists" {
        d.push("reason", if found.is_some() { "path does exist" } else { "path does not exist" });
        return d;
    }
    if found.is_none() && !inverted {
        d.push("reason", "field was missing");
        return d;
    }
    d.push(
        "reason",
        match operator {
            "$ne" => "comparison succeeded",
            "$nin" => "matching value found in array",
            "$not" => "child expression matched",
            "$in" => "no matching value found in array",
            "$type" => "type did not match",
            "$regex" => "regular expression did not match",
            "$mod" => "$mod did not evaluate to expected remainder",
            "$size" => "array length was not equal to given size",
            "$all" => "array did not contain all specified values",
            "$elemMatch" => "array did not satisfy the child predicate",
            "$bitsAllClear" | "$bitsAllSet" | "$bitsAnyClear" | "$bitsAnySet" => {
                "bitwise operator failed to match"
            }
            _ => "comparison failed",
        },
    );
    push_considered(&mut d, path, document);
    if operator == "$type"
        && let Some(v) = found
    {
        d.push("consideredType", v.type_name());
    }
    d
}

/// The value at the path; of an array its elements as well, which are compared one by one.
fn push_considered(d: &mut Document, path: &str, document: Doc<'_>) {
    match path::get(document, path) {
        Some(whole @ ValueRef::Array(items)) => {
            let each = items.iter().map(|e| e.value().to_value()).chain(std::iter::once(whole.to_value()));
            d.push("consideredValues", Value::Array(each.collect()));
        }
        Some(v) => d.push("consideredValue", v.to_value()),
        None => {}
    }
}

/// Whether the value satisfies one rule of a schema.
fn obeys(rule: &str, argument: &Value, schema: &Document, value: &Value) -> bool {
    let mut one = single(rule, argument.clone());
    // Rules that are nothing without their neighbour, of which only the names count that it takes for itself.
    for (first, second) in [
        ("minimum", "exclusiveMinimum"),
        ("maximum", "exclusiveMaximum"),
        ("additionalProperties", "properties"),
        ("additionalProperties", "patternProperties"),
        ("additionalItems", "items"),
    ] {
        if rule == first
            && let Some(v) = schema.get(second)
        {
            one.push(second, without_rules(v));
        }
    }
    let filter = doc! { "$jsonSchema": { "properties": { "v": one } } };
    let holder = doc! { "v": value.clone() };
    holds(&filter, holder.to_doc_buf().doc())
}

/// The same members or items, each with a schema that everything satisfies; another value as it is.
fn without_rules(argument: &Value) -> Value {
    match argument {
        Value::Document(of) => {
            Value::Document(of.keys().map(|name| (name.to_string(), Value::from(Document::new()))).collect())
        }
        Value::Array(of) => Value::Array(of.iter().map(|_| Value::from(Document::new())).collect()),
        other => other.clone(),
    }
}

fn schema_rules(schema: &Document, value: &Value) -> Vec<Document> {
    let neutral = ["title", "description", "exclusiveMinimum", "exclusiveMaximum"];
    let rules = schema.iter().filter(|(rule, _)| !neutral.contains(rule));
    rules
        .filter(|(rule, argument)| !obeys(rule, argument, schema, value))
        .map(|(rule, argument)| rule_details(rule, argument, schema, value))
        .collect()
}

fn rule_details(rule: &str, argument: &Value, schema: &Document, value: &Value) -> Document {
    let empty = Document::new();
    let fields = value.as_document().unwrap_or(&empty);
    match (rule, argument) {
        ("properties", Value::Document(properties)) => {
            let unsatisfied: Vec<Document> = properties
                .iter()
                .filter_map(|(name, inner)| {
                    let rules = schema_rules(inner.as_document()?, fields.get(name)?);
                    let description = inner.as_document()?.get("description").cloned();
                    (!rules.is_empty()).then(|| {
                        let mut d = doc! { "propertyName": name };
                        if let Some(text) = description {
                            d.push("description", text);
                        }
                        d.push("details", rules);
                        d
                    })
                })
                .collect();
            return doc! { "operatorName": "properties", "propertiesNotSatisfied": unsatisfied };
        }
        ("required", Value::Array(names)) => {
            let missing: Vec<Value> = names
                .iter()
                .filter(|n| n.as_str().is_some_and(|n| !fields.contains_key(n)))
                .cloned()
                .collect();
            return doc! {
                "operatorName": "required", "specifiedAs": single(rule, argument.clone()), "missingProperties": missing,
            };
        }
        ("additionalProperties", Value::Boolean(false)) => {
            let known = schema.get_document("properties").unwrap_or(&empty);
            let more: Vec<Value> =
                fields.keys().filter(|n| !known.contains_key(n)).map(Value::from).collect();
            return doc! {
                "operatorName": rule, "specifiedAs": single(rule, argument.clone()), "additionalProperties": more,
            };
        }
        _ => {}
    }
    if let Some(of_inner) = inner_schemas(rule, argument, value) {
        return of_inner;
    }
    let mut d = doc! { "operatorName": rule, "specifiedAs": single(rule, argument.clone()) };
    d.push(
        "reason",
        match rule {
            "bsonType" | "type" => "type did not match",
            "enum" => "value was not found in enum",
            "pattern" => "regular expression did not match",
            "minLength" | "maxLength" => "specified string length was not satisfied",
            "minItems" | "maxItems" => "array did not match specified length",
            "uniqueItems" => "found a duplicate item",
            "multipleOf" => "considered value is not a multiple of the specified value",
            "minProperties" | "maxProperties" => "specified number of properties was not satisfied",
            _ => "comparison failed",
        },
    );
    d.push("consideredValue", value.clone());
    if matches!(rule, "bsonType" | "type") {
        d.push("consideredType", value.type_name());
    }
    d
}

/// The details of a rule that fails by the schemas within it.
fn inner_schemas(rule: &str, argument: &Value, value: &Value) -> Option<Document> {
    match (rule, argument) {
        ("items", Value::Document(schema)) => {
            let mut each = value.as_array()?.iter().map(|item| schema_rules(schema, item)).enumerate();
            let (at, rules) = each.find(|(_, rules)| !rules.is_empty())?;
            Some(doc! {
                "operatorName": rule, "reason": "At least one item did not match the sub-schema",
                "itemIndex": at as i32, "details": rules,
            })
        }
        ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => {
            let each =
                schemas.iter().map(|s| s.as_document().map_or_else(Vec::new, |s| schema_rules(s, value)));
            let failed = each.enumerate().filter(|(_, rules)| !rules.is_empty());
            let failed: Vec<Document> =
                failed.map(|(at, rules)| doc! { "index": at as i32, "details": rules }).collect();
            // One of oneOf fails also because several hold.
            let told = rule == "allOf" || failed.len() == schemas.len();
            told.then(|| doc! { "operatorName": rule, "schemasNotSatisfied": failed })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(validator: Document, document: Document) -> Document {
        details(validator.to_doc_buf().doc(), document.to_doc_buf().doc())
    }

    #[test]
    fn one_clause_says_what_it_compared() {
        let validator = doc! { "a": { "$type": "int" } };
        assert_eq!(
            why(validator.clone(), doc! { "a": "s" }),
            doc! {
                "operatorName": "$type", "specifiedAs": validator.clone(), "reason": "type did not match",
                "consideredValue": "s", "consideredType": "string",
            }
        );
        assert_eq!(why(validator, doc! {}).get_str("reason"), Some("field was missing"));
        let equal = why(doc! { "a": 1 }, doc! { "a": [2, 3] });
        assert_eq!(equal.get_array("consideredValues").map(Vec::len), Some(3));
    }

    #[test]
    fn several_clauses_name_those_that_fail() {
        let d = why(doc! { "a": { "$gt": 1, "$lt": 5 }, "b": { "$exists": true } }, doc! { "a": 7 });
        let failed = d.get_array("clausesNotSatisfied").unwrap();
        let at = |i: usize| failed[i].as_document().unwrap();
        assert_eq!((d.get_str("operatorName"), failed.len()), (Some("$and"), 2));
        assert_eq!((at(0).get_i64("index"), at(1).get_i64("index")), (Some(1), Some(2)));
        assert_eq!(at(1).get_path("details.reason").and_then(Value::as_str), Some("path does not exist"));
    }

    #[test]
    fn a_schema_names_rules_and_properties() {
        let schema = doc! {
            "bsonType": "object", "required": ["name", "age"],
            "properties": { "age": { "bsonType": "int", "minimum": 0 }, "name": { "bsonType": "string" } },
        };
        let d = why(doc! { "$jsonSchema": schema }, doc! { "age": -1 });
        let rules = d.get_array("schemaRulesNotSatisfied").unwrap();
        let named: Vec<&str> =
            rules.iter().filter_map(|r| r.as_document()?.get_str("operatorName")).collect();
        assert_eq!(named, ["required", "properties"]);
        let missing = rules[0].as_document().unwrap().get_array("missingProperties").unwrap();
        assert_eq!(missing, &vec![Value::from("name")]);
        let property = rules[1].as_document().unwrap().get_array("propertiesNotSatisfied").unwrap()[0]
            .as_document()
            .unwrap();
        assert_eq!(property.get_str("propertyName"), Some("age"));
    }

    #[test]
    fn more_properties_are_named_only_where_there_are_some() {
        let named = |additional: bool, document: Document| -> Vec<String> {
            let schema =
                doc! { "properties": { "age": { "minimum": 0 } }, "additionalProperties": additional };
            let d = why(doc! { "$jsonSchema": schema }, document);
            let rules = d.get_array("schemaRulesNotSatisfied").unwrap();
            rules.iter().filter_map(|r| Some(r.as_document()?.get_str("operatorName")?.to_string())).collect()
        };
        assert_eq!(named(true, doc! { "age": -1, "more": 1 }), ["properties"]);
        assert_eq!(named(false, doc! { "age": -1 }), ["properties"]);
        assert_eq!(named(false, doc! { "age": 1, "more": 1 }), ["additionalProperties"]);
        assert_eq!(named(false, doc! { "age": -1, "more": 1 }), ["properties", "additionalProperties"]);
    }

    #[test]
    fn a_schema_of_items_and_alternatives_says_what_they_miss() {
        let rule = |schema: Document, value: Value| {
            schema_rules(&schema, &value).pop().expect("the value does not satisfy the schema")
        };
        let minimum = || {
            doc! {
                "operatorName": "minimum", "specifiedAs": { "minimum": 5 }, "reason": "comparison failed", "consideredValue": 1,
            }
        };
        assert_eq!(
            rule(doc! { "items": { "minimum": 5 } }, Value::Array(vec![7.into(), 1.into()])),
            doc! {
                "operatorName": "items", "reason": "At least one item did not match the sub-schema",
                "itemIndex": 1, "details": vec![minimum()],
            }
        );
        assert_eq!(
            rule(doc! { "allOf": [{ "bsonType": "int" }, { "minimum": 5 }] }, 1.into()),
            doc! {
                "operatorName": "allOf", "schemasNotSatisfied": vec![doc! { "index": 1, "details": vec![minimum()] }],
            }
        );
        let any = rule(doc! { "anyOf": [{ "bsonType": "string" }, { "minimum": 5 }] }, 1.into());
        assert_eq!(any.get_array("schemasNotSatisfied").map(Vec::len), Some(2));
        let both = rule(doc! { "oneOf": [{ "bsonType": "int" }, { "maximum": 5 }] }, 1.into());
        assert!(both.get("schemasNotSatisfied").is_none());
    }
}
