//! Scripts, modules and `load`.
//!
//! A source is a script, run in the global scope and sloppy mode, unless it only parses as a module: because of an
//! `import`, an `export` or an `await` outside of functions. The real shell decides in the same way.
//!
//! ```text
//! import "./x.js"           beside the importing file
//! import "jstests/x.js"     under --root, then under the fallback root (this repository's own tests), then embedded
//! load("jstests/x.js")      the same, after the current directory
//! ```

mod embedded;
mod find;
mod rejections;
#[cfg(test)]
mod tests;

pub use rejections::settle;

use crate::natives::define;
use crate::{Shell, errors};
use find::Found;
use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::Declared;
use rquickjs::{Coerced, Ctx, Error, Module, Object, Result, Runtime, Value, qjs};
use std::ffi::CString;
use std::path::Path;
use std::rc::Rc;

/// Gives the runtime its loader of modules; called before there is a context.
pub fn install(runtime: &Runtime, shell: &Rc<Shell>) {
    runtime.set_loader(Paths(shell.clone()), Sources);
    runtime.set_host_promise_rejection_tracker(Some(Box::new(|ctx, promise, reason, handled| {
        rejections::track(&ctx, promise, reason, handled);
    })));
}

pub fn register(ctx: &Ctx<'_>, shell: &Rc<Shell>) -> Result<()> {
    rejections::register(ctx)?;
    let of = shell.clone();
    define(ctx, "load", move |ctx: Ctx<'_>, path: String| load(&ctx, &of, &path))
}

/// Runs a file given on the command line.
pub fn run_file(ctx: &Ctx<'_>, shell: &Rc<Shell>, path: &Path) -> Result<()> {
    load(ctx, shell, &path.to_string_lossy()).map(|_| ())
}

/// Runs `source` as a script, or as a module if it is one. The name is what stacks show and what its relative imports
/// are relative to.
pub fn run_source(ctx: &Ctx<'_>, name: &str, source: &str) -> Result<()> {
    evaluate(ctx, name, source).map(|_| ())
}

/// Runs the script of an `--eval`, and prints what it came to unless that is undefined.
pub fn run_eval(ctx: &Ctx<'_>, shell: &Rc<Shell>, source: &str) -> Result<()> {
    let value = evaluate(ctx, "(shell eval)", source)?;
    settle(ctx)?;
    if !value.is_undefined() && !value.is_promise() {
        shell.print_line(&value.get::<Coerced<String>>()?.0);
    }
    Ok(())
}

/// The value of a script's last expression; a module has none.
fn evaluate<'js>(ctx: &Ctx<'js>, name: &str, source: &str) -> Result<Value<'js>> {
    match compile_script(ctx, name, source) {
        Ok(script) => script.run(),
        Err(Error::Exception) => {
            let refused = ctx.catch();
            if !mentions_module_syntax(source) {
                return Err(ctx.throw(refused));
            }
            run_module(ctx, name, source)?;
            Ok(Value::new_undefined(ctx.clone()))
        }
        Err(error) => Err(error),
    }
}

/// `load(path)`: true, or an exception.
fn load(ctx: &Ctx<'_>, shell: &Rc<Shell>, path: &str) -> Result<bool> {
    let failed = |reason: &str| {
        shell.print_line(&format!("JavaScript execution failed: {reason}"));
        errors::throw(ctx, &format!("error loading js file: {path}"))
    };
    match find::script(shell, path) {
        None => return Err(failed(&format!("file [{path}] doesn't exist"))),
        Some(Found::Embedded(name)) => load_embedded(ctx, name)?,
        Some(Found::File(file)) if file.is_dir() => {
            for script in find::scripts_of(&file) {
                load(ctx, shell, &script.to_string_lossy())?;
            }
        }
        Some(Found::File(file)) => {
            let source =
                std::fs::read(&file).map_err(|error| failed(&format!("cannot read [{path}]: {error}")))?;
            run_source(ctx, &file.to_string_lossy(), without_shebang(&String::from_utf8_lossy(&source)))?;
        }
    }
    Ok(true)
}

/// Imports a module of this program and makes its exports global: scripts that `load` a library know nothing of modules.
fn load_embedded(ctx: &Ctx<'_>, name: &str) -> Result<()> {
    let exports: Object = Module::import(ctx, format!("{}{name}", embedded::SCHEME))?.finish()?;
    for export in exports.props::<String, Value>() {
        let (name, value) = export?;
        ctx.globals().set(name, value)?;
    }
    Ok(())
}

/// A byte order mark is no text, and a first line `#!...` is for the system.
fn without_shebang(source: &str) -> &str {
    let source = source.trim_start_matches('\u{feff}');
    match source.strip_prefix("#!") {
        Some(rest) => rest.find('\n').map_or("", |end| &rest[end..]),
        None => source,
    }
}

/// Whether a line begins as only modules' lines do. It is asked of sources that are no scripts, to tell a module from a
/// script with a mistake, so an answer that is wrong costs only the better of two messages.
fn mentions_module_syntax(source: &str) -> bool {
    source.lines().any(|line| {
        let line = line.trim_start();
        line.starts_with("import") || line.starts_with("export") || line.contains("await")
    })
}

fn run_module(ctx: &Ctx<'_>, name: &str, source: &str) -> Result<()> {
    let name = std::path::absolute(name).map_or(name.to_string(), |path| path.to_string_lossy().into_owned());
    let (_, promise) = declare(ctx, &name, source)?.eval()?;
    match promise.finish::<()>() {
        Err(Error::WouldBlock) => {
            Err(errors::throw(ctx, &format!("{name}: awaits a promise that nothing settles")))
        }
        other => other,
    }
}

fn declare<'js>(ctx: &Ctx<'js>, name: &str, source: &str) -> Result<Module<'js, Declared>> {
    let module = Module::declare(ctx.clone(), name, source)?;
    module.meta()?.set("url", format!("file://{name}"))?;
    Ok(module)
}

/// A script that has been parsed and not run.
struct Script<'js>(Value<'js>);

/// Parses a script; an exception is a mistake in it, and nothing of it has run.
fn compile_script<'js>(ctx: &Ctx<'js>, name: &str, source: &str) -> Result<Script<'js>> {
    let (name, text) = (CString::new(name)?, CString::new(source)?);
    let flags = qjs::JS_EVAL_TYPE_GLOBAL | qjs::JS_EVAL_FLAG_COMPILE_ONLY;
    // SAFETY: both strings end in a zero and outlive the call; the value that comes back is owned.
    let value = unsafe {
        let context = ctx.as_raw().as_ptr();
        let code = qjs::JS_Eval(context, text.as_ptr(), source.len() as _, name.as_ptr(), flags as i32);
        Value::from_raw(ctx.clone(), code)
    };
    if value.is_exception() { Err(Error::Exception) } else { Ok(Script(value)) }
}

impl<'js> Script<'js> {
    fn run(self) -> Result<Value<'js>> {
        let ctx = self.0.ctx().clone();
        // SAFETY: evaluation takes ownership of the code, so it is given one of its own.
        let result = unsafe {
            let code = qjs::JS_DupValue(ctx.as_raw().as_ptr(), self.0.as_raw());
            Value::from_raw(ctx.clone(), qjs::JS_EvalFunction(ctx.as_raw().as_ptr(), code))
        };
        if result.is_exception() { Err(Error::Exception) } else { Ok(result) }
    }
}

/// Turns what an `import` says into the one name of a module: its real path, or the name of an embedded one.
struct Paths(Rc<Shell>);

impl Resolver for Paths {
    fn resolve<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        base: &str,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<String> {
        match find::module(&self.0, base, name) {
            Some(Found::File(path)) => Ok(path.to_string_lossy().into_owned()),
            Some(Found::Embedded(name)) => Ok(format!("{}{name}", embedded::SCHEME)),
            None => Err(errors::throw(ctx, &format!("Cannot find module '{name}' imported from {base}"))),
        }
    }
}

/// Reads the modules that [`Paths`] has named.
struct Sources;

impl Loader for Sources {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<Module<'js, Declared>> {
        if let Some((_, source)) = name.strip_prefix(embedded::SCHEME).and_then(embedded::find) {
            return declare(ctx, name, source);
        }
        let source = std::fs::read(name)
            .map_err(|error| errors::throw(ctx, &format!("cannot read the module {name}: {error}")))?;
        declare(ctx, name, without_shebang(&String::from_utf8_lossy(&source)))
    }
}
