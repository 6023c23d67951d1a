//! The difference format of update entries, `{$v: 2, diff}`.
//!
//! ```text
//! document diff   { d?: {field: false}, u?: {field: value}, i?: {field: value}, s<field>: diff }
//! array diff      { a: true, l?: new length, u<index>: value, s<index>: diff }
//! ```
//!
//! `d` removes, `u` sets in place, `i` appends, `s` goes into a document or an array. Applying one twice gives the same.

use document::{Document, Value};

/// `document` with `diff` applied. The error says what does not fit.
pub fn apply_diff(document: &Document, diff: &Document) -> Result<Document, String> {
    let mut result = document.clone();
    for (section, value) in diff.iter() {
        match section {
            "d" => fields(value)?.keys().for_each(|name| drop(result.remove(name))),
            "u" => fields(value)?.iter().for_each(|(name, value)| result.insert(name, value.clone())),
            "i" => {
                for (name, value) in fields(value)?.iter() {
                    result.remove(name);
                    result.push(name, value.clone());
                }
            }
            _ => {
                let name = section
                    .strip_prefix('s')
                    .ok_or_else(|| format!("unknown section '{section}' of a diff"))?;
                let inside =
                    result.get_mut(name).ok_or_else(|| format!("field '{name}' of a diff is missing"))?;
                apply_inside(inside, fields(value)?)?;
            }
        }
    }
    Ok(result)
}

fn fields(value: &Value) -> Result<&Document, String> {
    value.as_document().ok_or_else(|| "a section of a diff is not a document".to_string())
}

fn apply_inside(value: &mut Value, diff: &Document) -> Result<(), String> {
    match value {
        Value::Array(items) if diff.get_bool("a") == Some(true) => apply_to_array(items, diff),
        Value::Document(document) => {
            *document = apply_diff(document, diff)?;
            Ok(())
        }
        _ => Err("a diff goes into a value that is no document or array".to_string()),
    }
}

/// Positions beyond this are taken for damage; a document of 16 MB has fewer elements.
const MAX_POSITION: usize = 16 << 20;

fn apply_to_array(items: &mut Vec<Value>, diff: &Document) -> Result<(), String> {
    if let Some(length) = diff.get_i64("l") {
        items.truncate(usize::try_from(length).map_err(|_| "a negative length in a diff")?);
    }
    for (section, value) in diff.iter().filter(|(name, _)| !["a", "l"].contains(name)) {
        let position = section.get(1..).and_then(|n| n.parse::<usize>().ok()).filter(|n| *n < MAX_POSITION);
        let position = position.ok_or_else(|| format!("unknown section '{section}' of an array diff"))?;
        if position >= items.len() {
            items.resize(position + 1, Value::Null);
        }
        match &section[..1] {
            "u" => items[position] = value.clone(),
            "s" => apply_inside(&mut items[position], fields(value)?)?,
            _ => return Err(format!("unknown section '{section}' of an array diff")),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::doc;

    #[test]
    fn sections_are_applied_in_place_and_twice_gives_the_same() {
        let before = doc! { "_id": 1, "a": 1, "b": { "x": 1, "y": 2 }, "c": [1, { "z": 1 }, 3], "e": 9 };
        let diff = doc! {
            "d": { "e": false }, "u": { "a": 5 }, "i": { "n": 1 },
            "sb": { "d": { "y": false } },
            "sc": { "a": true, "l": 2, "u0": 7, "s1": { "u": { "z": 2 } } }
        };
        let after = doc! { "_id": 1, "a": 5, "b": { "x": 1 }, "c": [7, { "z": 2 }], "n": 1 };
        assert_eq!(apply_diff(&before, &diff).unwrap(), after);
        assert_eq!(apply_diff(&after, &diff).unwrap(), after);
    }

    #[test]
    fn a_diff_that_does_not_fit_is_an_error_and_not_a_panic() {
        let before = doc! { "_id": 1, "a": 1, "c": [1] };
        for diff in [
            doc! { "x": { "a": 1 } },
            doc! { "sq": { "d": { "y": false } } },
            doc! { "sa": { "u": { "y": 1 } } },
            doc! { "sc": { "a": true, "u99999999999": 1 } },
            doc! { "sc": { "a": true, "é": 1 } },
            doc! { "d": 1 },
        ] {
            assert!(apply_diff(&before, &diff).is_err(), "{diff:?}");
        }
    }
}
