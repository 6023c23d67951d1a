//! MongoDB Extended JSON v2.
use crate::{Result, Value};
/// Relaxed: plain numbers and ISO dates where nothing is lost that a reader of logs needs.
pub fn to_relaxed(_v: &Value) -> String {
    todo!()
}
/// Canonical: every type is kept.
pub fn to_canonical(_v: &Value) -> String {
    todo!()
}
/// Parses either form. Errors: FailedToParse.
pub fn from_str(_s: &str) -> Result<Value> {
    todo!()
}
