//! The legacy `mongo` shell as a library: a JavaScript engine with the shell's natives and a shell library over them.
//!
//! ```text
//! run(args) -> Options -> Engine (one QuickJS runtime, one thread)
//!   natives in Rust        every module's `register(ctx, shell)`, in the order of `engine::NATIVES`
//!   kernel/*.js            the classes the real shell has natively: BSON types, DB, DBCollection, DBQuery, cursors
//!   the library            our prelude, or the files of a directory the user has (`--shell-lib`)
//!   --eval, then files
//! ```
//!
//! Natives are plain synchronous functions. A thread of a test (`Thread`) makes an [`Engine`] of its own, with its own
//! [`Shell`]; what all threads of the process have in common is [`Shared`].
//!
//! Invariant: nothing a test does may panic this process; an error of a native is a JavaScript exception.

pub mod bench;
pub mod bridge;
pub mod codes;
pub mod collation;
pub mod connection;
pub mod control;
pub mod engine;
pub mod fail_points;
pub mod files;
pub mod golden;
pub mod hashing;
pub mod library;
pub mod missing;
pub mod modules;
pub mod options;
pub mod pipes;
pub mod program;
pub mod resume_token;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
pub mod thread;

pub use engine::{Engine, Failure};
pub use options::{Library, Options};
pub use script::{SCRIPT_STACK_BYTES, STACK_BYTES, bson, errors, natives};

use parking_lot::Mutex;
use std::io::Write;
use std::sync::Arc;

/// Where a script that fills the memory is stopped by an exception, before the machine ends the process.
pub const SCRIPT_MEMORY_BYTES: usize = 4 << 30;

/// What all threads of the process have in common.
pub struct Shared {
    /// Where `print` goes: standard output, or a buffer in tests.
    pub output: Mutex<Box<dyn Write + Send>>,
    pub programs: program::Programs,
    pub threads: thread::Threads,
    pub missing: missing::Missing,
    pub control: control::State,
    pub golden: golden::Golden,
    pub fail_points: fail_points::FailPoints,
}

impl Shared {
    pub fn new(output: Box<dyn Write + Send>) -> Shared {
        Shared {
            output: Mutex::new(output),
            programs: Default::default(),
            threads: Default::default(),
            missing: Default::default(),
            control: Default::default(),
            golden: Default::default(),
            fail_points: Default::default(),
        }
    }
    /// Writes one line to the shell's output, whole even when several threads print.
    pub fn print_line(&self, line: &str) {
        let mut output = self.output.lock();
        // A closed standard output is nobody's error: the test goes on.
        let _ = output.write_all(format!("{line}\n").as_bytes());
        let _ = output.flush();
    }
}

/// What the natives of one engine know: how the shell was called, and what it shares with other threads.
pub struct Shell {
    pub options: Arc<Options>,
    pub shared: Arc<Shared>,
}

impl Shell {
    pub fn new(options: Arc<Options>, shared: Arc<Shared>) -> Shell {
        Shell { options, shared }
    }
    pub fn print_line(&self, line: &str) {
        self.shared.print_line(line);
    }
}

/// The shell's `main`: parses `args` (without the program's name), runs what they say, returns the exit code.
pub fn run(args: Vec<std::ffi::OsString>) -> i32 {
    let options = match Options::parse(args) {
        Ok(options) => Arc::new(options),
        Err(exit) => return exit,
    };
    let shared = Arc::new(Shared::new(Box::new(std::io::stdout())));
    let worker = std::thread::Builder::new().name("js".into()).stack_size(STACK_BYTES);
    match worker.spawn(move || engine::run_main(options, shared)).map(|handle| handle.join()) {
        Ok(Ok(status)) => status,
        _ => engine::EXIT_PANICKED,
    }
}
