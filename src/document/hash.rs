//! The hash of hashed indexes and hashed shard keys.
use crate::{Value, ValueRef};
pub fn hash64(_v: ValueRef<'_>) -> i64 {
    todo!()
}
pub fn hash64_value(v: &Value) -> i64 {
    v.to_holder().get("").map_or(0, hash64)
}
