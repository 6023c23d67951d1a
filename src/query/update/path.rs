//! Paths of updates: names and positions, `$` (what the filter matched), `$[]` (every element) and `$[id]` (those a filter accepts).

use crate::matcher::path::array_index;
use document::{Result, bail};
use std::cmp::Ordering;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Name(String),
    /// `$`
    Matched,
    /// `$[]`
    Every,
    /// `$[id]`
    Filtered(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdatePath {
    pub text: String,
    pub steps: Vec<Step>,
}

impl UpdatePath {
    pub fn parse(text: &str) -> Result<UpdatePath> {
        if text.is_empty() {
            bail!(EMPTY_FIELD_NAME, "An empty update path is not valid.");
        }
        crate::depth::check_path_length(text.split('.').count())?;
        let mut steps = Vec::new();
        for name in text.split('.') {
            steps.push(step(name, text)?);
        }
        if steps.iter().filter(|s| **s == Step::Matched).count() > 1 {
            bail!(BAD_VALUE, "Too many positional (i.e. '$') elements found in path '{text}'");
        }
        if let Some(Step::Matched) = steps.first() {
            bail!(
                BAD_VALUE,
                "Cannot have positional (i.e. '$') element in the first position in path '{text}'"
            );
        }
        if let Some(Step::Every | Step::Filtered(_)) = steps.first() {
            bail!(
                BAD_VALUE,
                "Cannot have array filter identifier (i.e. '$[<id>]') element in the first position in path '{text}'"
            );
        }
        Ok(UpdatePath { text: text.to_string(), steps })
    }
    /// The names, `None` where a position is not in the text.
    pub fn names(&self) -> impl Iterator<Item = Option<&str>> {
        self.steps.iter().map(|s| match s {
            Step::Name(name) => Some(name.as_str()),
            Step::Matched | Step::Every | Step::Filtered(_) => None,
        })
    }
    pub fn is_positional(&self) -> bool {
        self.steps.contains(&Step::Matched)
    }
    pub fn is_dynamic(&self) -> bool {
        self.steps.iter().any(|s| !matches!(s, Step::Name(_)))
    }
    /// The top-level field.
    pub fn first(&self) -> &str {
        match self.steps.first() {
            Some(Step::Name(name)) => name,
            _ => "",
        }
    }
    /// Error: DollarPrefixedFieldName when the top-level field is not one that a document which exists may get by operators.
    pub fn check_storable(&self) -> Result<()> {
        let name = self.first();
        if name.starts_with('$') {
            bail!(
                DOLLAR_PREFIXED_FIELD_NAME,
                "The dollar ($) prefixed field '{name}' in '{}' is not allowed in the context of an update's replacement document. Consider using an aggregation pipeline with $replaceWith.",
                self.text
            );
        }
        Ok(())
    }
    pub fn last(&self) -> &str {
        self.text.rsplit('.').next().unwrap_or(&self.text)
    }
    /// Component by component ([`component_order`]): the order in which an update visits its paths.
    pub fn order(&self, other: &UpdatePath) -> Ordering {
        let (mut a, mut b) = (self.text.split('.'), other.text.split('.'));
        loop {
            match (a.next(), b.next()) {
                (None, None) => return Ordering::Equal,
                (None, Some(_)) => return Ordering::Less,
                (Some(_), None) => return Ordering::Greater,
                (Some(x), Some(y)) if x == y => {}
                (Some(x), Some(y)) => return component_order(x).cmp(&component_order(y)),
            }
        }
    }
    /// The shorter of two paths when it is the beginning of the other, or they are equal.
    pub fn conflict<'a>(&'a self, other: &'a UpdatePath) -> Option<&'a str> {
        let (short, long) = if self.steps.len() <= other.steps.len() { (self, other) } else { (other, self) };
        (long.steps[..short.steps.len()] == short.steps[..]).then_some(short.text.as_str())
    }
}

/// What components are ordered by: names that sort before digits, then positions as numbers, then all other names. Were a
/// position compared with a name as text, there would be no order: 9 < 10, "10" < "1a", "1a" < "9".
pub fn component_order(name: &str) -> (u8, usize, &str) {
    match array_index(name) {
        Some(position) => (1, position, ""),
        None if name < "0" => (0, 0, name),
        None => (2, 0, name),
    }
}

/// `a`, `a.b` and `a.b.c` of `a.b.c`.
pub fn beginnings(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('.').map(|(dot, _)| &path[..dot]).chain([path])
}

fn step(name: &str, text: &str) -> Result<Step> {
    match name {
        "" => bail!(
            EMPTY_FIELD_NAME,
            "The update path '{text}' contains an empty field name, which is not allowed."
        ),
        "$" => Ok(Step::Matched),
        "$[]" => Ok(Step::Every),
        _ => match name.strip_prefix("$[").and_then(|r| r.strip_suffix(']')) {
            Some(id) => Ok(Step::Filtered(id.to_string())),
            None => Ok(Step::Name(name.to_string())),
        },
    }
}
