//! Programs that tests start: servers, tools, and the shell itself (`startParallelShell`).

pub mod child;
pub mod launch;
pub mod output;
pub mod ports;
pub mod registry;
#[cfg(test)]
mod tests;

pub use registry::Programs;

use crate::natives::{define, long, number, text, texts};
use crate::{Shared, Shell, errors};
use child::Child;
use launch::{Kind, Launch};
use rquickjs::prelude::{Opt, Rest};
use rquickjs::{Array, Ctx, Object, Result, Value};
use std::rc::Rc;
use std::sync::Arc;

/// The exit code of a shell whose test ended well and left programs running: -6, as the real one.
pub const EXIT_UNTERMINATED: i32 = 250;

pub fn register(ctx: &Ctx<'_>, shell: &Rc<Shell>) -> Result<()> {
    register_start(ctx, shell)?;
    ports::register(ctx, shell)?;
    register_stop(ctx, shell)?;
    register_state(ctx, shell)?;
    register_output(ctx, shell)
}

/// Called once when the shell ends with `status`: stops what is still running. A test that ended well and left programs
/// behind did not end well.
pub fn finish(shared: &Shared, status: i32) -> i32 {
    let left = Programs::stop_all(shared);
    if left == 0 || status != 0 {
        return status;
    }
    let line = "exiting with a failure due to unterminated processes, a call to MongoRunner.stopMongod(), \
                ReplSetTest#stopSet(), or ShardingTest#stop() may be missing from the test";
    shared.print_line(line);
    EXIT_UNTERMINATED
}

/// How a native of the start family runs its program.
#[derive(Clone, Copy)]
enum Style {
    /// Returns the process number at once.
    Start,
    /// Returns the exit code at the end.
    Run,
}

fn register_start<'js>(ctx: &Ctx<'js>, shell: &Rc<Shell>) -> Result<()> {
    let table: &[(&str, bool, bool, Style)] = &[
        ("_startMongoProgram", true, false, Style::Start),
        ("_runMongoProgram", true, false, Style::Run),
        ("runMongoProgram", true, false, Style::Run),
        ("runProgram", false, false, Style::Run),
        ("run", false, false, Style::Run),
        ("runNonMongoProgram", false, false, Style::Run),
        ("runNonMongoProgramQuietly", false, true, Style::Run),
    ];
    for &(name, mongo, quiet, style) in table {
        let shell = shell.clone();
        let native =
            move |ctx: Ctx<'js>, args: Rest<Value<'js>>| launch(&ctx, &shell, &args.0, mongo, quiet, style);
        define(ctx, name, native)?;
    }
    Ok(())
}

fn launch<'js>(
    ctx: &Ctx<'js>,
    shell: &Rc<Shell>,
    args: &[Value<'js>],
    mongo: bool,
    quiet: bool,
    style: Style,
) -> Result<Value<'js>> {
    let (args, mut env) = arguments(args)?;
    if args.is_empty() {
        return Err(errors::throw(ctx, "no program to start: the arguments are empty"));
    }
    let mut launch = Launch { args, mongo, quiet, ..Launch::default() };
    if launch.kind() == Kind::Shell {
        env.splice(0..0, inherited(shell));
    }
    launch.env = env;
    let child = Programs::start(&shell.shared, launch).map_err(|message| errors::throw(ctx, &message))?;
    match style {
        Style::Start => long(ctx, child.pid),
        Style::Run => Ok(Value::new_int(ctx.clone(), shell.shared.programs.wait(&child))),
    }
}

/// The forms of a call: `f(name, arg, ...)`, `f([name, arg, ...])`, `f({args: [...], env: {...}})`.
fn arguments(args: &[Value<'_>]) -> Result<(Vec<String>, Vec<(String, String)>)> {
    if let [only] = args
        && let Some(object) = only.as_object()
    {
        if let Some(array) = object.as_array() {
            return Ok((texts(array)?, Vec::new()));
        }
        if let Some(array) = object.get::<_, Option<Array>>("args")? {
            let env = object.get::<_, Option<Object>>("env")?;
            return Ok((texts(&array)?, env.map_or(Ok(Vec::new()), |env| variables(&env))?));
        }
    }
    Ok((args.iter().map(text).collect::<Result<_>>()?, Vec::new()))
}

fn variables(env: &Object<'_>) -> Result<Vec<(String, String)>> {
    env.props::<String, Value>()
        .map(|property| {
            let (name, value) = property?;
            Ok((name, text(&value)?))
        })
        .collect()
}

/// What a shell that a test starts must know of this one, for it is called with the flags of `mongo` only.
fn inherited(shell: &Shell) -> Vec<(String, String)> {
    let root = shell.options.root.to_string_lossy().into_owned();
    let mut env = vec![("JSTEST_ROOT".to_string(), root), (ports::CHILD.to_string(), "1".to_string())];
    if let crate::Library::Directory(directory) = &shell.options.library {
        env.push(("JSTEST_SHELL_LIB".to_string(), directory.to_string_lossy().into_owned()));
    }
    env
}

fn register_stop(ctx: &Ctx<'_>, shell: &Rc<Shell>) -> Result<()> {
    let of = shell.clone();
    let stop_on_port =
        move |port: Value<'_>, signal: Opt<Value<'_>>, _options: Opt<Value<'_>>, wait: Opt<bool>| {
            let child = of.shared.programs.on_port(number(&port)? as u16);
            stop(&of, child, &format!("port: {}", text(&port)?), signal, wait)
        };
    define(ctx, "_stopMongoProgram", stop_on_port.clone())?;
    define(ctx, "stopMongoProgram", stop_on_port)?;
    let of = shell.clone();
    define(
        ctx,
        "stopMongoProgramByPid",
        move |pid: Value<'_>, signal: Opt<Value<'_>>, _options: Opt<Value<'_>>, wait: Opt<bool>| {
            let child = of.shared.programs.by_pid(number(&pid)? as i64);
            stop(&of, child, &format!("pid: {}", text(&pid)?), signal, wait)
        },
    )
}

/// Stops a program and returns its exit code; a program that was never started is said and counts as ended well.
fn stop(
    shell: &Shell,
    child: Option<Arc<Child>>,
    place: &str,
    signal: Opt<Value<'_>>,
    wait: Opt<bool>,
) -> Result<i32> {
    let signal = match signal.0.filter(|value| !value.is_undefined() && !value.is_null()) {
        Some(value) => number(&value)? as i32,
        None => libc::SIGTERM,
    };
    let Some(child) = child else {
        shell.print_line(&format!("No program started on {place}"));
        return Ok(0);
    };
    if wait.0 == Some(false) {
        child.signal(signal);
        return Ok(0);
    }
    Ok(Programs::stop(&shell.shared, &child, signal))
}

fn register_state<'js>(ctx: &Ctx<'js>, shell: &Rc<Shell>) -> Result<()> {
    let of = shell.clone();
    define(ctx, "waitProgram", move |ctx: Ctx<'_>, pid: Value<'_>| -> Result<i32> {
        let child = known(&ctx, &of, &pid)?;
        Ok(of.shared.programs.wait(&child))
    })?;
    let of = shell.clone();
    define(ctx, "waitMongoProgram", move |port: Value<'_>| -> Result<i32> {
        match of.shared.programs.on_port(number(&port)? as u16) {
            Some(child) => Ok(of.shared.programs.wait(&child)),
            None => {
                of.print_line(&format!("No program started on port: {}", text(&port)?));
                Ok(0)
            }
        }
    })?;
    let of = shell.clone();
    define(ctx, "checkProgram", move |ctx: Ctx<'js>, pid: Value<'js>| check(&ctx, &of, &pid))?;
    let of = shell.clone();
    define(ctx, "_runningMongoChildProcessIds", move |ctx: Ctx<'js>| running(&ctx, &of))
}

fn known(ctx: &Ctx<'_>, shell: &Shell, pid: &Value<'_>) -> Result<Arc<Child>> {
    let wanted = number(pid)? as i64;
    let child = shell.shared.programs.by_pid(wanted);
    child
        .ok_or_else(|| errors::throw(ctx, &format!("no program with pid {wanted} was started by this shell")))
}

fn running<'js>(ctx: &Ctx<'js>, shell: &Shell) -> Result<Array<'js>> {
    let pids = Array::new(ctx.clone())?;
    for (place, child) in shell.shared.programs.running().iter().enumerate() {
        pids.set(place, long(ctx, child.pid)?)?;
    }
    Ok(pids)
}

/// `{alive: true}` or `{alive: false, exitCode: n}`.
fn check<'js>(ctx: &Ctx<'js>, shell: &Shell, pid: &Value<'js>) -> Result<Object<'js>> {
    let child = known(ctx, shell, pid)?;
    let answer = Object::new(ctx.clone())?;
    let exit = child.exit_code();
    answer.set("alive", exit.is_none())?;
    if exit.is_some() {
        answer.set("exitCode", shell.shared.programs.wait(&child))?;
    }
    Ok(answer)
}

fn register_output(ctx: &Ctx<'_>, shell: &Rc<Shell>) -> Result<()> {
    let of = shell.clone();
    define(ctx, "rawMongoProgramOutput", move |ctx: Ctx<'_>, pattern: Opt<Value<'_>>| -> Result<String> {
        let captured = &of.shared.programs.captured;
        let Some(pattern) = pattern.0.filter(|value| !value.is_undefined()) else {
            return Ok(captured.all());
        };
        let refused = |message: String| errors::throw(&ctx, &format!("bad pattern: {message}"));
        captured.matching(&pattern_source(&pattern)?).map_err(refused)
    })?;
    let of = shell.clone();
    define(ctx, "clearRawMongoProgramOutput", move || of.shared.programs.captured.clear())
}

/// The pattern of a string, or of a RegExp with its flags.
fn pattern_source(pattern: &Value<'_>) -> Result<String> {
    let Some(object) = pattern.as_object() else { return text(pattern) };
    let Some(source) = object.get::<_, Option<String>>("source")? else { return text(pattern) };
    let flags: String = object.get::<_, Option<String>>("flags")?.unwrap_or_default();
    let inline: String = flags.chars().filter(|flag| "ims".contains(*flag)).collect();
    Ok(if inline.is_empty() { source } else { format!("(?{inline}){source}") })
}
