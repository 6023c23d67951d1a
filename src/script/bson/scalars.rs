//! What the kernel's classes call: making, reading and printing numbers, ids and bytes.

use super::native::{Kernel, Native, native_of};
use super::text::text_of;
use crate::errors::{self, throw_code};
use document::encoding::{self, from_base64, from_hex};
use document::{Binary, Decimal128, ObjectId, codes, oid};
use rquickjs::{Class, Ctx, Function, Object, Result, Value};
use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

pub(super) fn register<'js>(ctx: &Ctx<'js>, native: &Object<'js>) -> Result<()> {
    native.set(
        "install",
        Function::new(ctx.clone(), |ctx: Ctx<'js>, from: Object<'js>| Kernel::install(&ctx, &from))?,
    )?;
    native.set("newLong", Function::new(ctx.clone(), new_long)?)?;
    native.set("newInt", Function::new(ctx.clone(), new_int)?)?;
    native.set("newDecimal", Function::new(ctx.clone(), new_decimal)?)?;
    native.set("newObjectId", Function::new(ctx.clone(), new_object_id)?)?;
    native.set("newBinary", Function::new(ctx.clone(), new_binary)?)?;
    native.set("newHex", Function::new(ctx.clone(), new_hex)?)?;
    native.set("newUuid", Function::new(ctx.clone(), new_uuid)?)?;
    native.set("newMarked", Function::new(ctx.clone(), new_marked)?)?;
    native.set("className", Function::new(ctx.clone(), class_name)?)?;
    native.set("spell", Function::new(ctx.clone(), spell)?)?;
    native.set("digits", Function::new(ctx.clone(), digits)?)?;
    native.set("toNumber", Function::new(ctx.clone(), to_number)?)?;
    native.set("longHalf", Function::new(ctx.clone(), long_half)?)?;
    native.set("compareLongs", Function::new(ctx.clone(), compare_longs)?)?;
    native.set("hex", Function::new(ctx.clone(), hex)?)?;
    native.set("base64", Function::new(ctx.clone(), base64)?)?;
    native.set("subtype", Function::new(ctx.clone(), subtype)?)?;
    native.set("length", Function::new(ctx.clone(), length)?)
}

fn make<'js>(native: Native, prototype: Object<'js>) -> Result<Value<'js>> {
    Class::instance_proto(native, prototype).map(Class::into_value)
}

/// `NumberLong(number | text | another number)`, `NumberLong(floatApprox, text)`, `NumberLong(floatApprox, top, bottom)`.
fn new_long<'js>(ctx: Ctx<'js>, prototype: Object<'js>, args: Vec<Value<'js>>) -> Result<Value<'js>> {
    let value = match args.as_slice() {
        [] => 0,
        [one] => long_from(&ctx, one)?,
        [_, text] if text.is_string() => parse_long(&ctx, &text_of(&ctx, text)?)?,
        [_, top, bottom] => match (top.as_number(), bottom.as_number()) {
            (Some(top), Some(bottom)) => {
                ((top as i64 as u64) << 32 | (bottom as i64 as u64 & 0xffff_ffff)) as i64
            }
            _ => return Err(throw_code(&ctx, codes::BAD_VALUE, "top and bottom must be numbers")),
        },
        _ => return Err(throw_code(&ctx, codes::BAD_VALUE, "NumberLong needs 0, 1 or 3 arguments")),
    };
    make(Native::Long(value), prototype)
}

fn long_from<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> Result<i64> {
    if let Some(number) = value.as_number() {
        return Ok(number as i64);
    }
    if value.is_string() {
        return parse_long(ctx, &text_of(ctx, value)?);
    }
    match native_of(value) {
        Some(Native::Long(v)) => Ok(v),
        Some(Native::Int(v)) => Ok(v as i64),
        Some(Native::Decimal(v)) => Ok(v.to_i64_saturating()),
        _ => Err(throw_code(ctx, codes::BAD_VALUE, "number must be a NumberLong, a number or a string")),
    }
}

fn parse_long(ctx: &Ctx<'_>, text: &str) -> Result<i64> {
    text.parse().map_err(|_| {
        throw_code(ctx, codes::FAILED_TO_PARSE, &format!("could not convert string to long long: \"{text}\""))
    })
}

fn new_int<'js>(ctx: Ctx<'js>, prototype: Object<'js>, args: Vec<Value<'js>>) -> Result<Value<'js>> {
    let value = match args.as_slice() {
        [] => 0,
        [one] => match native_of(one) {
            Some(Native::Int(v)) => v,
            Some(Native::Long(v)) => v as i32,
            Some(Native::Decimal(v)) => v.to_i64_saturating().clamp(i32::MIN as i64, i32::MAX as i64) as i32,
            _ => int_from(&ctx, one)?,
        },
        _ => return Err(throw_code(&ctx, codes::BAD_VALUE, "NumberInt needs 0 or 1 argument")),
    };
    make(Native::Int(value), prototype)
}

/// A number is cut to 32 bits as JavaScript's operators cut it.
fn int_from<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> Result<i32> {
    if let Some(number) = value.as_number() {
        return Ok(if number.is_finite() { (number % 4_294_967_296.0) as i64 as i32 } else { 0 });
    }
    let text = text_of(ctx, value)?;
    text.trim().parse::<f64>().map(|number| number as i64 as i32).map_err(|_| {
        throw_code(ctx, codes::FAILED_TO_PARSE, &format!("Failed to parse number '{text}' in NumberInt"))
    })
}

fn new_decimal<'js>(ctx: Ctx<'js>, prototype: Object<'js>, args: Vec<Value<'js>>) -> Result<Value<'js>> {
    let value = match args.as_slice() {
        [] => Decimal128::ZERO,
        [one] => decimal_from(&ctx, one)?,
        _ => return Err(throw_code(&ctx, codes::BAD_VALUE, "NumberDecimal needs 0 or 1 argument")),
    };
    make(Native::Decimal(value), prototype)
}

pub(super) fn decimal_from<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> Result<Decimal128> {
    if let Some(number) = value.as_number() {
        return Ok(Decimal128::from_f64(number));
    }
    match native_of(value) {
        Some(Native::Decimal(v)) => return Ok(v),
        Some(Native::Long(v)) => return Ok(Decimal128::from_i64(v)),
        Some(Native::Int(v)) => return Ok(Decimal128::from_i64(v as i64)),
        _ if value.is_string() => {}
        _ => return Err(throw_code(ctx, codes::BAD_VALUE, "NumberDecimal takes a number or a string")),
    }
    let text = text_of(ctx, value)?;
    Decimal128::parse(&text).ok_or_else(|| {
        throw_code(ctx, codes::FAILED_TO_PARSE, &format!("Failed to parse string \"{text}\" to a decimal"))
    })
}

fn new_object_id<'js>(ctx: Ctx<'js>, prototype: Object<'js>, args: Vec<Value<'js>>) -> Result<Value<'js>> {
    let id = match args.as_slice() {
        [] => generate_object_id(),
        [one] => match native_of(one) {
            Some(Native::ObjectId(id)) => id,
            _ => parse_object_id(&ctx, &text_of(&ctx, one)?)?,
        },
        _ => return Err(throw_code(&ctx, codes::BAD_VALUE, "ObjectId takes 0 or 1 argument")),
    };
    make(Native::ObjectId(id), prototype)
}

fn parse_object_id(ctx: &Ctx<'_>, text: &str) -> Result<ObjectId> {
    if text.len() != 24 {
        return Err(throw_code(ctx, codes::BAD_VALUE, "invalid object id: length"));
    }
    ObjectId::parse(text).ok_or_else(|| throw_code(ctx, codes::BAD_VALUE, "invalid object id: not hex"))
}

fn generate_object_id() -> ObjectId {
    static GENERATOR: LazyLock<oid::ObjectIdGenerator> = LazyLock::new(|| {
        let seed = *uuid::Uuid::new_v4().as_bytes();
        oid::ObjectIdGenerator::new([seed[0], seed[1], seed[2], seed[3], seed[4], seed[5], seed[9], seed[10]])
    });
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs() as u32);
    ObjectId::generate(&GENERATOR, seconds)
}

fn new_binary<'js>(
    ctx: Ctx<'js>,
    prototype: Object<'js>,
    subtype: Value<'js>,
    data: Value<'js>,
) -> Result<Value<'js>> {
    let (subtype, text) = subtype_and_text(&ctx, &subtype, &data, "BinData")?;
    let bytes = from_base64(&text).ok_or_else(|| throw_code(&ctx, 10270, "invalid base64 in BinData"))?;
    make(Native::Binary(Binary { subtype, bytes }), prototype)
}

fn new_hex<'js>(
    ctx: Ctx<'js>,
    prototype: Object<'js>,
    subtype: Value<'js>,
    data: Value<'js>,
) -> Result<Value<'js>> {
    let (subtype, text) = subtype_and_text(&ctx, &subtype, &data, "HexData")?;
    let bytes = from_hex(&text).ok_or_else(|| {
        throw_code(&ctx, codes::BAD_VALUE, "HexData data must be hex digits, two for each byte")
    })?;
    make(Native::Binary(Binary { subtype, bytes }), prototype)
}

fn subtype_and_text<'js>(
    ctx: &Ctx<'js>,
    subtype: &Value<'js>,
    data: &Value<'js>,
    class: &str,
) -> Result<(u8, String)> {
    let subtype = read_subtype(ctx, subtype, class)?;
    if !data.is_string() {
        return Err(throw_code(ctx, codes::BAD_VALUE, &format!("{class} data must be a String")));
    }
    Ok((subtype, text_of(ctx, data)?))
}

fn read_subtype(ctx: &Ctx<'_>, value: &Value<'_>, class: &str) -> Result<u8> {
    let Some(number) = value.as_number().or_else(|| to_number(value.clone()).ok()) else {
        return Err(throw_code(ctx, codes::BAD_VALUE, &format!("{class} subtype must be a Number")));
    };
    if !(0.0..=255.0).contains(&number) {
        return Err(throw_code(ctx, codes::BAD_VALUE, &format!("{class} subtype must be between 0 and 255")));
    }
    Ok(number as u8)
}

fn new_uuid<'js>(ctx: Ctx<'js>, prototype: Object<'js>, args: Vec<Value<'js>>) -> Result<Value<'js>> {
    let bytes = match args.as_slice() {
        [] => uuid::Uuid::new_v4().as_bytes().to_vec(),
        [text] if text.is_string() => {
            let text = text_of(&ctx, text)?;
            let digits: String = text.chars().filter(|c| *c != '-').collect();
            from_hex(&digits).filter(|bytes| bytes.len() == 16).ok_or_else(|| {
                throw_code(&ctx, codes::INVALID_UUID, &format!("Invalid UUID string: {text}"))
            })?
        }
        _ => return Err(throw_code(&ctx, codes::BAD_VALUE, "UUID needs 0 or 1 string argument")),
    };
    make(Native::Binary(Binary { subtype: 4, bytes }), prototype)
}

fn new_marked<'js>(ctx: Ctx<'js>, prototype: Object<'js>, class: String) -> Result<Value<'js>> {
    let native = match class.as_str() {
        "Timestamp" => Native::Timestamp,
        "Code" => Native::Code,
        "DBPointer" => Native::Pointer,
        _ => return Err(errors::throw(&ctx, &format!("no class {class}"))),
    };
    make(native, prototype)
}

/// The class of a native value, by the name of its constructor.
fn class_name(value: Value<'_>) -> Option<&'static str> {
    Some(match native_of(&value)? {
        Native::Long(_) => "NumberLong",
        Native::Int(_) => "NumberInt",
        Native::Decimal(_) => "NumberDecimal",
        Native::ObjectId(_) => "ObjectId",
        Native::Binary(_) => "BinData",
        Native::Timestamp => "Timestamp",
        Native::Code => "Code",
        Native::Pointer => "DBPointer",
    })
}

/// The value as the shell prints it.
fn spell<'js>(ctx: Ctx<'js>, value: Value<'js>) -> Result<String> {
    Ok(match needed(&ctx, &value)? {
        Native::Long(v) if v.unsigned_abs() < 1 << 31 => format!("NumberLong({v})"),
        Native::Long(v) => format!("NumberLong(\"{v}\")"),
        Native::Int(v) => format!("NumberInt({v})"),
        Native::Decimal(v) => format!("NumberDecimal(\"{v}\")"),
        Native::ObjectId(v) => format!("ObjectId(\"{}\")", v.hex()),
        Native::Binary(b) => match <[u8; 16]>::try_from(b.bytes.as_slice()) {
            Ok(bytes) if b.subtype == 4 => format!("UUID(\"{}\")", document::uuid::to_string(&bytes)),
            _ => format!("BinData({},\"{}\")", b.subtype, encoding::base64(&b.bytes)),
        },
        Native::Timestamp | Native::Code | Native::Pointer => "[object]".to_string(),
    })
}

/// The bare digits of a number or id.
fn digits<'js>(ctx: Ctx<'js>, value: Value<'js>) -> Result<String> {
    Ok(match needed(&ctx, &value)? {
        Native::Long(v) => v.to_string(),
        Native::Int(v) => v.to_string(),
        Native::Decimal(v) => v.to_string(),
        Native::ObjectId(v) => v.hex(),
        _ => return Err(errors::throw(&ctx, "not a number")),
    })
}

fn needed<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> Result<Native> {
    native_of(value).ok_or_else(|| errors::throw(ctx, "the receiver is no value of this class"))
}

fn to_number(value: Value<'_>) -> Result<f64> {
    match native_of(&value) {
        Some(Native::Long(v)) => Ok(v as f64),
        Some(Native::Int(v)) => Ok(v as f64),
        Some(Native::Decimal(v)) => Ok(v.to_f64()),
        _ => Err(errors::throw(value.ctx(), "the receiver is no number")),
    }
}

/// The upper (signed) or lower (unsigned) 32 bits of a NumberLong.
fn long_half<'js>(ctx: Ctx<'js>, value: Value<'js>, upper: bool) -> Result<f64> {
    match needed(&ctx, &value)? {
        Native::Long(v) if upper => Ok((v >> 32) as f64),
        Native::Long(v) => Ok(v as u32 as f64),
        _ => Err(errors::throw(&ctx, "the receiver is no NumberLong")),
    }
}

fn compare_longs<'js>(ctx: Ctx<'js>, a: Value<'js>, b: Value<'js>) -> Result<i32> {
    match (native_of(&a), native_of(&b)) {
        (Some(Native::Long(a)), Some(Native::Long(b))) => Ok(a.cmp(&b) as i32),
        _ => Err(throw_code(&ctx, codes::BAD_VALUE, "NumberLong.prototype.compare takes a NumberLong")),
    }
}

fn bytes_of<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> Result<Binary> {
    match needed(ctx, value)? {
        Native::Binary(binary) => Ok(binary),
        _ => Err(errors::throw(ctx, "the receiver is no BinData")),
    }
}

fn hex<'js>(ctx: Ctx<'js>, value: Value<'js>) -> Result<String> {
    bytes_of(&ctx, &value).map(|binary| encoding::hex(&binary.bytes))
}
fn base64<'js>(ctx: Ctx<'js>, value: Value<'js>) -> Result<String> {
    bytes_of(&ctx, &value).map(|binary| encoding::base64(&binary.bytes))
}
fn subtype<'js>(ctx: Ctx<'js>, value: Value<'js>) -> Result<u8> {
    bytes_of(&ctx, &value).map(|binary| binary.subtype)
}
fn length<'js>(ctx: Ctx<'js>, value: Value<'js>) -> Result<usize> {
    bytes_of(&ctx, &value).map(|binary| binary.bytes.len())
}
