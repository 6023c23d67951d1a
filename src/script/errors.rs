//! How a native fails: a JavaScript `Error` with the message a test looks for, and `.code` where the real one has it.

use rquickjs::{Coerced, Ctx, Error, Exception, Object, Value};

/// Throws `Error(message)`.
pub fn throw(ctx: &Ctx<'_>, message: &str) -> Error {
    Exception::throw_message(ctx, message)
}

/// Throws `Error(message)` with the members `code` and, when the code has a name, `codeName`.
pub fn throw_code(ctx: &Ctx<'_>, code: i32, message: &str) -> Error {
    match Exception::from_message(ctx.clone(), message) {
        Ok(exception) => {
            let object = exception.as_object();
            let _ = object.set("code", code);
            let _ = object.set("codeName", document::error::code_name(code));
            exception.throw()
        }
        Err(error) => error,
    }
}

/// Throws an error of the `document` crate, code and all.
pub fn throw_document(ctx: &Ctx<'_>, error: &document::Error) -> Error {
    throw_code(ctx, error.code, &error.message)
}

/// Any error of the engine as the JavaScript value it threw, so that what follows can look at one form.
pub fn caught<'js>(ctx: &Ctx<'js>, error: Error) -> Value<'js> {
    if error.is_exception() {
        return ctx.catch();
    }
    match Exception::from_message(ctx.clone(), &error.to_string()) {
        Ok(exception) => exception.into_object().into_value(),
        Err(_) => ctx.catch(),
    }
}

/// A thrown value as the shell prints it: `Error: message :` and the stack under it; anything else by its text.
pub fn describe<'js>(ctx: &Ctx<'js>, thrown: &Value<'js>) -> String {
    let text = match text_of(ctx, thrown) {
        Some(text) => text,
        None => "(an exception without a text)".to_string(),
    };
    let stack = thrown.as_object().and_then(|o: &Object| o.get::<_, Option<String>>("stack").ok().flatten());
    match stack {
        Some(stack) if !stack.is_empty() => format!("{text} :\n{}", stack.trim_end()),
        _ => text,
    }
}

/// `String(value)`, or `tojson(value)` for plain objects, which have nothing to say as strings.
fn text_of<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> Option<String> {
    let plain = value.as_object().is_some_and(|o| !o.is_error() && !o.is_function());
    if plain
        && let Ok(tojson) = ctx.globals().get::<_, rquickjs::Function>("tojson")
        && let Ok(text) = tojson.call::<_, Coerced<String>>((value.clone(),))
    {
        return Some(text.0);
    }
    match value.get::<Coerced<String>>() {
        Ok(text) => Some(text.0),
        Err(_) => {
            ctx.catch();
            None
        }
    }
}
