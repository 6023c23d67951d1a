//! One session's runtime: its globals, what it has compiled, and how a call is made in it.

use crate::message::Call;
use crate::natives::{define, number};
use crate::{LIBRARY, SCRIPT_STACK_BYTES, Source, bson, errors, evaluate, load_kernel};
use document::{Doc, DocWriter, codes};
use rquickjs::function::{Args, This};
use rquickjs::prelude::{Opt, Rest};
use rquickjs::{Array, Coerced, Context, Ctx, Function, Object, Runtime, Value};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a server's scripts have beside the types.
const HELPERS: Source = ("server", include_str!("../library/server.js"));
/// Lines and bytes of a call that are passed on to the server's log.
const PRINTED_LINES_MAX: usize = 100;
const PRINTED_BYTES_MAX: usize = 64 << 10;

/// How a call failed.
#[derive(Debug)]
pub(super) struct Failure {
    /// `None`: JSInterpreterFailure.
    pub code: Option<i32>,
    pub message: String,
}

/// What a call gave.
#[derive(Debug)]
pub(super) enum Result {
    /// `{"": value}`.
    Value(Vec<u8>),
    /// The `{k, v}` of each emit.
    Emitted(Vec<Vec<u8>>),
}

/// What the natives of a session share with its calls.
#[derive(Default)]
struct Shared {
    stop_at: Cell<Option<Instant>>,
    printed: RefCell<Vec<String>>,
    printed_bytes: Cell<usize>,
    emitted: RefCell<Vec<Vec<u8>>>,
    emitted_bytes: Cell<usize>,
    /// `None` where there is no `emit`.
    emitted_bytes_max: Cell<Option<usize>>,
}

pub(super) struct Session {
    // Declared before the runtime, so that they are dropped first.
    functions: HashMap<Box<str>, rquickjs::Persistent<Function<'static>>>,
    context: Context,
    _runtime: Runtime,
    shared: Rc<Shared>,
    /// The scope whose variables are set.
    scope: Vec<u8>,
}

impl Session {
    /// A fresh set of globals whose objects may take `heap_bytes`.
    pub(super) fn new(heap_bytes: usize, version: &str) -> std::result::Result<Session, Failure> {
        let failed = |e: rquickjs::Error| Failure { code: None, message: e.to_string() };
        let runtime = Runtime::new().map_err(failed)?;
        runtime.set_max_stack_size(SCRIPT_STACK_BYTES);
        runtime.set_memory_limit(heap_bytes);
        let shared = Rc::new(Shared::default());
        let of = shared.clone();
        runtime.set_interrupt_handler(Some(Box::new(move || of.is_late())));
        let context = Context::full(&runtime).map_err(failed)?;
        let session =
            Session { functions: HashMap::new(), context, _runtime: runtime, shared, scope: Vec::new() };
        let shared = session.shared.clone();
        session.with(|ctx| {
            bson::register(ctx)?;
            load_kernel(ctx, &[])?;
            register(ctx, &shared)?;
            let version = version.to_string();
            define(ctx, "version", move || version.clone())?;
            evaluate(ctx, LIBRARY.0, LIBRARY.1)?;
            evaluate(ctx, HELPERS.0, HELPERS.1).map(|_| ())
        })?;
        Ok(session)
    }
    /// Calls a function.
    pub(super) fn call(&mut self, call: &Call<'_>) -> std::result::Result<Result, Failure> {
        self.shared.begin(call);
        let done = self.set_scope(call.scope).and_then(|()| self.call_in_time(call));
        if self.shared.is_late() {
            return Err(Failure { code: None, message: "Interrupted by the host".into() });
        }
        self.shared.stop_at.set(None);
        done
    }
    /// The lines printed since the last call.
    pub(super) fn take_printed(&self) -> Vec<String> {
        self.shared.printed_bytes.set(0);
        self.shared.printed.take()
    }
    fn set_scope(&mut self, scope: Option<Doc<'_>>) -> std::result::Result<(), Failure> {
        let Some(scope) = scope.filter(|s| s.bytes() != self.scope) else { return Ok(()) };
        self.with(|ctx| {
            let object = bson::from_bson(ctx, Arc::from(scope.bytes()))?;
            for name in object.keys::<String>() {
                let name = name?;
                let value: Value = object.get(&name)?;
                ctx.globals().set(name, callable(ctx, value)?)?;
            }
            Ok(())
        })?;
        self.scope = scope.bytes().to_vec();
        Ok(())
    }
    fn call_in_time(&mut self, call: &Call<'_>) -> std::result::Result<Result, Failure> {
        if !self.functions.contains_key(call.code) {
            let function = self.with(|ctx| {
                let function = compile(ctx, call.code)?;
                Ok(rquickjs::Persistent::save(ctx, function))
            })?;
            self.functions.insert(call.code.into(), function);
        }
        let function = self.functions.get(call.code).cloned();
        let emits = call.emits.is_some();
        let value = self.with(|ctx| {
            let Some(function) = function else { return Ok(Vec::new()) };
            let result = invoke(ctx, function.restore(ctx)?, call)?;
            if emits { Ok(Vec::new()) } else { bson::value_to_bson(ctx, &result) }
        })?;
        Ok(if emits { Result::Emitted(self.shared.emitted.take()) } else { Result::Value(value) })
    }
    fn with<T>(
        &self,
        action: impl for<'js> FnOnce(&Ctx<'js>) -> rquickjs::Result<T>,
    ) -> std::result::Result<T, Failure> {
        self.context.with(|ctx| action(&ctx).map_err(|error| failure(&ctx, error)))
    }
}

impl Shared {
    fn begin(&self, call: &Call<'_>) {
        self.stop_at.set(Instant::now().checked_add(call.limits.time));
        self.emitted.take();
        self.emitted_bytes.set(0);
        self.emitted_bytes_max.set(call.emits);
    }
    fn is_late(&self) -> bool {
        self.stop_at.get().is_some_and(|at| Instant::now() >= at)
    }
    fn print(&self, line: String) {
        let bytes = self.printed_bytes.get() + line.len();
        if bytes <= PRINTED_BYTES_MAX && self.printed.borrow().len() < PRINTED_LINES_MAX {
            self.printed_bytes.set(bytes);
            self.printed.borrow_mut().push(line);
        }
    }
    fn sleep(&self, ms: f64) {
        let asked = Duration::try_from_secs_f64(ms.max(0.0) / 1000.0).unwrap_or(Duration::MAX);
        let left =
            self.stop_at.get().map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now()));
        std::thread::sleep(asked.min(left));
    }
}

fn register<'js>(ctx: &Ctx<'js>, shared: &Rc<Shared>) -> rquickjs::Result<()> {
    let of = shared.clone();
    define(ctx, "print", move |values: Rest<Coerced<String>>| {
        of.print(values.0.into_iter().map(|v| v.0).collect::<Vec<_>>().join(" "));
    })?;
    let of = shared.clone();
    define(ctx, "sleep", move |ms: Value<'_>| -> rquickjs::Result<()> {
        of.sleep(number(&ms)?);
        Ok(())
    })?;
    let of = shared.clone();
    define(ctx, "emit", move |ctx: Ctx<'js>, args: Rest<Value<'js>>| emit(&ctx, &of, &args.0))?;
    define(ctx, "gc", |ctx: Ctx<'_>| ctx.run_gc())?;
    define(ctx, "hex_md5", |text: Opt<Coerced<String>>| {
        crate::md5_hex(&text.0.map_or(String::new(), |t| t.0))
    })
}

/// `emit(key, value)`.
fn emit<'js>(ctx: &Ctx<'js>, shared: &Shared, args: &[Value<'js>]) -> rquickjs::Result<()> {
    let Some(most) = shared.emitted_bytes_max.get() else {
        return Err(errors::throw(ctx, "emit is not defined"));
    };
    let [key, value] = args else {
        return Err(errors::throw_code(ctx, 31220, "emit takes 2 args"));
    };
    let (key, value) = (bson::value_to_bson(ctx, key)?, bson::value_to_bson(ctx, value)?);
    let pair = DocWriter::build(|w| {
        let first =
            |holder: &'_ [u8]| Doc::from_validated(holder).iter().next().map(|e| e.value().to_value());
        // A key that is undefined is null.
        first(&key)
            .filter(|v| *v != document::Value::Undefined)
            .unwrap_or(document::Value::Null)
            .write(w, "k");
        first(&value).unwrap_or(document::Value::Undefined).write(w, "v");
    });
    let bytes = shared.emitted_bytes.get() + pair.bytes().len();
    if bytes > most {
        let text = format!("Size of emitted values exceeds the set size limit of {most} bytes");
        return Err(errors::throw_code(ctx, 31292, &text));
    }
    shared.emitted_bytes.set(bytes);
    shared.emitted.borrow_mut().push(pair.into_bytes());
    Ok(())
}

/// A function for the text of one; an expression or statements become a function's body.
fn compile<'js>(ctx: &Ctx<'js>, code: &str) -> rquickjs::Result<Function<'js>> {
    let code = after_comments(code).trim_end();
    if is_function(code) {
        return function(ctx, code);
    }
    let inner = code.strip_prefix('(').and_then(|c| c.trim_end_matches(';').trim_end().strip_suffix(')'));
    if let Some(inner) = inner.map(after_comments).filter(|inner| is_function(inner)) {
        match function(ctx, inner) {
            Err(_) => drop(ctx.catch()),
            // A function in brackets, not what one returns.
            done => return done,
        }
    }
    let expression = format!("(function() {{ return ({}\n); }})", code.trim_end_matches(';'));
    match evaluate(ctx, "function", &expression) {
        Ok(function) => function.get(),
        Err(_) => {
            ctx.catch();
            evaluate(ctx, "function", &format!("(function() {{ {code}\n }})"))?.get()
        }
    }
}

/// The function that a text begins with; comments may follow it.
fn function<'js>(ctx: &Ctx<'js>, code: &str) -> rquickjs::Result<Function<'js>> {
    evaluate(ctx, "function", &format!("(() => {{ return {code}\n }})()"))?.get()
}

/// A text without the comments it begins with.
fn after_comments(code: &str) -> &str {
    let mut code = code.trim_start();
    loop {
        let after = if let Some(line) = code.strip_prefix("//") {
            Some(line.split_once(['\n', '\r', '\u{2028}', '\u{2029}']).map_or("", |(_, after)| after))
        } else {
            code.strip_prefix("/*").and_then(|comment| comment.split_once("*/")).map(|(_, after)| after)
        };
        match after {
            Some(after) => code = after.trim_start(),
            None => return code,
        }
    }
}

/// Whether a text begins as a function does, arrow functions included.
fn is_function(code: &str) -> bool {
    let code = code
        .strip_prefix("async")
        .map_or(code, |rest| if rest.starts_with([' ', '(']) { rest.trim_start() } else { code });
    if let Some(rest) = code.strip_prefix("function") {
        return rest.starts_with(|c: char| c == '(' || c == '*' || c.is_whitespace());
    }
    if code.starts_with('(') {
        let mut depth = 0;
        let end = code.char_indices().find_map(|(at, c)| {
            depth += match c {
                '(' => 1,
                ')' => -1,
                _ => 0,
            };
            (depth == 0).then_some(at + 1)
        });
        return end.is_some_and(|at| code[at..].trim_start().starts_with("=>"));
    }
    let name = code.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_' || c == '$');
    name.len() < code.len() && name.trim_start().starts_with("=>")
}

/// Code that is handed to a script is a function there.
fn callable<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> rquickjs::Result<Value<'js>> {
    match bson::native_of(&value) {
        Some(bson::Native::Code) => {
            let code: Coerced<String> =
                value.as_object().map_or_else(|| Err(rquickjs::Error::Unknown), |o| o.get("code"))?;
            compile(ctx, &code.0).map(Function::into_value)
        }
        _ => Ok(value),
    }
}

fn invoke<'js>(ctx: &Ctx<'js>, function: Function<'js>, call: &Call<'_>) -> rquickjs::Result<Value<'js>> {
    let list: Option<Array> = match call.args {
        Some(args) => {
            let holder = DocWriter::build(|w| w.array("", args));
            bson::value_from_bson(ctx, holder.into_bytes().into())?.into_array()
        }
        None => None,
    };
    let length = list.as_ref().map_or(0, Array::len);
    let mut args = Args::new(ctx.clone(), length);
    for i in 0..length {
        let value: Value = list.as_ref().map_or_else(|| Err(rquickjs::Error::Unknown), |l| l.get(i))?;
        args.push_arg(callable(ctx, value)?)?;
    }
    if let Some(this) = call.this {
        let this: Object = bson::from_bson(ctx, Arc::from(this.bytes()))?;
        ctx.globals().set("obj", this.clone())?;
        args.this(This(this).0)?;
    }
    function.call_arg(args)
}

/// What was thrown, as the server reports it.
fn failure(ctx: &Ctx<'_>, error: rquickjs::Error) -> Failure {
    let thrown = errors::caught(ctx, error);
    let code = thrown.as_object().and_then(|o| o.get::<_, Option<f64>>("code").ok().flatten());
    let code = code.map(|c| c as i32).filter(|c| *c > 0 && *c != codes::INTERNAL_ERROR);
    Failure { code, message: errors::describe(ctx, &thrown) }
}
