//! The operators that compare the values at a path.

use super::Refusal;
use document::{Document, Value, ValueRef, doc, path};
use query::matcher::ops::geo;
use std::collections::BTreeSet;

/// The most values at a path that are shown.
const CONSIDERED_MAX: usize = 10;

const NUMBERS: &[&str] = &["decimal", "double", "int", "long"];
const ARRAYS: &[&str] = &["array"];

/// How an operator explains itself.
struct Leaf {
    /// Why it does not hold.
    fails: &'static str,
    /// Why it holds.
    holds: &'static str,
    /// The types that it asks for, by name and sorted; empty for all.
    types: &'static [&'static str],
    /// It considers an array as one value.
    whole: bool,
}

fn leaf(operator: &str) -> Leaf {
    let (fails, holds, types, whole): (_, _, &[&str], _) = match operator {
        "$ne" => ("comparison succeeded", "comparison failed", &[], false),
        "$in" => ("no matching value found in array", "matching value found in array", &[], false),
        "$nin" => ("matching value found in array", "no matching value found in array", &[], false),
        "$type" => ("type did not match", "type did match", &[], false),
        "$regex" => (
            "regular expression did not match",
            "regular expression did match",
            &["regex", "string", "symbol"],
            false,
        ),
        "$mod" => (
            "$mod did not evaluate to expected remainder",
            "$mod did evaluate to expected remainder",
            NUMBERS,
            false,
        ),
        "$size" => {
            ("array length was not equal to given size", "array length was equal to given size", ARRAYS, true)
        }
        "$all" => (
            "array did not contain all specified values",
            "array did contain all specified values",
            &[],
            true,
        ),
        "$elemMatch" => (
            "array did not satisfy the child predicate",
            "array did satisfy the child predicate",
            ARRAYS,
            true,
        ),
        "$bitsAllClear" | "$bitsAllSet" | "$bitsAnyClear" | "$bitsAnySet" => (
            "bitwise operator failed to match",
            "bitwise operator matched successfully",
            &["binData", "decimal", "double", "int", "long"],
            false,
        ),
        "$geoWithin" | "$within" => (
            "none of the considered geometries were contained within the expression’s geometry",
            "at least one of considered geometries was contained within the expression’s geometry",
            &[],
            false,
        ),
        "$geoIntersects" => (
            "none of the considered geometries intersected the expression’s geometry",
            "at least one of considered geometries intersected the expression’s geometry",
            &[],
            false,
        ),
        _ => ("comparison failed", "comparison succeeded", &[], false),
    };
    Leaf { fails, holds, types, whole }
}

fn operator_of(argument: &Value) -> &str {
    let first = argument.as_document().and_then(|d| d.first()).map(|(name, _)| name);
    match (first.filter(|name| name.starts_with('$')), argument) {
        (Some(operator), _) => operator,
        (None, Value::Regex(_)) => "$regex",
        (None, _) => "$eq",
    }
}

impl Refusal<'_> {
    /// A test of a path by one operator.
    pub(super) fn leaf(&self, clause: &Document, path: &str, argument: &Value, inverted: bool) -> Document {
        let operator = operator_of(argument);
        let mut d = doc! { "operatorName": operator };
        self.push_specified(&mut d, clause.clone());
        if operator == "$exists" {
            let asked = argument.as_document().and_then(|d| d.get("$exists")).is_some_and(Value::truthy);
            d.push("reason", if asked != inverted { "path does not exist" } else { "path does exist" });
            return d;
        }
        let leaf = leaf(operator);
        let Some(considered) = self.considered(path, leaf.whole) else {
            d.push("reason", "field was missing");
            return d;
        };
        let values = &considered[..considered.len().min(CONSIDERED_MAX)];
        if !leaf.types.is_empty() && !values.iter().any(|v| leaf.types.contains(&v.type_name())) {
            d.push("reason", "type did not match");
            push_types(&mut d, "consideredType", values.iter().map(ValueRef::type_name));
            push_types(&mut d, "expectedType", leaf.types.iter().copied());
        } else if operator.starts_with("$geo") && !self.is_place(path, values) {
            d.push("reason", "could not find a valid geometry at the given path");
        } else {
            d.push("reason", if inverted { leaf.holds } else { leaf.fails });
        }
        match values {
            [one] => self.push_value(&mut d, "consideredValue", *one),
            several => self.push_values(&mut d, "consideredValues", several.iter().copied()),
        }
        if considered.len() > CONSIDERED_MAX && !self.brief {
            d.push("consideredValuesTruncated", true);
        }
        if operator == "$type" {
            push_types(&mut d, "consideredType", values.iter().map(ValueRef::type_name));
        }
        d
    }

    /// The values at the path, of an array its elements unless it counts as a `whole`; at most one more than are shown.
    fn considered(&self, path: &str, whole: bool) -> Option<Vec<ValueRef<'_>>> {
        let (mut values, mut exists) = (Vec::new(), false);
        // An operation whose time ends here hears of it elsewhere.
        let _ = path::for_each_leaf(self.document, path, &mut |value| {
            exists |= value.is_some();
            let more = CONSIDERED_MAX + 1 - values.len();
            match value {
                Some(ValueRef::Array(items)) if !whole => {
                    values.extend(items.iter().take(more).map(|e| e.value()))
                }
                other => values.extend(other),
            }
            Ok(values.len() > CONSIDERED_MAX)
        });
        exists.then_some(values)
    }

    fn is_place(&self, path: &str, values: &[ValueRef<'_>]) -> bool {
        values.iter().copied().chain(path::get(self.document, path)).any(geo::is_place)
    }
}

/// The types by name, each once: `consideredType`, and of several `consideredTypes`.
fn push_types<'t>(d: &mut Document, name: &str, types: impl Iterator<Item = &'t str>) {
    let types: BTreeSet<&str> = types.collect();
    match (types.len(), types.first()) {
        (1, Some(one)) => d.push(name, *one),
        (0, _) => {}
        _ => d.push(format!("{name}s"), Value::Array(types.into_iter().map(Value::from).collect())),
    }
}
