//! `$rename`: a value moves from one path to another, through documents only.

use crate::matcher::path::array_index;
use crate::text;
use crate::update::index::Index;
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
    pub(in crate::update) fn apply(
        &self,
        document: &mut Document,
        index: &mut Index,
        old: Doc<'_>,
    ) -> Result<bool> {
        let from: Vec<&str> = self.from.text.split('.').collect();
        let to: Vec<&str> = self.to.text.split('.').collect();
        let source = index.position(document, from[0])?;
        let target = index.position(document, to[0])?;
        let value_at = |at: Option<usize>| at.and_then(|at| document.0.get(at)).map(|(_, v)| v);
        self.check_source(value_at(source), &from, old)?;
        if find(value_at(source), &from[1..]).is_none() {
            return Ok(false);
        }
        if self.to.text == "_id" && target.is_some() {
            bail!(
                IMMUTABLE_FIELD,
                "Performing an update on the path '_id' would modify the immutable field '_id'"
            );
        }
        self.check_target(value_at(target), &to, old)?;
        if let Some(value) = source.and_then(|at| take(document, index, at, &from)) {
            place(document, index, &to, value)?;
        }
        Ok(true)
    }

    /// `first`: what the first of `parts` has.
    fn check_source(&self, first: Option<&Value>, parts: &[&str], old: Doc<'_>) -> Result<()> {
        match obstacle(first, parts) {
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

    fn check_target(&self, first: Option<&Value>, parts: &[&str], old: Doc<'_>) -> Result<()> {
        match obstacle(first, parts) {
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

/// The first value on the way (not at the end) that is no document: its name, itself, and the name wanted in it. `value`: what the first
/// of the names has.
fn obstacle<'a>(value: Option<&'a Value>, parts: &[&'a str]) -> Option<(&'a str, &'a Value, &'a str)> {
    let mut value = value?;
    for pair in parts.windows(2) {
        match value {
            Value::Document(d) => value = d.get(pair[1])?,
            other => return Some((pair[0], other, pair[1])),
        }
    }
    None
}

/// What stands below the value at the end of `parts`.
fn find<'a>(value: Option<&'a Value>, parts: &[&str]) -> Option<&'a Value> {
    parts.iter().try_fold(value?, |value, part| value.as_document()?.get(part))
}

/// Takes the value at `parts`, the first of which stands at `at`.
fn take(document: &mut Document, index: &mut Index, at: usize, parts: &[&str]) -> Option<Value> {
    match parts.get(1..)? {
        [] => Some(index.remove(document, at)),
        rest => take_below(&mut document.0[at].1, rest),
    }
}

fn take_below(value: &mut Value, parts: &[&str]) -> Option<Value> {
    let Value::Document(d) = value else { return None };
    match parts {
        [] => None,
        [last] => d.remove(last),
        [first, rest @ ..] => take_below(d.get_mut(first)?, rest),
    }
}

/// Puts the value at `parts`, which nothing obstructs.
fn place(document: &mut Document, index: &mut Index, parts: &[&str], value: Value) -> Result<()> {
    let Some((first, rest)) = parts.split_first() else { return Ok(()) };
    match index.position(document, first)? {
        Some(at) => place_below(&mut document.0[at].1, rest, value),
        None => {
            let mut new = Value::Document(Document::new());
            place_below(&mut new, rest, value);
            index.push(document, first, new);
        }
    }
    Ok(())
}

fn place_below(target: &mut Value, parts: &[&str], value: Value) {
    let Some((first, rest)) = parts.split_first() else {
        *target = value;
        return;
    };
    let Value::Document(d) = target else { return };
    if d.get(first).is_none() {
        d.push(*first, Document::new());
    }
    if let Some(inner) = d.get_mut(first) {
        place_below(inner, rest, value);
    }
}
