//! One test from its start to the moment nothing of it is left.

use super::child::{self, Ended};
use super::fixture::Fixture;
use super::hang;
use super::interrupt;
use super::outcome::{Outcome, Status};
use super::output;
use super::plan::Case;
use super::processes::{Mark, Process};
use super::run::Run;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

/// Lines of output that a failure shows.
const TAIL_LINES: usize = 40;
/// Children that are told to end may take this long after their test.
const GRACE: Duration = Duration::from_secs(1);
/// What the shell answers when its own code panicked.
const PANICKED: [i32; 2] = [101, 250];

/// Where one attempt lives.
pub(super) struct Place<'a> {
    pub run: &'a Run,
    /// A directory of its own, which is removed afterwards.
    pub directory: PathBuf,
    /// The value of `JSTEST_MARK`.
    pub mark: String,
    /// The value of `JSTEST_PORTS`.
    pub ports: String,
}

/// Runs a test and answers what became of it. Whatever it started is dead afterwards; the fixture is not looked at.
pub(super) fn run(case: &Case, fixture: Option<&Fixture>, place: &Place<'_>) -> Outcome {
    let begun = Instant::now();
    let mut outcome = blank(case);
    match attempt(case, fixture, place, &mut outcome) {
        Ok(()) => {}
        Err(error) => {
            outcome.status = Status::Fail;
            outcome.reason = format!("it could not be started: {error}");
        }
    }
    outcome.seconds = match outcome.seconds {
        0.0 => begun.elapsed().as_secs_f64(),
        measured => measured,
    };
    let output = place.directory.join("output.txt");
    if outcome.status.is_failure() {
        outcome.tail =
            output::tail(&output, TAIL_LINES + 200 * usize::from(outcome.status == Status::Timeout));
        outcome.output = place.run.keep_output(case, &output);
    }
    let _ = std::fs::remove_dir_all(&place.directory);
    outcome
}

/// An outcome of a test that has not run yet.
pub(super) fn blank(case: &Case) -> Outcome {
    Outcome {
        name: case.name.clone(),
        fixture: case.fixture,
        suite: case.settings.suite.clone(),
        status: Status::Pass,
        seconds: 0.0,
        reason: String::new(),
        output: None,
        tail: String::new(),
        missing_natives: Vec::new(),
        left_running: Vec::new(),
        fixture_replaced: None,
        binary_output: false,
    }
}

fn attempt(
    case: &Case,
    fixture: Option<&Fixture>,
    place: &Place<'_>,
    outcome: &mut Outcome,
) -> std::io::Result<()> {
    let output = place.directory.join("output.txt");
    let result = place.directory.join("result.jsonl");
    let data = place.directory.join("data");
    std::fs::create_dir_all(&data)?;
    let mut command = shell(case, fixture, place);
    command.env("JSTEST_MARK", &place.mark);
    command.env("JSTEST_PORTS", &place.ports);
    command.env("JSTEST_DATA", &data);
    command.env("JSTEST_RESULT", &result);
    command.env("JSTEST_BIN", &place.run.binaries);
    let begun = Instant::now();
    let mut child = child::spawn(&mut command, &output)?;
    let mark = Mark { value: place.mark.clone(), whole: true, session: Some(child.id() as i32) };
    let ended = child::wait(&mut child, begun + case.settings.timeout, &output);
    outcome.seconds = begun.elapsed().as_secs_f64();
    if matches!(ended, Ok(Ended::TimedOut)) {
        write_dump(case, fixture, &mark.processes(), &output)?;
    }
    let left = match &ended {
        Ok(Ended::Exited(_)) => leftovers(&mark),
        _ => mark.kill_all(),
    };
    // An unreaped child is a zombie, which neither runs nor holds anything.
    let _ = child.kill();
    let _ = child.wait();
    outcome.missing_natives = missing_natives(&result);
    outcome.binary_output = output::is_binary(&output);
    let ended = ended?;
    if matches!(ended, Ended::Exited(_)) {
        outcome.left_running = left.iter().map(Process::command).collect();
    }
    (outcome.status, outcome.reason) = judge(&ended, case, outcome, &output);
    Ok(())
}

/// The shell's command line for a test.
fn shell(case: &Case, fixture: Option<&Fixture>, place: &Place<'_>) -> Command {
    let run = place.run;
    let mut command = Command::new(&run.executable);
    command.args(["shell", "--norc", "--quiet", "--root"]).arg(&run.root);
    if let Some(library) = &run.shell_lib {
        command.arg("--shell-lib").arg(library);
    }
    match fixture.and_then(|f| f.address.rsplit_once(':')) {
        Some((host, port)) => command.args(["--host", host, "--port", port]),
        None => command.arg("--nodb"),
    };
    command.arg("--eval").arg(preamble(case, place));
    command.args(case.settings.passthrough.iter().map(|p| run.passthrough_file(*p)));
    command.arg(&case.path);
    command.current_dir(&run.root);
    command
}

/// What the shell evaluates before the test: `TestData`, then the suite's own words.
fn preamble(case: &Case, place: &Place<'_>) -> String {
    let stem = case.path.file_stem().unwrap_or_default().to_string_lossy();
    let mut data = serde_json::Map::new();
    data.insert("testName".into(), stem.into());
    data.insert("enableTestCommands".into(), true.into());
    data.extend(case.settings.shell.test_data.clone());
    // A foreign library is told where ports and data are; ours asks the environment.
    let mut runner = String::new();
    if place.run.shell_lib.is_some() {
        let mut ports = place.ports.split('-').filter_map(|port| port.parse::<u16>().ok());
        data.extend(ports.next().map(|port| ("minPort".into(), port.into())));
        data.extend(ports.next().map(|port| ("maxPort".into(), port.into())));
        let directory = serde_json::Value::from(place.directory.join("data/").to_string_lossy().into_owned());
        let set = format!("MongoRunner.dataDir = MongoRunner.dataPath = {directory};\n");
        runner = format!("if (typeof MongoRunner !== \"undefined\") {set}");
    }
    // JSON is JavaScript, whatever the strings hold.
    format!("var TestData = {};\n{runner}{}", serde_json::Value::from(data), case.settings.shell.eval)
}

fn write_dump(
    case: &Case,
    fixture: Option<&Fixture>,
    processes: &[Process],
    output: &Path,
) -> std::io::Result<()> {
    let mut file = std::fs::File::options().append(true).open(output)?;
    let seconds = case.settings.timeout.as_secs();
    writeln!(file, "\n---- jstest: still running after {seconds} s ----")?;
    file.write_all(hang::dump(fixture, processes).as_bytes())
}

/// What still runs after a test that ended by itself, and a moment later. It is killed.
fn leftovers(mark: &Mark) -> Vec<Process> {
    let deadline = Instant::now() + GRACE;
    while !mark.processes().is_empty() {
        if Instant::now() >= deadline || interrupt::noticed_any() {
            return mark.kill_all();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Vec::new()
}

fn judge(ended: &Ended, case: &Case, outcome: &Outcome, output: &Path) -> (Status, String) {
    match ended {
        Ended::TimedOut => {
            (Status::Timeout, format!("still running after {} s", case.settings.timeout.as_secs()))
        }
        Ended::Interrupted => (Status::Fail, "interrupted".to_string()),
        Ended::Flooded => (Status::Fail, "it printed more than 256 MiB".to_string()),
        Ended::Exited(status) => judge_exit(*status, outcome, output),
    }
}

fn judge_exit(status: ExitStatus, outcome: &Outcome, output: &Path) -> (Status, String) {
    if status.success() {
        return match outcome.left_running.len() {
            0 => (Status::Pass, String::new()),
            n => (Status::Leak, format!("it left {n} running: {}", outcome.left_running.join("; "))),
        };
    }
    if let Some(signal) = status.signal() {
        return (Status::Crash, format!("the shell died of {}", signal_name(signal)));
    }
    let code = status.code().unwrap_or_default();
    let said = output::uncaught(output);
    if PANICKED.contains(&code) && output::panicked(output) {
        return (Status::Crash, format!("the shell panicked: {}", said.unwrap_or_default()));
    }
    let reason = said.unwrap_or_else(|| format!("it ended with exit code {code}"));
    if !outcome.missing_natives.is_empty() {
        return (Status::MissingNative, format!("{} ({reason})", outcome.missing_natives.join(", ")));
    }
    (Status::Fail, reason)
}

fn signal_name(signal: i32) -> String {
    let name = match signal {
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGILL => "SIGILL",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGTERM => "SIGTERM",
        libc::SIGPIPE => "SIGPIPE",
        _ => return format!("signal {signal}"),
    };
    name.to_string()
}

/// The names in lines such as `{"missing": "name"}`, each once.
fn missing_natives(result: &Path) -> Vec<String> {
    let text = std::fs::read(result).unwrap_or_default();
    let mut names = Vec::new();
    for line in String::from_utf8_lossy(&text).lines() {
        let parsed: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
        if let Some(name) = parsed["missing"].as_str()
            && !names.iter().any(|n| n == name)
        {
            names.push(name.to_string());
        }
    }
    names
}

/// Makes a dead fixture the fault of the test that ran on it.
pub(super) fn blame_fixture(outcome: &mut Outcome, gone: String) {
    if outcome.status == Status::Timeout {
        outcome.reason = format!("{}; {gone}", outcome.reason);
        return;
    }
    outcome.reason = match outcome.reason.is_empty() {
        true => gone,
        false => format!("{gone}; {}", outcome.reason),
    };
    outcome.status = Status::Crash;
}
