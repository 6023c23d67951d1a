//! The shell's functions over documents: comparisons, sizes, strict JSON, decimals.

use super::decode::from_exact_bson;
use super::encode::{to_bson, value_to_bson};
use super::native::{Native, native_of};
use super::text::{text_of, width};
use super::{Kernel, value_from_bson};
use crate::errors::{self, throw_code};
use crate::natives::define;
use document::{Decimal128, Doc, DocWriter, Document, Value as Bson, codes, compare, extended_json};
use rquickjs::prelude::{Opt, Rest};
use rquickjs::{Array, Ctx, Function, Object, Result, Value};
use std::cmp::Ordering;
use std::sync::Arc;

pub(super) fn register<'js>(ctx: &Ctx<'js>) -> Result<()> {
    define(ctx, "bsonWoCompare", bson_wo_compare)?;
    define(ctx, "bsonUnorderedFieldsCompare", bson_unordered_fields_compare)?;
    define(ctx, "bsonBinaryEqual", bson_binary_equal)?;
    define(ctx, "bsonObjToArray", bson_obj_to_array)?;
    define(ctx, "tostrictjson", to_strict_json)?;
    define(ctx, "numberDecimalsEqual", number_decimals_equal)?;
    define(ctx, "numberDecimalsAlmostEqual", number_decimals_almost_equal)?;
    define(ctx, "_decimal128Limit", decimal_limit)?;
    define(ctx, "_buildBsonObj", build_bson_obj)?;
    define(ctx, "_fnvHashToHexString", fnv_hash)?;
    define(ctx, "getStringWidth", string_width)?;
    let object: Object = ctx.globals().get("Object")?;
    let bsonsize = Function::new(ctx.clone(), bsonsize)?.with_name("bsonsize")?;
    object.prop("bsonsize", rquickjs::object::Property::from(bsonsize).writable().configurable())
}

/// The documents of exactly two arguments.
fn two<'js>(ctx: &Ctx<'js>, args: &[Value<'js>], function: &str) -> Result<(Vec<u8>, Vec<u8>)> {
    let [a, b] = args else {
        return Err(throw_code(ctx, codes::BAD_VALUE, &format!("{function} needs 2 arguments")));
    };
    Ok((document_of(ctx, a, function, "first")?, document_of(ctx, b, function, "second")?))
}

fn document_of<'js>(ctx: &Ctx<'js>, value: &Value<'js>, function: &str, which: &str) -> Result<Vec<u8>> {
    match value.as_object() {
        Some(object) if native_of(value).is_none() && !object.is_function() => to_bson(ctx, object),
        _ => {
            let text = format!("{which} argument to {function} must be an object");
            Err(throw_code(ctx, codes::BAD_VALUE, &text))
        }
    }
}

fn bson_wo_compare<'js>(ctx: Ctx<'js>, args: Rest<Value<'js>>) -> Result<i32> {
    let (a, b) = two(&ctx, &args.0, "bsonWoCompare")?;
    Ok(compare::compare_docs(Doc::from_validated(&a), Doc::from_validated(&b)) as i32)
}

fn bson_unordered_fields_compare<'js>(ctx: Ctx<'js>, args: Rest<Value<'js>>) -> Result<i32> {
    let (a, b) = two(&ctx, &args.0, "bsonUnorderedFieldsCompare")?;
    let sorted = |bytes: &[u8]| {
        let mut document = Doc::from_validated(bytes).to_document();
        super::results::sort_fields(&mut document);
        document
    };
    Ok(compare::compare_documents(&sorted(&a), &sorted(&b)) as i32)
}

fn bson_binary_equal<'js>(ctx: Ctx<'js>, args: Rest<Value<'js>>) -> Result<bool> {
    let (a, b) = two(&ctx, &args.0, "bsonBinaryEqual")?;
    Ok(a == b)
}

fn bson_obj_to_array<'js>(ctx: Ctx<'js>, args: Rest<Value<'js>>) -> Result<Array<'js>> {
    let [value] = args.0.as_slice() else {
        return Err(throw_code(&ctx, codes::BAD_VALUE, "bsonObjToArray needs 1 argument"));
    };
    let bytes: Arc<[u8]> = document_of(&ctx, value, "bsonObjToArray", "the")?.into();
    let array = Array::new(ctx.clone())?;
    for (i, element) in Doc::from_validated(&bytes).iter().enumerate() {
        let single = DocWriter::build(|w| w.element(&element));
        array.set(i, value_from_bson(&ctx, single.into_bytes().into())?)?;
    }
    Ok(array)
}

fn bsonsize<'js>(ctx: Ctx<'js>, args: Rest<Value<'js>>) -> Result<usize> {
    let [value] = args.0.as_slice() else {
        return Err(throw_code(&ctx, codes::BAD_VALUE, "bsonsize needs 1 argument"));
    };
    if value.is_null() {
        return Ok(0);
    }
    let Some(object) = value.as_object().filter(|_| native_of(value).is_none()) else {
        return Err(throw_code(&ctx, codes::BAD_VALUE, "argument to bsonsize has to be an object"));
    };
    to_bson(&ctx, object).map(|bytes| bytes.len())
}

/// One line of relaxed extended JSON, or with `true` or a width indented.
fn to_strict_json<'js>(ctx: Ctx<'js>, value: Value<'js>, pretty: Opt<Value<'js>>) -> Result<String> {
    if value.as_object().is_none() {
        return Err(throw_code(&ctx, codes::BAD_VALUE, "tostrictjson takes an object"));
    }
    let bytes = value_to_bson(&ctx, &value)?;
    let holder = Doc::from_validated(&bytes).to_document();
    let text = extended_json::to_relaxed(holder.get("").unwrap_or(&Bson::Null));
    let indented =
        pretty.0.is_some_and(|p| p.as_bool().unwrap_or_else(|| p.as_number().is_some_and(|n| n > 0.0)));
    if !indented {
        return Ok(text);
    }
    let parsed: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| errors::throw(&ctx, &error.to_string()))?;
    Ok(format!("{parsed:#}"))
}

fn decimals<'js>(
    ctx: &Ctx<'js>,
    a: &Value<'js>,
    b: &Value<'js>,
    function: &str,
) -> Result<(Decimal128, Decimal128)> {
    match (native_of(a), native_of(b)) {
        (Some(Native::Decimal(a)), Some(Native::Decimal(b))) => Ok((a, b)),
        _ => Err(throw_code(ctx, codes::BAD_VALUE, &format!("{function} needs two NumberDecimals"))),
    }
}

fn decimal_order(a: Decimal128, b: Decimal128) -> Ordering {
    compare::compare_values(&Bson::Decimal128(a), &Bson::Decimal128(b))
}

fn number_decimals_equal<'js>(ctx: Ctx<'js>, a: Value<'js>, b: Value<'js>) -> Result<bool> {
    let (a, b) = decimals(&ctx, &a, &b, "numberDecimalsEqual")?;
    Ok(decimal_order(a, b).is_eq())
}

/// Equal in the given number of significant digits; ten unless told.
fn number_decimals_almost_equal<'js>(
    ctx: Ctx<'js>,
    a: Value<'js>,
    b: Value<'js>,
    places: Opt<f64>,
) -> Result<bool> {
    let (a, b) = decimals(&ctx, &a, &b, "numberDecimalsAlmostEqual")?;
    if decimal_order(a, b).is_eq() {
        return Ok(true);
    }
    if !a.is_finite() || !b.is_finite() {
        return Ok(false);
    }
    let places = places.0.unwrap_or(10.0) as i32;
    let larger = if decimal_order(a.absolute(), b.absolute()).is_gt() { a.absolute() } else { b.absolute() };
    let tolerance = larger.times(Decimal128::from_parts(false, 1, -places));
    Ok(decimal_order(a.minus(b).absolute(), tolerance).is_le())
}

/// The largest (or smallest positive, or lowest) decimal there is.
fn decimal_limit<'js>(ctx: Ctx<'js>, which: Opt<String>) -> Result<Value<'js>> {
    let largest = 10u128.pow(34) - 1;
    let value = match which.0.as_deref() {
        None | Some("+Max" | "max") => Decimal128::from_parts(false, largest, 6111),
        Some("-Max" | "min") => Decimal128::from_parts(true, largest, 6111),
        Some("+Min") => Decimal128::from_parts(false, 1, -6176),
        Some("-Min") => Decimal128::from_parts(true, 1, -6176),
        Some(other) => {
            return Err(throw_code(&ctx, codes::BAD_VALUE, &format!("Unknown decimal limit: {other}")));
        }
    };
    Kernel::of(&ctx)?.instance(Native::Decimal(value)).map(Object::into_value)
}

/// `_buildBsonObj(name, value, ...)`: a document that may repeat a name, and is sent exactly so.
fn build_bson_obj<'js>(ctx: Ctx<'js>, args: Rest<Value<'js>>) -> Result<Object<'js>> {
    if !args.0.len().is_multiple_of(2) {
        return Err(throw_code(&ctx, codes::BAD_VALUE, "_buildBsonObj takes an even number of arguments"));
    }
    let mut document = Document::new();
    for pair in args.0.chunks(2) {
        let bytes = value_to_bson(&ctx, &pair[1])?;
        let value = Doc::from_validated(&bytes).get("").map_or(Bson::Undefined, |v| v.to_value());
        let name = text_of(&ctx, &pair[0])?;
        if name.contains('\0') {
            return Err(throw_code(
                &ctx,
                codes::BAD_VALUE,
                "_buildBsonObj: a field's name contains a null char",
            ));
        }
        document.push(name, value);
    }
    from_exact_bson(&ctx, document.to_vec().into())
}

/// FNV-1a of 64 bits over the UTF-8 of the text, in upper-case hexadecimal.
fn fnv_hash<'js>(ctx: Ctx<'js>, value: Value<'js>) -> Result<String> {
    let text = text_of(&ctx, &value)?;
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, b| (hash ^ b as u64).wrapping_mul(0x100_0000_01b3));
    Ok(format!("{hash:016X}"))
}

fn string_width<'js>(ctx: Ctx<'js>, value: Value<'js>) -> Result<usize> {
    text_of(&ctx, &value).map(|text| width(&text))
}
