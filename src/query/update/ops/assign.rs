//! `$set`, `$setOnInsert`, `$unset`, `$currentDate`.

use super::{Change, Modifier, Parsed};
use crate::QueryContext;
use crate::text;
use crate::update::path::UpdatePath;
use crate::update::tree::Place;
use document::{Result, Value, bail};
use std::sync::Arc;

#[derive(Debug)]
struct Set {
    value: Value,
    only_on_insert: bool,
}

impl Modifier for Set {
    fn change(&self, value: &mut Value, place: &Place<'_>) -> Result<Change> {
        if (self.only_on_insert && !place.is_insert) || *value == self.value {
            return Ok(Change::None);
        }
        *value = self.value.clone();
        Ok(Change::Changed)
    }
    fn create(&self, place: &Place<'_>) -> Result<Option<Value>> {
        Ok((!self.only_on_insert || place.is_insert).then(|| self.value.clone()))
    }
    fn creates(&self, is_insert: bool) -> bool {
        !self.only_on_insert || is_insert
    }
}

pub fn set(_: &UpdatePath, v: &Value, _: &QueryContext) -> Parsed {
    Ok(Arc::new(Set { value: v.clone(), only_on_insert: false }))
}
pub fn set_on_insert(_: &UpdatePath, v: &Value, _: &QueryContext) -> Parsed {
    Ok(Arc::new(Set { value: v.clone(), only_on_insert: true }))
}

#[derive(Debug)]
struct Unset;

impl Modifier for Unset {
    fn change(&self, _: &mut Value, _: &Place<'_>) -> Result<Change> {
        Ok(Change::Remove)
    }
    fn create(&self, _: &Place<'_>) -> Result<Option<Value>> {
        Ok(None)
    }
    fn creates(&self, _: bool) -> bool {
        false
    }
}

pub fn unset(_: &UpdatePath, _: &Value, _: &QueryContext) -> Parsed {
    Ok(Arc::new(Unset))
}

/// The present, in one of the two types.
pub fn current_date(path: &UpdatePath, v: &Value, ctx: &QueryContext) -> Parsed {
    let date = Value::DateTime(ctx.now_ms);
    let value = match v {
        Value::Boolean(_) => date,
        Value::Document(d) => {
            if let Some(other) = d.keys().find(|k| *k != "$type") {
                bail!(BAD_VALUE, "Unrecognized $currentDate option: {other}");
            }
            match d.get_str("$type") {
                Some("date") => date,
                Some("timestamp") => Value::Timestamp(ctx.cluster_time),
                _ => bail!(
                    BAD_VALUE,
                    "The '$type' string field is required to be 'date' or 'timestamp': {{$currentDate: {{field : {{$type: 'date'}}}}}}"
                ),
            }
        }
        other => bail!(
            BAD_VALUE,
            "{} is not valid type for $currentDate. Please use a boolean ('true') or a $type expression ({{$type: 'timestamp/date'}}).",
            other.type_name()
        ),
    };
    let _ = (path, text::owned);
    Ok(Arc::new(Set { value, only_on_insert: false }))
}
