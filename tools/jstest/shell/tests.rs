//! Scripts run without a server: every test is a snippet and what it must come to.

use crate::{Engine, Options, Shared};
use std::sync::Arc;

/// Runs `script` on a thread with the shell's stack; the text of an uncaught exception is the error.
fn run(script: &'static str) -> Result<(), String> {
    let work = move || {
        let options = Arc::new(Options { nodb: true, ..Options::default() });
        let shared = Arc::new(Shared::new(Box::new(std::io::sink())));
        let engine = Engine::new(options, shared).map_err(|f| f.text)?;
        engine.run_source("test", script).map_err(|f| f.text)
    };
    std::thread::Builder::new().stack_size(crate::STACK_BYTES).spawn(work).unwrap().join().unwrap()
}

#[test]
fn uncaught_exception_names_message_and_place() {
    let failure = run("function f() { throw new Error('lost'); }\nf();").unwrap_err();
    assert!(failure.starts_with("Error: lost :\n"), "{failure}");
    assert!(failure.contains("at f (test:1"), "{failure}");
}
