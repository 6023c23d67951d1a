//! The update operators: one row each.

pub mod arithmetic;
pub mod array;
pub mod assign;
pub mod push;
pub mod rename;

use super::path::UpdatePath;
use super::tree::Place;
use crate::QueryContext;
use document::delta::Extent;
use document::{Result, Value};
use std::fmt;
use std::sync::Arc;

/// What a modifier made of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    None,
    Changed,
    /// The field goes; in an array null takes its place.
    Remove,
}

/// An operator with its argument, applied at one place.
pub trait Modifier: fmt::Debug + Send + Sync {
    /// Changes the value that is there.
    fn change(&self, value: &mut Value, place: &Place<'_>) -> Result<Change>;
    /// The value for a place where there is none; `None` leaves it so.
    fn create(&self, place: &Place<'_>) -> Result<Option<Value>>;
    /// How much of the value it writes.
    fn extent(&self) -> Extent {
        Extent::Whole
    }
    /// Whether documents are made on the way to a missing place.
    fn creates(&self, is_insert: bool) -> bool {
        let _ = is_insert;
        true
    }
    /// Whether a value that blocks the path (a scalar, or an array where a name is wanted) is an error.
    fn needs_viable_path(&self, is_insert: bool) -> bool {
        self.creates(is_insert)
    }
}

pub type Parsed = Result<Arc<dyn Modifier>>;

pub enum Parse {
    Modifier(fn(&UpdatePath, &Value, &QueryContext) -> Parsed),
    /// Two paths: not a modifier of one place.
    Rename,
}

pub struct Row {
    pub name: &'static str,
    pub parse: Parse,
}

const fn row(name: &'static str, parse: fn(&UpdatePath, &Value, &QueryContext) -> Parsed) -> Row {
    Row { name, parse: Parse::Modifier(parse) }
}

pub const TABLE: &[Row] = &[
    row("$set", assign::set),
    row("$setOnInsert", assign::set_on_insert),
    row("$unset", assign::unset),
    row("$currentDate", assign::current_date),
    row("$inc", arithmetic::inc),
    row("$mul", arithmetic::mul),
    row("$min", arithmetic::min),
    row("$max", arithmetic::max),
    row("$bit", arithmetic::bit),
    row("$push", push::push),
    row("$addToSet", array::add_to_set),
    row("$pop", array::pop),
    row("$pull", array::pull),
    row("$pullAll", array::pull_all),
    Row { name: "$rename", parse: Parse::Rename },
];
