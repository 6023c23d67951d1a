//! Programs started from scripts: system programs stand for servers, so that nothing else has to be built.

use super::launch::Places;
use crate::testing::run_with;
use crate::{Options, Shared};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Runs `script` where `mongod` and `mongos` are shell scripts with `body`, and `mongo` is one that echoes.
fn run_with_servers(body: &str, script: &str) -> (Result<(), String>, String) {
    let bin = tempfile::tempdir().unwrap();
    for name in ["mongod", "mongos"] {
        write_program(&bin.path().join(name), body);
    }
    write_program(&bin.path().join("shell"), "echo \"$0 root=$JSTEST_ROOT args=$*\"");
    let places = Places { servers: bin.path().into(), shell: bin.path().join("shell") };
    let options = Options { nodb: true, root: "/the/root".into(), ..Options::default() };
    run_with(options, script, |shared: &Shared| shared.programs.set_places(places))
}

fn write_program(path: &Path, body: &str) {
    std::fs::write(path, format!("#!/bin/sh\n{body}\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Prints what it was called with, then waits to be told to end.
const SERVER: &str = "echo \"called with $*\"; echo to error >&2; trap 'echo bye; exit 3' TERM; \
                      while true; do sleep 0.02; done";

const UNTIL: &str = r#"
    function until(f) {
        for (let i = 0; i < 500; i++) { if (f()) return; sleep(10); }
        throw Error("never: " + f);
    }
"#;

#[test]
fn a_server_is_started_watched_and_stopped() {
    let script = format!(
        "{UNTIL}{}",
        r#"
        const pid = _startMongoProgram("mongod", "--port", 20020, "--dbpath", "/x");
        const number = Number(String(pid).replace(/\D/g, ""));
        if (checkProgram(pid).alive !== true || "exitCode" in checkProgram(pid)) throw Error("alive");
        if (_runningMongoChildProcessIds().length !== 1) throw Error("one runs");
        until(() => rawMongoProgramOutput().includes("to error"));
        if (!rawMongoProgramOutput().includes("d20020| called with --port 20020 --dbpath /x\n")) {
            throw Error(rawMongoProgramOutput());
        }
        if (_stopMongoProgram(20020, 15) !== 3) throw Error("its exit code");
        const after = checkProgram(pid);
        if (after.alive !== false || after.exitCode !== 3) throw Error("ended");
        if (!rawMongoProgramOutput().includes("d20020| bye\n")) throw Error("its last line is there");
        if (_runningMongoChildProcessIds().length !== 0) throw Error("none runs");
        if (waitProgram(pid) !== 3) throw Error("waited for afterwards");
        if (_stopMongoProgram(20020) !== 0) throw Error("nothing is there");
        clearRawMongoProgramOutput();
        if (rawMongoProgramOutput() !== "") throw Error("cleared");
    "#
    );
    let (outcome, output) = run_with_servers(SERVER, &script);
    outcome.unwrap();
    assert!(output.contains("d20020| bye\n"), "{output}");
    assert!(
        output.contains("shell: started program (sh") && output.contains("mongod --port 20020"),
        "{output}"
    );
    assert!(output.contains("No program started on port: 20020"), "{output}");
}

#[test]
fn the_forms_of_arguments_and_the_environment() {
    run_with_servers(
        "echo \"$*,$COLOR,$JSTEST_INHERITED\"",
        r#"
        const runs = [
            ["mongod", "a", 1, NumberLong(2)],
            [["mongod", "a", 1, NumberInt(2)]],
            [{args: ["mongod", "a", "1", 2], env: {COLOR: "red"}}],
        ];
        for (const args of runs) {
            clearRawMongoProgramOutput();
            if (waitProgram(_startMongoProgram(...args)) !== 0) throw Error("exit code");
            const color = args[0].env ? "red" : "";
            if (!new RegExp("^d\\d+\\| a 1 2," + color + ",\n$").test(rawMongoProgramOutput())) {
                throw Error(rawMongoProgramOutput());
            }
        }
        let empty;
        try { _startMongoProgram(); } catch (e) { empty = e.message; }
        if (!/no program/.test(empty)) throw Error(empty);
    "#,
    )
    .0
    .unwrap();
}

#[test]
fn exit_codes_and_signals() {
    run_with_servers(SERVER, &format!("{UNTIL}{}", r#"
        const eq = (a, b) => { if (a !== b) throw Error(a + " is not " + b); };
        eq(runProgram("sh", "-c", "exit 7"), 7);
        eq(run("true"), 0);
        eq(runNonMongoProgram("sh", "-c", "kill -9 $$"), -9);
        eq(runNonMongoProgramQuietly("sh", "-c", "echo unheard; exit 1"), 1);
        if (rawMongoProgramOutput().includes("unheard")) throw Error("quiet");
        eq(_runMongoProgram("mongo", "--eval", "1"), 0);
        if (!/^sh\d+\| .*root=\/the\/root args=--eval 1$/m.test(rawMongoProgramOutput())) throw Error(rawMongoProgramOutput());
        const a = _startMongoProgram("mongos", "--port", "20031");
        eq(stopMongoProgramByPid(a, 9), -9);
        eq(checkProgram(a).exitCode, -9);
        const b = _startMongoProgram("mongod", "--configsvr", "--port", "20032");
        until(() => rawMongoProgramOutput().includes("c20032| to error"));
        eq(_stopMongoProgram(20032, 15, {}, false), 0);
        eq(waitMongoProgram(20032), 3);
        eq(waitMongoProgram(20033), 0);
        let unknown;
        try { checkProgram(1); } catch (e) { unknown = e.message; }
        if (!/no program with pid 1 /.test(unknown)) throw Error(unknown);
    "#))
    .0
    .unwrap();
}

#[test]
fn a_program_that_cannot_start_is_a_child_that_has_ended() {
    let (outcome, output) = run_with_servers(
        SERVER,
        r#"
        const pid = _startMongoProgram("mongod-1.0", "--port", "20040");
        if (checkProgram(pid).alive || checkProgram(pid).exitCode !== 255) throw Error("ended");
        if (runMongoProgram("no-such-program") !== 255) throw Error("exit code");
        if (!/^d20040\| Unable to start program mongod-1.0/m.test(rawMongoProgramOutput())) throw Error(rawMongoProgramOutput());
        const again = _startMongoProgram("mongod", "--port", "20040");
        let used;
        try { _startMongoProgram("mongod", "--port", "20040"); } catch (e) { used = e.message; }
        if (!/port 20040 is used/.test(used)) throw Error(used);
        _stopMongoProgram(20040, 9);
    "#,
    );
    outcome.unwrap();
    assert!(output.contains("Unable to start program no-such-program"), "{output}");
}

#[test]
fn output_is_selected_by_pattern() {
    run_with_servers(
        "echo '{\"id\":1}'; echo '{\"id\":2}'",
        r#"
        waitProgram(_startMongoProgram("mongod", "--port", "20050"));
        const eq = (a, b) => { if (a !== b) throw Error(a); };
        eq(rawMongoProgramOutput('"id":2'), 'd20050| {"id":2}\n');
        eq(rawMongoProgramOutput(/"ID":1/i), 'd20050| {"id":1}\n');
        eq(rawMongoProgramOutput(".*"), rawMongoProgramOutput());
        let bad;
        try { rawMongoProgramOutput("("); } catch (e) { bad = e.message; }
        if (!/bad pattern/.test(bad)) throw Error(bad);
    "#,
    )
    .0
    .unwrap();
}

#[test]
fn what_is_left_running_is_stopped_and_said() {
    let printed = tempfile::NamedTempFile::new().unwrap();
    let shared = std::sync::Arc::new(Shared::new(Box::new(printed.reopen().unwrap())));
    let launch = super::launch::Launch {
        args: ["sh", "-c", "while true; do sleep 0.02; done"].map(String::from).to_vec(),
        ..Default::default()
    };
    let child = super::Programs::start(&shared, launch.clone()).unwrap();
    assert_eq!(child.exit_code(), None);
    assert_eq!(super::finish(&shared, 0), super::EXIT_UNTERMINATED);
    assert_eq!(child.exit_code(), Some(-15));
    assert!(std::fs::read_to_string(printed.path()).unwrap().contains("unterminated processes"));
    assert_eq!(super::finish(&shared, 0), 0);
    super::Programs::start(&shared, launch).unwrap();
    assert_eq!(super::finish(&shared, 253), 253);
}
