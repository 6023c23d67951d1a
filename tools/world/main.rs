//! A whole cluster in one thread, on time, network and disks that follow from a seed.
//!
//! ```text
//! cargo test -p world                              TESSERA_SEEDS seeds (200) of a cluster and half as many of a set, half of
//!                                                  both with connections that break all the time; then without each check, until a seed fails: one that never does
//!                                                  would mean that this test is blind
//! cargo test -p world -- --seeds 1000..1200        these
//! cargo test -p world -- --seed 17 --verbose --logs DIR     one, with every message and the nodes' logs
//! cargo test -p world -- --set --seeds 1..41       one set of three members instead of a cluster
//! cargo test -p world -- --hard --seeds 1..41      connections break all the time
//! cargo test -p world -- --without version --seeds 1..50    nodes do without a check (`Without::ALL` has the others)
//! ```
//! The nodes are the servers' own: frames, dispatch, node, log and recovery. Replaced are the sockets (`runtime::simulation::network`),
//! the files (`storage::files::SimulatedDisk`), clock, randomness and threads (`runtime`). `workload` says what must hold.
//!
//! Every seed runs in a process of its own, so that nothing that a process keeps (ids counted, sizes learned) goes from one run
//! to the next; two runs of a seed print the same trace, a number made of everything that was sent, by whom and when.

mod appender;
mod cluster;
mod entropy;
mod history;
mod set;
mod workload;

use cluster::{Wishes, Without};
use std::io::Read;
use std::ops::Range;
use std::process::{Command, ExitCode, Output, Stdio};
use std::sync::Mutex;
use std::thread::JoinHandle;
use std::time::Duration;

#[derive(Default)]
struct Arguments {
    seed: Option<u64>,
    seeds: Option<Range<u64>>,
    wishes: Wishes,
    without: Option<String>,
}

/// # Errors
/// A name of nothing that the cluster can do without.
fn arguments() -> Result<Arguments, String> {
    let mut all = Arguments::default();
    let mut given = std::env::args().skip(1);
    while let Some(argument) = given.next() {
        let mut value = || given.next().unwrap_or_default();
        match argument.as_str() {
            "--seed" => all.seed = value().parse().ok(),
            "--seeds" => {
                let text = value();
                let ends = text.split_once("..").and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
                all.seeds = ends.map(|(a, b)| a..b);
            }
            "--without" => {
                let name = value();
                let known = Without::named(&name);
                all.wishes.without = Some(known.ok_or_else(|| format!("nothing is called {name:?}"))?);
                all.without = Some(name);
            }
            "--set" => all.wishes.set = true,
            "--hard" => all.wishes.hard = true,
            "--verbose" => all.wishes.verbose = true,
            "--logs" => all.wishes.logs = Some(value().into()),
            // What `cargo test` passes to usual harnesses.
            _ => {}
        }
    }
    Ok(all)
}

fn main() -> ExitCode {
    let arguments = match arguments() {
        Ok(arguments) => arguments,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    if let Some(seed) = arguments.seed {
        return one(seed, arguments.wishes);
    }
    if let Some(seeds) = arguments.seeds {
        let kind = Kind { set: arguments.wishes.set, hard: arguments.wishes.hard };
        return conclude(&many(seeds, kind, arguments.without.as_deref(), usize::MAX));
    }
    if let Some(what) = history::overlooks() {
        println!("the checker of histories is wrong about {what}");
        return ExitCode::FAILURE;
    }
    let count = std::env::var("TESSERA_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(200);
    let half = 1 + count / 2;
    let mut run = Run::new();
    run.add(many(1..half, Kind { set: false, hard: false }, None, usize::MAX));
    run.add(many(half..1 + count, Kind { set: false, hard: true }, None, usize::MAX));
    run.add(many(1..1 + count / 4, Kind { set: true, hard: false }, None, usize::MAX));
    run.add(many(half..half + count / 4, Kind { set: true, hard: true }, None, usize::MAX));
    for (what, without) in Without::ALL.into_iter().filter(|(what, _)| !RARE.contains(what)) {
        let kind = Kind { set: without.concerns_sets(), hard: what == "executed" };
        if many(1..1 + NOTICED_WITHIN, kind, Some(what), 1).failed.is_empty() {
            println!("no seed fails without {what}: this test would not notice");
            run.failed.push(0);
        }
    }
    conclude(&run)
}

/// What shows in one seed of a hundred, fewer, or none so far.
const RARE: [&str; 4] = ["decision", "prepared", "vote", "term"];

/// So many seeds at most until one fails because something was left out.
const NOTICED_WITHIN: u64 = 200;

fn conclude(run: &Run) -> ExitCode {
    let (failed, seconds) = (&run.failed, run.began.elapsed().as_secs_f64());
    println!("{} passed, {} failed {failed:?} in {seconds:.1} s", run.passed, failed.len());
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// As deep as the servers' own threads.
const STACK_BYTES: usize = 16 << 20;

fn one(seed: u64, wishes: Wishes) -> ExitCode {
    entropy::fix(seed);
    let run = move || {
        runtime::simulation::run(seed, async move {
            runtime::simulation::trace_to_stderr(wishes.verbose);
            let result = match cluster::establish(&wishes).await {
                Ok(mut nodes) if wishes.set => set::run(&mut nodes, wishes.hard).await,
                Ok(mut nodes) => workload::run(&mut nodes, wishes.hard).await,
                Err(error) => Err(format!("the cluster did not come up: {error}")),
            };
            (result, runtime::simulation::trace())
        })
    };
    // A fresh thread has no state that was made before the numbers were fixed.
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(run);
    match thread.expect("a thread starts").join() {
        Ok((Ok(done), trace)) => {
            println!("{trace}: {done}");
            ExitCode::SUCCESS
        }
        Ok((Err(error), trace)) => {
            println!("{trace}: {error}");
            ExitCode::FAILURE
        }
        Err(_) => ExitCode::from(101),
    }
}

/// What a seed is run on.
#[derive(Clone, Copy)]
struct Kind {
    set: bool,
    hard: bool,
}

/// Runs a seed in a process of its own; what it printed, and whether all held.
fn apart(seed: u64, kind: Kind, without: Option<&str>) -> (String, bool) {
    let program = std::env::current_exe().expect("this program has a path");
    let mut command = Command::new(program);
    command.arg("--seed").arg(seed.to_string());
    for (flag, _) in [("--set", kind.set), ("--hard", kind.hard)].into_iter().filter(|(_, on)| *on) {
        command.arg(flag);
    }
    if let Some(what) = without {
        command.args(["--without", what]);
    }
    let output = within(LIMIT, &mut command).expect("this program can be started");
    let mut text = String::from_utf8_lossy(&output.stdout).trim().to_string();
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        text.push_str(&format!(" [{}] {}", output.status, errors.trim()));
    }
    (text, output.status.success())
}

/// A seed takes a second; one that takes so long has a node that goes round and round in no time at all.
const LIMIT: Duration = Duration::from_secs(180);

/// Runs a program to its end, or kills it after so long.
fn within(limit: Duration, command: &mut Command) -> std::io::Result<Output> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    // Read beside the waiting: a pipe that nobody empties holds its writer up.
    let (stdout, stderr) = (emptied(child.stdout.take()), emptied(child.stderr.take()));
    let began = std::time::Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if began.elapsed() > limit {
            child.kill()?;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let read = |text: JoinHandle<Vec<u8>>| text.join().unwrap_or_default();
    Ok(Output { status, stdout: read(stdout), stderr: read(stderr) })
}

fn emptied(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut text = Vec::new();
        // What was read before an error is what there is.
        pipe.map(|mut pipe| pipe.read_to_end(&mut text));
        text
    })
}

/// What became of some seeds.
struct Run {
    began: std::time::Instant,
    passed: usize,
    failed: Vec<u64>,
}

impl Run {
    fn new() -> Run {
        Run { began: std::time::Instant::now(), passed: 0, failed: Vec::new() }
    }
    fn add(&mut self, other: Run) {
        self.passed += other.passed;
        self.failed.extend(other.failed);
    }
}

/// Runs seeds on all cores until so many have failed, the first of them twice unless something is left out: that two runs
/// differ would not show that it is missed.
fn many(seeds: Range<u64>, kind: Kind, without: Option<&str>, failures_max: usize) -> Run {
    let run = Mutex::new(Run::new());
    let next = Mutex::new(seeds.clone());
    let work = || {
        while run.lock().expect("no worker panics").failed.len() < failures_max {
            let Some(seed) = next.lock().expect("no worker panics").next() else { return };
            let (mut text, mut held) = apart(seed, kind, without);
            if held && without.is_none() && seed == seeds.start && apart(seed, kind, without).0 != text {
                (text, held) = ("two runs differ".to_string(), false);
            }
            let mut run = run.lock().expect("no worker panics");
            if held {
                run.passed += 1;
            } else {
                let what = without.map(|what| format!(" without {what}")).unwrap_or_default();
                let on = if kind.set { " on a set" } else { "" };
                println!("seed {seed} failed{on}{what}: {text}");
                run.failed.push(seed);
            }
        }
    };
    let workers = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
    run.into_inner().expect("no worker panics")
}
