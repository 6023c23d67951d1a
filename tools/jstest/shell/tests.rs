//! Scripts run without a server, by family: every test is a snippet that throws where the shell is wrong.

mod connection;
mod errors;
mod handles;
mod library;
mod numbers;
mod order;
mod types;

use crate::testing;

/// Functions the snippets use: nothing of the library under test.
const HELPERS: &str = r#"
    function same(actual, expected) {
        if (!Object.is(actual, expected)) {
            throw new Error("expected " + expected + " (" + typeof expected + "), got " + actual + " (" + typeof actual + ")");
        }
    }
    function fails(action, text, code) {
        let caught;
        try { action(); } catch (e) { caught = e; }
        if (!(caught instanceof Error)) { throw new Error("threw " + caught + " instead of an Error like: " + text); }
        if (!caught.message.includes(text)) { throw new Error("'" + caught.message + "' has not: " + text); }
        if (code !== undefined) { same(caught.code, code); }
    }
"#;

/// Runs `script` behind the helpers; an uncaught exception fails the test.
#[track_caller]
fn passes(script: &str) {
    if let Err(text) = testing::run(&format!("{HELPERS}\n{script}")) {
        panic!("{text}");
    }
}

#[test]
fn uncaught_exception_names_message_and_place() {
    let failure = testing::run("function f() { throw new Error('lost'); }\nf();").unwrap_err();
    assert!(failure.starts_with("Error: lost :\n"), "{failure}");
    assert!(failure.contains("at f (test:1"), "{failure}");
}
