//! How natives are defined, and how their arguments are read.

use crate::{bson, errors};
use document::{DocBuf, codes};
use rquickjs::function::IntoJsFunc;
use rquickjs::{Array, Coerced, Ctx, Function, Result, Value};

/// Defines a global function under `name`.
pub fn define<'js, P, F>(ctx: &Ctx<'js>, name: &str, native: F) -> Result<()>
where
    F: IntoJsFunc<'js, P> + 'js,
{
    ctx.globals().set(name, Function::new(ctx.clone(), native)?.with_name(name)?)
}

/// An argument as text: strings as they are, numbers and the shell's number classes as digits, the rest by `String()`.
pub fn text<'js>(value: &Value<'js>) -> Result<String> {
    let primitive = primitive(value)?;
    Ok(primitive.get::<Coerced<String>>()?.0)
}

/// An argument as a number, also when it is an instance of the shell's number classes.
pub fn number<'js>(value: &Value<'js>) -> Result<f64> {
    Ok(primitive(value)?.get::<Coerced<f64>>()?.0)
}

/// `NumberLong` and its like by the number they hold, everything else as it is.
fn primitive<'js>(value: &Value<'js>) -> Result<Value<'js>> {
    let Some(object) = value.as_object().filter(|object| !object.is_array() && !object.is_function()) else {
        return Ok(value.clone());
    };
    if let Some(to_number) = object.get::<_, Value>("toNumber")?.into_function() {
        return to_number.call((rquickjs::prelude::This(object.clone()),));
    }
    Ok(value.clone())
}

/// The elements of an array as texts.
pub fn texts(array: &Array<'_>) -> Result<Vec<String>> {
    array.iter::<Value>().map(|value| text(&value?)).collect()
}

/// A `NumberLong`, or a plain number as long as the kernel has not defined the class.
pub fn long<'js>(ctx: &Ctx<'js>, value: i64) -> Result<Value<'js>> {
    match ctx.globals().get::<_, Value>("NumberLong")?.into_function() {
        Some(class) => class.call((value.to_string(),)),
        None => Ok(Value::new_number(ctx.clone(), value as f64)),
    }
}

/// An argument as a document; anything but an object is refused in the name of `function`.
pub fn document<'js>(ctx: &Ctx<'js>, value: &Value<'js>, function: &str) -> Result<DocBuf> {
    let plain = value.as_object().filter(|object| !object.is_array() && !object.is_function());
    match plain {
        Some(object) => bson::to_bson(ctx, object).map(DocBuf::from_validated),
        None => Err(errors::throw_code(ctx, codes::BAD_VALUE, &format!("{function} takes an object"))),
    }
}
