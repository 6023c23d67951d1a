//! An encoding of values whose byte order is the BSON order.
use crate::{Value, ValueRef};

/// The key of several components; `descending` may be shorter than `values` (the rest ascends).
pub fn encode(values: &[ValueRef<'_>], descending: &[bool]) -> Vec<u8> {
    let mut out = Vec::with_capacity(values.len() * 10);
    for (i, v) in values.iter().enumerate() {
        append(&mut out, *v, descending.get(i).copied().unwrap_or(false));
    }
    out
}
pub fn append(_out: &mut Vec<u8>, _v: ValueRef<'_>, _descending: bool) {
    todo!()
}
pub fn append_value(_out: &mut Vec<u8>, _v: &Value, _descending: bool) {
    todo!()
}
/// The number of bytes the first component of `key` takes; `None` when the bytes are no key.
pub fn component_length(_key: &[u8], _descending: bool) -> Option<usize> {
    todo!()
}
