//! `$rename`: a value moves from one path to another, through documents only.

use crate::matcher::path::array_index;
use crate::text;
use crate::update::path::UpdatePath;
use document::{Doc, Document, Result, Value, bail};

#[derive(Clone, Debug)]
pub struct Rename {
    pub from: UpdatePath,
    pub to: UpdatePath,
}

impl Rename {
    pub fn parse(from: UpdatePath, v: &Value) -> Result<Rename> {
        let Value::String(to) = v else {
            bail!(
                BAD_VALUE,
                "The 'to' field for $rename must be a string: {}: {}",
                from.text,
                text::owned(v)
            );
        };
        if to.contains('\0') {
            bail!(9867600, "The 'to' field for $rename cannot contain an embedded null byte");
        }
        let to = UpdatePath::parse(to)?;
        to.check_storable()?;
        if from.text == to.text {
            bail!(
                BAD_VALUE,
                "The source and target field for $rename must differ: {}: \"{}\"",
                from.text,
                to.text
            );
        }
        if from.is_dynamic() {
            bail!(BAD_VALUE, "The source field for $rename may not be dynamic: {}", from.text);
        }
        if to.is_dynamic() {
            bail!(BAD_VALUE, "The destination field for $rename may not be dynamic: {}", to.text);
        }
        if from.conflict(&to).is_some() {
            bail!(
                BAD_VALUE,
                "The source and target field for $rename must not be on the same path: {}: \"{}\"",
                from.text,
                to.text
            );
        }
        Ok(Rename { from, to })
    }

    pub fn first_names(&self) -> [&str; 2] {
        [self.from.first(), self.to.first()]
    }

    /// Whether anything moved.
    pub fn apply(&self, document: &mut Document, old: Doc<'_>) -> Result<bool> {
        let from: Vec<&str> = self.from.text.split('.').collect();
        let to: Vec<&str> = self.to.text.split('.').collect();
        if self.to.text == "_id" && document.contains_key("_id") {
            bail!(
                IMMUTABLE_FIELD,
                "Performing an update on the path '_id' would modify the immutable field '_id'"
            );
        }
        self.check_source(document, &from, old)?;
        if find(document, &from).is_none() {
            return Ok(false);
        }
        self.check_target(document, &to, old)?;
        if let Some(value) = take(document, &from) {
            place(document, &to, value);
        }
        Ok(true)
    }

    fn check_source(&self, document: &Document, parts: &[&str], old: Doc<'_>) -> Result<()> {
        match obstacle(document, parts) {
            Some((name, Value::Array(_), part)) if array_index(part).is_some() => {
                bail!(
                    BAD_VALUE,
                    "The source field cannot be an array element, '{}' in doc with {} has an array field called '{name}'",
                    self.from.text,
                    id(old)
                )
            }
            Some((name, value, part)) if !matches!(value, Value::Array(_)) => {
                bail!(
                    PATH_NOT_VIABLE,
                    "Cannot use the part ({part}) of ({}) to traverse the element ({})",
                    self.from.text,
                    text::element(name, value)
                )
            }
            Some((name, ..)) => {
                bail!(
                    BAD_VALUE,
                    "The source field cannot be an array element, '{}' in doc with {} has an array field called '{name}'",
                    self.from.text,
                    id(old)
                )
            }
            None => Ok(()),
        }
    }

    fn check_target(&self, document: &Document, parts: &[&str], old: Doc<'_>) -> Result<()> {
        match obstacle(document, parts) {
            Some((name, Value::Array(_), _)) => bail!(
                BAD_VALUE,
                "The destination field cannot be an array element, '{}' in doc with {} has an array field called '{name}'",
                self.to.text,
                id(old)
            ),
            Some((name, value, part)) => {
                bail!(
                    PATH_NOT_VIABLE,
                    "Cannot create field '{part}' in element {}",
                    text::element(name, value)
                )
            }
            None => Ok(()),
        }
    }
}

fn id(old: Doc<'_>) -> String {
    old.get("_id").map_or_else(|| "no id".to_string(), |id| format!("_id: {}", text::value(id)))
}

/// The first value on the way (not at the end) that is no document: its name, itself, and the name wanted in it.
fn obstacle<'a>(document: &'a Document, parts: &[&'a str]) -> Option<(&'a str, &'a Value, &'a str)> {
    let mut document = document;
    for pair in parts.windows(2) {
        match document.get(pair[0])? {
            Value::Document(d) => document = d,
            other => return Some((pair[0], other, pair[1])),
        }
    }
    None
}

fn find<'a>(document: &'a Document, parts: &[&str]) -> Option<&'a Value> {
    let (last, way) = parts.split_last()?;
    let mut document = document;
    for part in way {
        document = document.get(part)?.as_document()?;
    }
    document.get(last)
}

fn take(document: &mut Document, parts: &[&str]) -> Option<Value> {
    match parts {
        [] => None,
        [last] => document.remove(last),
        [first, rest @ ..] => match document.get_mut(first)? {
            Value::Document(d) => take(d, rest),
            _ => None,
        },
    }
}

fn place(document: &mut Document, parts: &[&str], value: Value) {
    match parts {
        [] => {}
        [last] => document.insert(*last, value),
        [first, rest @ ..] => {
            if document.get(first).is_none() {
                document.push(*first, Document::new());
            }
            if let Some(Value::Document(d)) = document.get_mut(first) {
                place(d, rest, value);
            }
        }
    }
}
