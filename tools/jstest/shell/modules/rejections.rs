//! Promises that were rejected and that nobody listens to: a test that forgets an `await` must not pass for it.
//!
//! The engine tells of every rejected promise without a handler, and again when it gets one. Those left when the jobs
//! have run dry are failures. They are kept in a JavaScript array, so that they live exactly as long as the runtime.

use crate::engine;
use rquickjs::{Array, Ctx, Object, Result, Value};

const NAME: &str = "__unhandledRejections";

pub(super) fn register(ctx: &Ctx<'_>) -> Result<()> {
    let property = rquickjs::object::Property::from(Array::new(ctx.clone())?).writable();
    ctx.globals().prop(NAME, property)
}

/// What the engine calls. Errors cannot be reported from here, and come only of memory having run out.
pub(super) fn track<'js>(ctx: &Ctx<'js>, promise: Value<'js>, reason: Value<'js>, handled: bool) {
    let Ok(pending) = ctx.globals().get::<_, Array>(NAME) else { return };
    let _ = if handled { forget(ctx, &pending, &promise) } else { remember(ctx, &pending, promise, reason) };
}

fn remember<'js>(
    ctx: &Ctx<'js>,
    pending: &Array<'js>,
    promise: Value<'js>,
    reason: Value<'js>,
) -> Result<()> {
    let entry = Object::new(ctx.clone())?;
    entry.set("promise", promise)?;
    entry.set("reason", reason)?;
    pending.set(pending.len(), entry)
}

fn forget<'js>(ctx: &Ctx<'js>, pending: &Array<'js>, promise: &Value<'js>) -> Result<()> {
    let kept = Array::new(ctx.clone())?;
    for entry in pending.iter::<Object>() {
        let entry = entry?;
        if entry.get::<_, Value>("promise")? != *promise {
            kept.set(kept.len(), entry)?;
        }
    }
    ctx.globals().set(NAME, kept)
}

/// Runs promises' continuations until none is left, then throws the first rejection nobody has handled.
pub fn settle(ctx: &Ctx<'_>) -> Result<()> {
    engine::run_jobs(ctx);
    let pending: Array = ctx.globals().get(NAME)?;
    if pending.is_empty() {
        return Ok(());
    }
    ctx.globals().set(NAME, Array::new(ctx.clone())?)?;
    let first: Object = pending.get(0)?;
    Err(ctx.throw(first.get("reason")?))
}
