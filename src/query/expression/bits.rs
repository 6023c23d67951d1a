//! `$bitAnd`, `$bitOr`, `$bitXor`, `$bitNot` on int32 and int64.

use super::{Arg, Eval, is_nullish, type_name};
use document::{Value, bail};

fn fold(name: &str, args: &[Arg], identity: i64, f: fn(i64, i64) -> i64) -> Eval {
    let (mut bits, mut wide) = (identity, false);
    for a in args {
        match a {
            Some(Value::Int32(i)) => bits = f(bits, *i as i64),
            Some(Value::Int64(i)) => {
                bits = f(bits, *i);
                wide = true;
            }
            v if is_nullish(v) => return Ok(Some(Value::Null)),
            v => bail!(TYPE_MISMATCH, "{name} only supports int and long operands, not {}.", type_name(v)),
        }
    }
    Ok(Some(if wide { Value::Int64(bits) } else { Value::Int32(bits as i32) }))
}

pub fn and(args: &mut [Arg]) -> Eval {
    fold("$bitAnd", args, -1, |a, b| a & b)
}
pub fn or(args: &mut [Arg]) -> Eval {
    fold("$bitOr", args, 0, |a, b| a | b)
}
pub fn xor(args: &mut [Arg]) -> Eval {
    fold("$bitXor", args, 0, |a, b| a ^ b)
}
pub fn not(args: &mut [Arg]) -> Eval {
    match &args[0] {
        Some(Value::Int32(i)) => Ok(Some(Value::Int32(!i))),
        Some(Value::Int64(i)) => Ok(Some(Value::Int64(!i))),
        v if is_nullish(v) => Ok(Some(Value::Null)),
        v => bail!(TYPE_MISMATCH, "$bitNot only supports int and long, not {}.", type_name(v)),
    }
}
