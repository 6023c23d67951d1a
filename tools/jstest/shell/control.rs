//! `print`, `sleep`, `quit` and what else a script says to the shell itself.

mod build;
mod random;
#[cfg(test)]
mod tests;

pub use build::VERSION;

use crate::natives::{define, number};
use crate::{Options, Shell, engine, golden, program};
use parking_lot::Mutex;
use rquickjs::prelude::{Opt, Rest};
use rquickjs::{Coerced, Ctx, Function, Object, Result, Value};
use std::io::Write;
use std::rc::Rc;
use std::time::Duration;

/// State that all threads of the process share.
#[derive(Default)]
pub struct State {
    generator: Mutex<random::Generator>,
}

pub fn register<'js>(ctx: &Ctx<'js>, shell: &Rc<Shell>) -> Result<()> {
    let out = shell.clone();
    define(ctx, "print", move |values: Rest<Coerced<String>>| {
        out.print_line(&values.0.into_iter().map(|v| v.0).collect::<Vec<_>>().join(" "));
    })?;
    define(ctx, "sleep", |ms: Value<'_>| -> Result<()> {
        let ms = number(&ms)?;
        if ms > 0.0 {
            std::thread::sleep(Duration::try_from_secs_f64(ms / 1000.0).unwrap_or_default());
        }
        Ok(())
    })?;
    define(ctx, "gc", |ctx: Ctx<'_>| ctx.run_gc())?;
    // Nothing interrupts a script here but the end of its process.
    define(ctx, "_runWithoutInterrupt", |action: Function<'js>| -> Result<Value<'js>> { action.call(()) })?;
    register_quit(ctx, shell)?;
    register_random(ctx, shell)?;
    register_mode(ctx, shell)?;
    build::register(ctx)
}

/// `quit(code)` ends the process at once, from whatever thread: what the test started is stopped first.
fn register_quit(ctx: &Ctx<'_>, shell: &Rc<Shell>) -> Result<()> {
    let shell = shell.clone();
    define(ctx, "quit", move |code: Opt<Value<'_>>| -> Result<()> {
        let code = code.0.filter(|code| !code.is_undefined()).map_or(Ok(0.0), |code| number(&code))?;
        let mut status = code as i32;
        // What ends well must have written what it should.
        if status == 0
            && let Err(reason) = golden::finish(&shell.shared)
        {
            shell.print_line(&reason);
            status = engine::EXIT_UNCAUGHT;
        }
        program::Programs::stop_all(&shell.shared);
        let _ = shell.shared.output.lock().flush();
        std::process::exit(status);
    })
}

/// `_srand(seed)` and `_rand()`, one sequence for the process; `Random` is made of them.
fn register_random(ctx: &Ctx<'_>, shell: &Rc<Shell>) -> Result<()> {
    let of = shell.clone();
    define(ctx, "_srand", move |seed: Opt<Value<'_>>| -> Result<f64> {
        let seed = match seed.0.filter(|seed| !seed.is_undefined()) {
            Some(seed) => number(&seed)?,
            None => f64::from(random::unpredictable()),
        };
        *of.shared.control.generator.lock() = random::Generator::new(seed as i64 as u64);
        Ok(seed)
    })?;
    let of = shell.clone();
    define(ctx, "_rand", move || of.shared.control.generator.lock().next())?;
    // The engine seeds its own by the clock, and shells that start together would draw the same numbers.
    let math: Object<'_> = ctx.globals().get("Math")?;
    math.set("random", Function::new(ctx.clone(), random::fraction)?.with_name("random")?)
}

/// What the flags said, for the library to ask.
fn register_mode<'js>(ctx: &Ctx<'js>, shell: &Rc<Shell>) -> Result<()> {
    let options = shell.options.clone();
    ctx.globals().set("__quiet", options.quiet)?;
    let o = options.clone();
    define(ctx, "isInteractive", move || o.shell)?;
    let o = options.clone();
    define(ctx, "_shouldRetryWrites", move || o.retry_writes)?;
    let o = options.clone();
    define(ctx, "_shouldUseImplicitSessions", move || !o.implicit_sessions_off)?;
    let o = options.clone();
    define(ctx, "_readMode", move || o.read_mode.clone().unwrap_or("commands".into()))?;
    let o = options.clone();
    define(ctx, "_writeMode", move || o.write_mode.clone().unwrap_or("commands".into()))?;
    let o = options.clone();
    define(ctx, "_apiParameters", move |ctx: Ctx<'js>| api_parameters(&ctx, &o))?;
    let o = options.clone();
    define(ctx, "getJSHeapLimitMB", move || o.heap_limit_mb.unwrap_or(0))
}

fn api_parameters<'js>(ctx: &Ctx<'js>, options: &Options) -> Result<Object<'js>> {
    let parameters = Object::new(ctx.clone())?;
    if let Some(version) = &options.api_version {
        parameters.set("version", version.as_str())?;
        parameters.set("strict", options.api_strict)?;
        parameters.set("deprecationErrors", options.api_deprecation_errors)?;
    }
    Ok(parameters)
}
