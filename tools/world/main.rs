//! A whole cluster in one thread, on time, network and disks that follow from a seed.
//!
//! ```text
//! cargo test -p world                              TESSERA_SEEDS seeds (200), the first of them twice
//! cargo test -p world -- --seeds 1000..1200        these
//! cargo test -p world -- --seed 17 --verbose --logs DIR     one, with every message and the nodes' logs
//! cargo test -p world -- --no-sync --seeds 1..50   on disks that lie about syncs: some seed must fail, or this program is blind
//! ```
//! The nodes are the servers' own: frames, dispatch, node, log and recovery. Replaced are the sockets (`runtime::simulation::network`),
//! the files (`storage::files::SimulatedDisk`), clock, randomness and threads (`runtime`). `workload` says what must hold.
//!
//! Every seed runs in a process of its own, so that nothing that a process keeps (ids counted, sizes learned) goes from one run
//! to the next; two runs of a seed print the same trace, a number made of everything that was sent, by whom and when.

mod cluster;
mod entropy;
mod workload;

use cluster::Wishes;
use std::ops::Range;
use std::process::{Command, ExitCode};
use std::sync::Mutex;

#[derive(Default)]
struct Arguments {
    seed: Option<u64>,
    seeds: Option<Range<u64>>,
    wishes: Wishes,
    /// Those of the wishes, for the processes of the seeds.
    passed: Vec<String>,
}

fn arguments() -> Arguments {
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
            "--no-sync" => {
                all.wishes.no_sync = true;
                all.passed.push(argument);
            }
            "--verbose" => all.wishes.verbose = true,
            "--logs" => all.wishes.logs = Some(value().into()),
            // What `cargo test` passes to usual harnesses.
            _ => {}
        }
    }
    all
}

fn main() -> ExitCode {
    let arguments = arguments();
    if let Some(seed) = arguments.seed {
        return one(seed, arguments.wishes);
    }
    let count = std::env::var("TESSERA_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(200);
    many(arguments.seeds.unwrap_or(1..1 + count), &arguments.passed)
}

/// As deep as the servers' own threads.
const STACK_BYTES: usize = 64 << 20;

fn one(seed: u64, wishes: Wishes) -> ExitCode {
    entropy::fix(seed);
    let run = move || {
        runtime::simulation::run(seed, async move {
            runtime::simulation::trace_to_stderr(wishes.verbose);
            let result = match cluster::establish(&wishes).await {
                Ok(mut nodes) => workload::run(&mut nodes).await,
                Err(error) => Err(format!("the cluster did not come up: {error}")),
            };
            (result, runtime::simulation::trace())
        })
    };
    // A fresh thread has no state that was made before the numbers were fixed.
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(run);
    match thread.expect("a thread starts").join() {
        Ok((Ok(()), trace)) => {
            println!("{trace}");
            ExitCode::SUCCESS
        }
        Ok((Err(error), trace)) => {
            println!("{trace}: {error}");
            ExitCode::FAILURE
        }
        Err(_) => ExitCode::from(101),
    }
}

/// Runs a seed in a process of its own; what it printed, and whether all held.
fn apart(seed: u64, passed: &[String]) -> (String, bool) {
    let program = std::env::current_exe().expect("this program has a path");
    let output = Command::new(program).arg("--seed").arg(seed.to_string()).args(passed).output();
    let output = output.expect("this program can be started");
    let mut text = String::from_utf8_lossy(&output.stdout).trim().to_string();
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        text.push_str(&format!(" [{}] {}", output.status, errors.trim()));
    }
    (text, output.status.success())
}

fn many(seeds: Range<u64>, passed: &[String]) -> ExitCode {
    let began = std::time::Instant::now();
    let next = Mutex::new(seeds.clone());
    let failed = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let Some(seed) = next.lock().expect("no worker panics").next() else { return };
                    let (text, held) = apart(seed, passed);
                    if !held {
                        println!("seed {seed} failed: {text}");
                        failed.lock().expect("no worker panics").push(seed);
                    } else if seed == seeds.start && apart(seed, passed).0 != text {
                        println!("seed {seed} failed: two runs differ");
                        failed.lock().expect("no worker panics").push(seed);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().expect("no worker panics");
    let (all, bad) = ((seeds.end - seeds.start) as usize, failed.len());
    println!("{} passed, {bad} failed {failed:?} in {:.1} s", all - bad, began.elapsed().as_secs_f64());
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
