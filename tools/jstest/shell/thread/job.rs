//! One `Thread` of a test: what it is to call, the thread that does, and how that ended.

use crate::natives::define;
use crate::{Engine, Options, STACK_BYTES, Shared, Shell, bson, engine, errors, modules};
use document::codes::JS_INTERPRETER_FAILURE;
use parking_lot::{Condvar, Mutex};
use rquickjs::object::Property;
use rquickjs::prelude::{Rest, This};
use rquickjs::{Array, Ctx, Error, Function, Object, Promise, Result, Value};
use std::rc::Rc;
use std::sync::Arc;

/// Under this name an instance knows its job.
const PLACE: &str = "__thread";

pub(super) struct Job {
    call: Call,
    state: Mutex<State>,
    over: Condvar,
}

/// What has to be called, in a form that travels.
#[derive(Clone)]
struct Call {
    source: String,
    /// `{"": [args]}`
    args: Vec<u8>,
    /// `{"": TestData}`
    test_data: Option<Vec<u8>>,
}

enum State {
    New,
    Running,
    Over { outcome: std::result::Result<Vec<u8>, Thrown>, joined: bool },
}

/// An exception that ended a thread.
#[derive(Clone, Debug)]
struct Thrown {
    code: i32,
    message: String,
    /// As it is printed, with its stack.
    text: String,
}

/// `_threadInject(prototype)` gives a class the methods of a thread.
pub(super) fn register<'js>(ctx: &Ctx<'js>, shell: &Rc<Shell>) -> Result<()> {
    for name in ["_threadInject", "_scopedThreadInject"] {
        let shell = shell.clone();
        define(ctx, name, move |ctx: Ctx<'js>, prototype: Object<'js>| inject(&ctx, &shell, &prototype))?;
    }
    Ok(())
}

fn inject<'js>(ctx: &Ctx<'js>, shell: &Rc<Shell>, prototype: &Object<'js>) -> Result<()> {
    let of = shell.clone();
    let init = move |ctx: Ctx<'js>, this: This<Object<'js>>, args: Rest<Value<'js>>| -> Result<()> {
        let job =
            Job { call: Call::new(&ctx, &args.0)?, state: Mutex::new(State::New), over: Condvar::new() };
        this.0.prop(PLACE, Property::from(of.shared.threads.add_job(job)))
    };
    prototype.set("init", Function::new(ctx.clone(), init)?)?;
    let of = shell.clone();
    let start = move |ctx: Ctx<'js>, this: This<Object<'js>>| -> Result<()> {
        let started = job_of(&ctx, &of, &this)?.start(of.options.clone(), of.shared.clone());
        started.map_err(|message| errors::throw_code(&ctx, JS_INTERPRETER_FAILURE, &message))
    };
    prototype.set("start", Function::new(ctx.clone(), start)?)?;
    let of = shell.clone();
    let join = move |ctx: Ctx<'js>, this: This<Object<'js>>| -> Result<()> {
        let job = job_of(&ctx, &of, &this)?;
        if !job.is_running_or_unjoined() {
            return Err(errors::throw_code(&ctx, JS_INTERPRETER_FAILURE, "Thread not running"));
        }
        match job.join() {
            Some(Err(thrown)) => Err(errors::throw_code(&ctx, thrown.code, &thrown.message)),
            _ => Ok(()),
        }
    };
    prototype.set("join", Function::new(ctx.clone(), join)?)?;
    let of = shell.clone();
    let has_failed = move |ctx: Ctx<'js>, this: This<Object<'js>>| -> Result<bool> {
        let job = job_of(&ctx, &of, &this)?;
        job.has_failed().ok_or_else(|| errors::throw_code(&ctx, JS_INTERPRETER_FAILURE, "Thread not started"))
    };
    prototype.set("hasFailed", Function::new(ctx.clone(), has_failed)?)?;
    let of = shell.clone();
    let return_data = move |ctx: Ctx<'js>, this: This<Object<'js>>| -> Result<Value<'js>> {
        match job_of(&ctx, &of, &this)?.join() {
            None => Err(errors::throw_code(&ctx, JS_INTERPRETER_FAILURE, "Thread not started")),
            Some(Ok(value)) => bson::value_from_bson(&ctx, value.into()),
            Some(Err(thrown)) => Err(errors::throw_code(&ctx, thrown.code, &thrown.message)),
        }
    };
    prototype.set("returnData", Function::new(ctx.clone(), return_data)?)
}

fn job_of(ctx: &Ctx<'_>, shell: &Shell, this: &Object<'_>) -> Result<Arc<Job>> {
    let place = this.get::<_, Option<usize>>(PLACE)?;
    let job = place.and_then(|place| shell.shared.threads.job(place));
    job.ok_or_else(|| errors::throw_code(ctx, JS_INTERPRETER_FAILURE, "the thread was made without init()"))
}

impl Call {
    fn new<'js>(ctx: &Ctx<'js>, args: &[Value<'js>]) -> Result<Call> {
        let Some((function, rest)) = args.split_first() else {
            return Err(errors::throw_code(
                ctx,
                JS_INTERPRETER_FAILURE,
                "Thread requires at least one argument",
            ));
        };
        let Some(function) = function.as_function() else {
            return Err(errors::throw_code(
                ctx,
                JS_INTERPRETER_FAILURE,
                "first Thread argument must be a function",
            ));
        };
        let source: String = function.get::<_, Function>("toString")?.call((This(function.clone()),))?;
        let list = Array::new(ctx.clone())?;
        for (place, value) in rest.iter().enumerate() {
            list.set(place, value.clone())?;
        }
        let test_data = ctx.globals().get::<_, Value>("TestData")?;
        let test_data = match test_data.is_object() {
            true => Some(bson::value_to_bson(ctx, &test_data)?),
            false => None,
        };
        Ok(Call { source, args: bson::value_to_bson(ctx, &list.into_value())?, test_data })
    }
    /// Calls the function in this thread's engine; the result as `{"": value}`.
    fn run<'js>(&self, ctx: &Ctx<'js>) -> Result<Vec<u8>> {
        let call = engine::evaluate(ctx, "(thread)", include_str!("call.js"))?;
        let args = bson::value_from_bson(ctx, self.args.clone().into())?;
        let test_data = match &self.test_data {
            Some(bytes) => bson::value_from_bson(ctx, bytes.clone().into())?,
            None => Value::new_undefined(ctx.clone()),
        };
        let call = call.into_function().ok_or(Error::Unknown)?;
        let mut result: Value = call.call((self.source.as_str(), args, test_data))?;
        if let Some(promise) = result.as_promise() {
            result = finish(ctx, promise)?;
        }
        modules::settle(ctx)?;
        bson::value_to_bson(ctx, &result)
    }
}

fn finish<'js>(ctx: &Ctx<'js>, promise: &Promise<'js>) -> Result<Value<'js>> {
    match promise.finish() {
        Err(Error::WouldBlock) => {
            Err(errors::throw(ctx, "the thread's function awaits a promise that nothing settles"))
        }
        other => other,
    }
}

impl Job {
    /// `Err` when the thread was started before, or cannot be.
    fn start(self: &Arc<Job>, options: Arc<Options>, shared: Arc<Shared>) -> std::result::Result<(), String> {
        let mut state = self.state.lock();
        if !matches!(*state, State::New) {
            return Err("Thread already started".into());
        }
        let job = self.clone();
        let worker = std::thread::Builder::new().name("js thread".into()).stack_size(STACK_BYTES);
        worker.spawn(move || job.work(options, shared)).map_err(|error| error.to_string())?;
        *state = State::Running;
        Ok(())
    }
    fn work(&self, options: Arc<Options>, shared: Arc<Shared>) {
        // A panic in a native is a defect of this program; the test must see its thread fail, not hang.
        let run = std::panic::AssertUnwindSafe(|| self.call_in_engine(options, shared.clone()));
        let outcome =
            std::panic::catch_unwind(run).unwrap_or_else(|_| Err(Thrown::plain("a native panicked")));
        if let Err(thrown) = &outcome {
            shared.print_line(&format!("js thread raised js exception: {}", thrown.text));
        }
        *self.state.lock() = State::Over { outcome, joined: false };
        self.over.notify_all();
    }
    fn call_in_engine(
        &self,
        options: Arc<Options>,
        shared: Arc<Shared>,
    ) -> std::result::Result<Vec<u8>, Thrown> {
        let engine = Engine::new(options, shared).map_err(|failure| Thrown::plain(&failure.text))?;
        let outcome = engine.with(|ctx, _| {
            Ok(self.call.run(ctx).map_err(|error| {
                let thrown = errors::caught(ctx, error);
                Thrown::of(ctx, &thrown)
            }))
        });
        outcome.unwrap_or_else(|failure| Err(Thrown::plain(&failure.text)))
    }
    fn is_running_or_unjoined(&self) -> bool {
        matches!(*self.state.lock(), State::Running | State::Over { joined: false, .. })
    }
    /// Waits for the end; `None` when the thread was never started.
    fn join(&self) -> Option<std::result::Result<Vec<u8>, Thrown>> {
        let mut state = self.state.lock();
        loop {
            match &mut *state {
                State::New => return None,
                State::Running => {}
                State::Over { outcome, joined } => {
                    *joined = true;
                    return Some(outcome.clone());
                }
            }
            self.over.wait(&mut state);
        }
    }
    /// Whether an exception has ended the thread; `None` when it was never started.
    fn has_failed(&self) -> Option<bool> {
        match &*self.state.lock() {
            State::New => None,
            State::Running => Some(false),
            State::Over { outcome, .. } => Some(outcome.is_err()),
        }
    }
}

impl Thrown {
    fn plain(text: &str) -> Thrown {
        Thrown { code: JS_INTERPRETER_FAILURE, message: text.to_string(), text: text.to_string() }
    }
    fn of<'js>(ctx: &Ctx<'js>, thrown: &Value<'js>) -> Thrown {
        let text = errors::describe(ctx, thrown);
        let member = |name: &str| thrown.as_object().and_then(|o| o.get::<_, Value>(name).ok());
        let code = member("code").and_then(|code| code.as_number()).map(|code| code as i32);
        let message = member("message").and_then(|message| message.get::<String>().ok());
        Thrown {
            code: code.unwrap_or(JS_INTERPRETER_FAILURE),
            message: message.unwrap_or_else(|| text.clone()),
            text,
        }
    }
}
