//! The runner: selects tests, gives each its fixture, runs it in a shell of its own and reports.
//!
//! ```text
//! options -> plan (selection, suite, header, needs)     which test on which fixture, or why not
//!         -> run: N jobs                                fixture: start, clean, replace
//!              -> attempt: one child process            wait, hang dump, kill, judge
//!         -> report                                     progress, summary, JSON, JUnit
//! ```
//!
//! Invariant: whatever a test starts carries its mark (processes.rs) and is dead when its outcome is known.

mod attempt;
mod child;
mod fixture;
mod hang;
mod header;
mod interrupt;
mod kind;
mod needs;
mod node;
mod options;
mod outcome;
mod output;
mod plan;
mod ports;
mod processes;
mod report;
mod run;
mod selection;
mod suite;

use clap::Parser;
use options::Options;
use outcome::Outcome;
use plan::{Case, Verdict};
use processes::Mark;
use report::progress::Progress;
use run::{Event, Run};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

/// Exit codes.
const PASSED: i32 = 0;
const FAILED: i32 = 1;
const BAD_USAGE: i32 = 2;
const NOTHING_RAN: i32 = 3;
const INTERRUPTED: i32 = 130;

/// How often the bar on a terminal is drawn.
const DRAW: Duration = Duration::from_millis(500);

/// Runs the tests that `args` name and returns the exit code of the process.
pub(crate) fn run(args: Vec<OsString>) -> i32 {
    let options = match Options::try_parse_from(std::iter::once("jstest".into()).chain(args)) {
        Ok(options) => options,
        Err(error) => {
            let _ = error.print();
            return error.exit_code();
        }
    };
    match run_with(&options) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("jstest: {error}");
            BAD_USAGE
        }
    }
}

fn run_with(options: &Options) -> Result<i32, String> {
    if options.suite.is_empty() && options.selection.is_empty() {
        return Err("no tests were named; give files, globs, @LISTs or --suite (see --help)".to_string());
    }
    let root = options.root().map_err(|e| format!("--root: {e}"))?;
    let (cases, empty) = plan::plan(options, &root)?;
    empty.iter().for_each(|pattern| eprintln!("jstest: {pattern}: matches no file"));
    if cases.is_empty() {
        eprintln!("jstest: no tests are selected");
        return Ok(NOTHING_RAN);
    }
    // A report that cannot be written is noticed before an hour of tests.
    for path in [&options.json, &options.junit].into_iter().flatten() {
        std::fs::write(path, "").map_err(|e| format!("{}: {e}", path.display()))?;
    }
    let run = prepare(options, &root, &cases)?;
    interrupt::install();
    let (mut outcomes, not_run, seconds) = execute(&run, cases, options.jobs());
    clear_away(&run, &outcomes);
    outcomes.sort_by(|a, b| (report::group(a), &a.name).cmp(&(report::group(b), &b.name)));
    let result = report::Result { outcomes: &outcomes, not_run, seconds, root: &root };
    report::print(&report::summary::render(&result));
    write(&options.json, || report::json::render(&result))?;
    write(&options.junit, || report::junit::render(&result))?;
    Ok(exit_code(&result))
}

fn write(path: &Option<PathBuf>, text: impl Fn() -> String) -> Result<(), String> {
    let Some(path) = path else { return Ok(()) };
    std::fs::write(path, text()).map_err(|e| format!("{}: {e}", path.display()))
}

fn prepare(options: &Options, root: &Path, cases: &[Case]) -> Result<Run, String> {
    let executable = std::env::current_exe().map_err(|e| format!("this program's own path: {e}"))?;
    let binaries = match std::env::var_os("JSTEST_BIN").filter(|v| !v.is_empty()) {
        Some(named) => PathBuf::from(named),
        None => executable.parent().unwrap_or(Path::new("/")).to_path_buf(),
    };
    let binaries = binaries.canonicalize().map_err(|e| format!("JSTEST_BIN: {}: {e}", binaries.display()))?;
    let wants_servers = |case: &Case| case.verdict == Verdict::Run && case.fixture != kind::Kind::None;
    if cases.iter().any(wants_servers) && !binaries.join("tessera").is_file() {
        let place = binaries.display();
        return Err(format!(
            "there is no tessera in {place}; build it there or name its directory in JSTEST_BIN"
        ));
    }
    let shell_lib =
        match &options.shell_lib {
            Some(directory) => {
                let found = directory.canonicalize().ok().filter(|d| d.is_dir());
                Some(found.ok_or_else(|| {
                    format!("--shell-lib: {}: there is no such directory", directory.display())
                })?)
            }
            None => None,
        };
    let directory = own_directory().map_err(|e| format!("a directory for the run: {e}"))?;
    let made = Run::new(root.to_path_buf(), shell_lib, executable, binaries, directory);
    made.map_err(|e| format!("a directory for the run: {e}"))
}

/// A new directory whose name no other run has.
fn own_directory() -> std::io::Result<PathBuf> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let name = format!("jstest-{}-{:x}", std::process::id(), now.as_nanos());
    let directory = std::env::temp_dir().canonicalize()?.join(name);
    std::fs::create_dir(&directory)?;
    Ok(directory)
}

/// Runs the cases; answers the outcomes in the order they ended, how many did not run, and the seconds it took.
fn execute(run: &Run, cases: Vec<Case>, jobs: usize) -> (Vec<Outcome>, usize, f64) {
    let begun = Instant::now();
    let mut progress = Progress::new(cases.len());
    let jobs = jobs.min(cases.len());
    let queue = Mutex::new(VecDeque::from(cases));
    let mut outcomes = Vec::new();
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            run.all(&queue, jobs, &sender);
            drop(sender);
        });
        loop {
            match receiver.recv_timeout(DRAW) {
                Ok(event) => {
                    progress.show(&event);
                    if let Event::Finished { outcome, .. } = event {
                        outcomes.push(*outcome);
                    }
                }
                Err(mpsc::RecvTimeoutError::Timeout) => progress.draw(),
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            }
        }
    });
    progress.clear();
    let not_run = queue.into_inner().unwrap_or_else(|e| e.into_inner()).len();
    (outcomes, not_run, begun.elapsed().as_secs_f64())
}

/// Kills what still carries a mark of this run and removes its directory but for the kept output.
fn clear_away(run: &Run, outcomes: &[Outcome]) {
    Mark { value: run.mark.clone(), whole: false, session: None }.kill_all();
    if outcomes.iter().all(|o| o.output.is_none()) {
        let _ = std::fs::remove_dir_all(&run.directory);
        return;
    }
    let entries = std::fs::read_dir(&run.directory).into_iter().flatten().filter_map(Result::ok);
    for entry in entries.filter(|e| e.file_name() != "output") {
        let _ = std::fs::remove_dir_all(entry.path());
    }
}

fn exit_code(result: &report::Result<'_>) -> i32 {
    if interrupt::noticed_any() {
        INTERRUPTED
    } else if result.failures() > 0 {
        FAILED
    } else if result.count(outcome::Status::Pass) == 0 {
        NOTHING_RAN
    } else {
        PASSED
    }
}
