//! One JavaScript runtime on the current thread, with natives, kernel and library loaded.

use crate::{
    Options, SCRIPT_MEMORY_BYTES, SCRIPT_STACK_BYTES, Shared, Shell, bench, bson, collation, connection,
    control, errors, fail_points, files, golden, hashing, library, missing, modules, options, pipes, program,
    resume_token, thread,
};
use rquickjs::{Context, Ctx, Runtime, Value};
pub use script::evaluate;
use std::rc::Rc;
use std::sync::Arc;

type Register = for<'a, 'js, 's> fn(&'a Ctx<'js>, &'s Rc<Shell>) -> rquickjs::Result<()>;

/// Every native module, in the order they are registered. `missing` is last: it names what nobody else has defined.
const NATIVES: &[Register] = &[
    |ctx, _| bson::register(ctx),
    connection::register,
    control::register,
    files::register,
    hashing::register,
    program::register,
    thread::register,
    bench::register,
    collation::register,
    fail_points::register,
    golden::register,
    pipes::register,
    resume_token::register,
    modules::register,
    missing::register,
];

/// An exception nobody caught, as it is printed.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    pub text: String,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

pub struct Engine {
    // Declared before the runtime, so that it is dropped first.
    context: Context,
    _runtime: Runtime,
    shell: Rc<Shell>,
}

impl Engine {
    /// Makes a runtime on this thread and loads everything a test may use. The thread's stack must be at least
    /// [`crate::STACK_BYTES`].
    pub fn new(options: Arc<Options>, shared: Arc<Shared>) -> Result<Engine, Failure> {
        let shell = Rc::new(Shell::new(options, shared));
        let failed = |error: rquickjs::Error| Failure { text: error.to_string() };
        let runtime = Runtime::new().map_err(failed)?;
        runtime.set_max_stack_size(SCRIPT_STACK_BYTES);
        runtime.set_memory_limit(SCRIPT_MEMORY_BYTES);
        modules::install(&runtime, &shell);
        let context = Context::full(&runtime).map_err(failed)?;
        let engine = Engine { context, _runtime: runtime, shell };
        engine.with(|ctx, shell| {
            for register in NATIVES {
                register(ctx, shell)?;
            }
            library::load_kernel(ctx)?;
            library::load(ctx, shell)
        })?;
        Ok(engine)
    }
    pub fn shell(&self) -> &Rc<Shell> {
        &self.shell
    }
    /// Runs `action` inside the engine; an exception it throws comes back as it would be printed.
    pub fn with<T>(
        &self,
        action: impl for<'js> FnOnce(&Ctx<'js>, &Rc<Shell>) -> rquickjs::Result<T>,
    ) -> Result<T, Failure> {
        self.context.with(|ctx| {
            action(&ctx, &self.shell).map_err(|error| {
                let thrown = errors::caught(&ctx, error);
                resume_panic(&thrown);
                Failure { text: errors::describe(&ctx, &thrown) }
            })
        })
    }
    /// Runs a script in the global scope under `name`, then whatever promises it left.
    pub fn run_source(&self, name: &str, source: &str) -> Result<(), Failure> {
        self.with(|ctx, _| {
            modules::run_source(ctx, name, source)?;
            modules::settle(ctx)
        })
    }
    /// Runs a file as the shell does: a script, or a module when it has imports.
    pub fn run_file(&self, path: &std::path::Path) -> Result<(), Failure> {
        self.with(|ctx, shell| {
            modules::run_file(ctx, shell, path)?;
            modules::settle(ctx)
        })
    }
}

/// What a native that panicked leaves behind is no value a script could have thrown. The panic, which was reported
/// when it happened, goes on here.
fn resume_panic(thrown: &Value<'_>) {
    if thrown.type_of() == rquickjs::Type::Uninitialized {
        std::panic::resume_unwind(Box::new("a native panicked"));
    }
}

/// Runs promises' continuations until none is left.
pub fn run_jobs(ctx: &Ctx<'_>) {
    while ctx.execute_pending_job() {}
}

/// The exit code of a shell one of whose files threw: -3, as the real one.
pub const EXIT_UNCAUGHT: i32 = 253;

/// The exit code of a shell one of whose natives panicked.
pub const EXIT_PANICKED: i32 = 250;

/// What the shell's thread does from start to end; returns the exit code.
pub fn run_main(options: Arc<Options>, shared: Arc<Shared>) -> i32 {
    let engine = match Engine::new(options.clone(), shared.clone()) {
        Ok(engine) => engine,
        Err(failure) => {
            eprintln!("could not load the shell library: {failure}");
            return EXIT_UNCAUGHT;
        }
    };
    // A panic in a native is a defect of this program; what the test started is stopped all the same.
    let run = std::panic::AssertUnwindSafe(|| run_all(&engine, &options));
    let status = std::panic::catch_unwind(run).unwrap_or(EXIT_PANICKED);
    program::finish(&shared, status)
}

fn run_all(engine: &Engine, options: &Options) -> i32 {
    let uncaught = |failure: Failure| engine.shell().print_line(&format!("uncaught exception: {failure}"));
    if let Err(failure) = engine.with(options::connect) {
        uncaught(failure);
        return 1;
    }
    for source in &options.eval {
        if let Err(failure) = engine.with(|ctx, shell| modules::run_eval(ctx, shell, source)) {
            uncaught(failure);
            engine.shell().print_line("exiting with code -4");
            return 252;
        }
    }
    for file in &options.files {
        if let Err(failure) = engine.run_file(file) {
            uncaught(failure);
            engine.shell().print_line(&format!("failed to load: {}", file.display()));
            engine.shell().print_line("exiting with code -3");
            return EXIT_UNCAUGHT;
        }
    }
    // A test may leave its golden data to be compared at the end.
    if let Err(text) = golden::finish(&engine.shell().shared) {
        uncaught(Failure { text });
        return EXIT_UNCAUGHT;
    }
    0
}
