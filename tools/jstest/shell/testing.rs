//! Running a script in a test of this crate, without a server.

use crate::{Engine, Failure, Options, Shared};
use parking_lot::Mutex;
use std::io::Write;
use std::sync::Arc;

/// Runs `script`; the text of an uncaught exception is the error.
pub(crate) fn run(script: &str) -> Result<(), String> {
    output_of(script).0
}

/// Runs `script`, and returns what was printed, too.
pub(crate) fn output_of(script: &str) -> (Result<(), String>, String) {
    run_with(Options { nodb: true, ..Options::default() }, script, |_| {})
}

/// Runs `script` in a shell with `options`; `prepare` sees what the shell shares. Returns what was printed, too.
pub(crate) fn run_with(
    options: Options,
    script: &str,
    prepare: impl FnOnce(&Shared),
) -> (Result<(), String>, String) {
    let printed = Printed::default();
    let shared = Arc::new(Shared::new(Box::new(printed.clone())));
    prepare(&shared);
    let outcome = run_with_shared(options, script, &shared);
    let text = String::from_utf8_lossy(&printed.0.lock()).into_owned();
    (outcome, text)
}

/// Runs `script` on a thread with the shell's stack. Programs that it left running are stopped.
pub(crate) fn run_with_shared(options: Options, script: &str, shared: &Arc<Shared>) -> Result<(), String> {
    in_engine(options, shared, |engine| engine.run_source("test", script))
}

/// Runs scripts as those of `--eval`.
pub(crate) fn eval_and_print(scripts: &[&str]) -> (Result<(), String>, String) {
    let printed = Printed::default();
    let shared = Arc::new(Shared::new(Box::new(printed.clone())));
    let options = Options { nodb: true, ..Options::default() };
    let outcome = in_engine(options, &shared, |engine| {
        let eval = |script: &&str| engine.with(|ctx, shell| crate::modules::run_eval(ctx, shell, script));
        scripts.iter().try_for_each(eval)
    });
    let text = String::from_utf8_lossy(&printed.0.lock()).into_owned();
    (outcome, text)
}

fn in_engine(
    options: Options,
    shared: &Arc<Shared>,
    action: impl FnOnce(&Engine) -> Result<(), Failure> + Send,
) -> Result<(), String> {
    let work = || {
        let engine = Engine::new(Arc::new(options), shared.clone()).map_err(|f| f.text)?;
        action(&engine).map_err(|f| f.text)
    };
    let outcome = std::thread::scope(|scope| {
        let worker = std::thread::Builder::new().stack_size(crate::STACK_BYTES).spawn_scoped(scope, work);
        worker.unwrap().join().unwrap()
    });
    crate::program::Programs::stop_all(shared);
    outcome
}

#[derive(Clone, Default)]
struct Printed(Arc<Mutex<Vec<u8>>>);

impl Write for Printed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
