//! Scripts and modules of a directory, run as files of the command line.

use crate::{Engine, Options, Shared};
use std::path::Path;
use std::sync::Arc;

/// Runs `files[0]` of a root that holds `files`; the text of the uncaught exception is the error.
fn run(files: &[(&str, &str)]) -> Result<(), String> {
    let root = tempfile::tempdir().unwrap();
    for (name, source) in files {
        let path = root.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, source).unwrap();
    }
    run_under(root.path(), files[0].0)
}

fn run_under(root: &Path, file: &str) -> Result<(), String> {
    let (root, file) = (root.to_path_buf(), root.join(file));
    let work = move || {
        let options = Arc::new(Options { nodb: true, root, ..Options::default() });
        let shared = Arc::new(Shared::new(Box::new(std::io::sink())));
        let engine = Engine::new(options, shared).map_err(|f| f.text)?;
        engine.run_file(&file).map_err(|f| f.text)
    };
    std::thread::Builder::new().stack_size(crate::STACK_BYTES).spawn(work).unwrap().join().unwrap()
}

/// The message of the exception that running `files[0]` ends with.
fn failure(files: &[(&str, &str)]) -> String {
    run(files).expect_err("the file was to fail")
}

const COUNTER: (&str, &str) = (
    "jstests/libs/counter.js",
    "globalThis.evaluations = (globalThis.evaluations || 0) + 1;\nexport let n = 7;",
);

#[test]
fn imports_are_found_under_the_root_and_beside_the_importer_and_are_one_module() {
    let main = r#"
        import {n} from "jstests/libs/counter.js";
        import * as again from "./libs/counter.js";
        import {twice} from "jstests/sub/twice.js";
        const late = await import("../jstests/libs/counter.js");
        if (n !== 7 || again.n !== 7 || late.n !== 7 || twice !== 14) throw new Error("wrong exports");
        if (evaluations !== 1) throw new Error("evaluated " + evaluations + " times");
        if (!import.meta.url.endsWith("jstests/main.js")) throw new Error(import.meta.url);
    "#;
    let twice = ("jstests/sub/twice.js", "import {n} from '../libs/counter.js'; export const twice = 2 * n;");
    run(&[("jstests/main.js", main), COUNTER, twice]).unwrap();
}

#[test]
fn a_script_imports_dynamically_from_functions_and_loaded_files() {
    let main = r#"
        var sloppy = (function() { return this; })() === globalThis;
        if (!sloppy) throw new Error("a script is sloppy");
        load("jstests/libs/loaded.js");
        if (loadedByScript !== 3) throw new Error("load runs in the global scope");
        (async function() {
            const {n} = await import("jstests/libs/counter.js");
            globalThis.seen = n;
        })();
    "#;
    let loaded = ("jstests/libs/loaded.js", "var loadedByScript = 3; undeclared = 4;");
    run(&[("main.js", main), COUNTER, loaded]).unwrap();
}

#[test]
fn await_outside_of_functions_makes_a_module() {
    run(&[("main.js", "const v = await Promise.resolve(5);\nif (v !== 5) throw new Error('not awaited');")])
        .unwrap();
    let stuck = failure(&[("main.js", "await new Promise(() => {});")]);
    assert!(stuck.contains("awaits a promise that nothing settles"), "{stuck}");
}

#[test]
fn an_exception_of_a_module_is_the_files() {
    let thrown = failure(&[
        ("main.js", "import {n} from 'jstests/libs/counter.js';\nthrow new TypeError('lost');"),
        COUNTER,
    ]);
    assert!(thrown.starts_with("TypeError: lost"), "{thrown}");
    let nested = failure(&[
        ("main.js", "import 'jstests/x.js';"),
        ("jstests/x.js", "export {};\nthrow new Error('inner');"),
    ]);
    assert!(nested.starts_with("Error: inner"), "{nested}");
    let absent = failure(&[("main.js", "import 'jstests/no_such.js';")]);
    assert!(absent.contains("Cannot find module 'jstests/no_such.js'"), "{absent}");
    let name = failure(&[("main.js", "import {none} from 'jstests/libs/counter.js';"), COUNTER]);
    assert!(name.contains("none"), "{name}");
}

#[test]
fn a_mistake_is_reported_as_a_script_or_a_module_has_it() {
    let script = failure(&[("main.js", "var a = ;\n")]);
    assert!(script.starts_with("SyntaxError"), "{script}");
    let module = failure(&[("main.js", "import {n} from 'jstests/libs/counter.js';\nvar a = ;"), COUNTER]);
    assert!(module.starts_with("SyntaxError") && module.contains("main.js:2"), "{module}");
}

#[test]
fn a_rejection_nobody_handles_fails_the_file() {
    let lost = failure(&[("main.js", "(async function() { throw new Error('forgotten'); })();")]);
    assert!(lost.starts_with("Error: forgotten"), "{lost}");
    run(&[("main.js", "const p = Promise.reject(new Error('late')); p.catch(() => {});")]).unwrap();
    let inside = "async function f() { throw 1; }\nlet got; try { await f(); } catch (e) { got = e; }\n\
                  try { await import('jstests/bad.js'); } catch (e) { got += e.message; }\n\
                  if (got !== '1bad') throw new Error(got);";
    run(&[("main.js", inside), ("jstests/bad.js", "export {}; throw new Error('bad');")]).unwrap();
}

#[test]
fn load_of_a_missing_file_throws_the_shells_error() {
    let main = r#"
        let message;
        try { load("jstests/no_such.js"); } catch (e) { message = e.message; }
        if (message !== "error loading js file: jstests/no_such.js") throw new Error(message);
        if (load("jstests/there.js") !== true) throw new Error("load returns true");
        try { load("jstests/throws.js"); message = "none"; } catch (e) { message = e.message; }
        if (message !== "mine") throw new Error(message);
    "#;
    let files = [
        ("main.js", main),
        ("jstests/there.js", "#!/usr/bin/mongo\n1;"),
        ("jstests/throws.js", "throw Error('mine')"),
    ];
    run(&files).unwrap();
}

#[test]
fn modules_of_this_program_are_imported_and_loaded_where_no_file_is() {
    let main = r#"
        import {NamespaceUtils} from "jstests/libs/os_helpers.js";
    "#;
    assert!(failure(&[("main.js", main)]).contains("NamespaceUtils"));
    run(&[(
        "main.js",
        "import {isLinux} from 'jstests/libs/os_helpers.js';\nif (!isLinux()) throw new Error('no');",
    )])
    .unwrap();
    run(&[("main.js", "load('jstests/libs/os_helpers.js');\nif (!isLinux()) throw new Error('no');")])
        .unwrap();
}

#[test]
fn an_evaluated_script_prints_what_it_comes_to() {
    let (outcome, output) =
        crate::testing::eval_and_print(&["1 + 1", "undefined", "var a = 5", "[a, null]", "await a;"]);
    outcome.unwrap();
    assert_eq!(output, "2\n5,\n");
    let (outcome, _) = crate::testing::eval_and_print(&["Promise.reject(new Error('alone')); 1"]);
    assert!(outcome.unwrap_err().starts_with("Error: alone"));
}
