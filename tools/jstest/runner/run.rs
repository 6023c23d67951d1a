//! The run: jobs that take tests from one queue, each with fixtures and ports of its own.

use super::attempt::{self, Place};
use super::fixture::{self, Cleaned, Fixture};
use super::interrupt;
use super::kind::Kind;
use super::outcome::{Outcome, Status};
use super::plan::{Case, Verdict};
use super::ports::Ports;
use super::suite::Passthrough;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;

/// What all jobs share.
pub(super) struct Run {
    pub root: PathBuf,
    pub shell_lib: Option<PathBuf>,
    /// This binary, which is the shell too.
    pub executable: PathBuf,
    /// The directory of `mongod`, `mongos` and `tessera`.
    pub binaries: PathBuf,
    /// Everything of this run that touches the disk is below it.
    pub directory: PathBuf,
    /// What every `JSTEST_MARK` of this run begins with.
    pub mark: String,
    attempts: AtomicUsize,
}

/// What jobs tell the one who shows it.
pub(super) enum Event {
    Started { job: usize, name: String },
    Finished { job: usize, outcome: Box<Outcome> },
}

impl Run {
    pub(super) fn new(
        root: PathBuf,
        shell_lib: Option<PathBuf>,
        executable: PathBuf,
        binaries: PathBuf,
        directory: PathBuf,
    ) -> io::Result<Run> {
        std::fs::create_dir_all(directory.join("passthrough"))?;
        for passthrough in Passthrough::ALL {
            let path = directory.join("passthrough").join(passthrough.file_name());
            std::fs::write(path, passthrough.source())?;
        }
        let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mark = format!("{name}.");
        Ok(Run { root, shell_lib, executable, binaries, directory, mark, attempts: AtomicUsize::new(0) })
    }

    pub(super) fn passthrough_file(&self, passthrough: Passthrough) -> PathBuf {
        self.directory.join("passthrough").join(passthrough.file_name())
    }

    /// Moves the output of a failure to where it outlives the run.
    pub(super) fn keep_output(&self, case: &Case, output: &Path) -> Option<PathBuf> {
        let directory = self.directory.join("output");
        std::fs::create_dir_all(&directory).ok()?;
        let mut name = case.name.trim_start_matches('/').replace('/', "_");
        name.push_str(&format!(".{}", case.fixture.name()));
        if let Some(suite) = &case.settings.suite {
            name.push_str(&format!(".{suite}"));
        }
        let kept = directory.join(format!("{name}.txt"));
        std::fs::rename(output, &kept).ok()?;
        Some(kept)
    }

    /// Runs all cases with `jobs` at once, telling `events`. Cases left in `queue` afterwards did not run.
    pub(super) fn all(&self, queue: &Mutex<VecDeque<Case>>, jobs: usize, events: &Sender<Event>) {
        std::thread::scope(|scope| {
            for number in 0..jobs {
                let events = events.clone();
                scope.spawn(move || Job::new(self, number).work(queue, &events));
            }
        });
    }
}

/// One worker, with at most one fixture of each kind, kept from test to test.
struct Job<'a> {
    run: &'a Run,
    number: usize,
    ports: Option<Ports>,
    fixtures: BTreeMap<Kind, Fixture>,
    fixtures_started: usize,
}

impl<'a> Job<'a> {
    fn new(run: &'a Run, number: usize) -> Job<'a> {
        Job { run, number, ports: None, fixtures: BTreeMap::new(), fixtures_started: 0 }
    }

    fn work(mut self, queue: &Mutex<VecDeque<Case>>, events: &Sender<Event>) {
        while !interrupt::noticed_any() {
            let next = queue.lock().unwrap_or_else(|e| e.into_inner()).pop_front();
            let Some(case) = next else { break };
            let _ = events.send(Event::Started { job: self.number, name: case.name.clone() });
            let outcome = Box::new(self.run_case(&case));
            let _ = events.send(Event::Finished { job: self.number, outcome });
        }
        std::mem::take(&mut self.fixtures).into_values().for_each(Fixture::stop);
    }

    fn run_case(&mut self, case: &Case) -> Outcome {
        let mut outcome = attempt::blank(case);
        (outcome.status, outcome.reason) = match &case.verdict {
            Verdict::Skip(reason) => (Status::Skip, reason.clone()),
            Verdict::Broken(reason) => (Status::Fail, reason.clone()),
            Verdict::Run => match self.prepare(case.fixture) {
                Ok(ports) => return self.attempt(case, ports),
                Err(error) => (Status::Fail, format!("the fixture could not be made: {error}")),
            },
        };
        outcome
    }

    /// Makes sure of ports and of the fixture; answers the ports.
    fn prepare(&mut self, kind: Kind) -> io::Result<String> {
        if kind != Kind::None && !self.fixtures.contains_key(&kind) {
            self.fixtures_started += 1;
            let place = fixture::Place {
                binaries: self.run.binaries.clone(),
                directory: self.directory(),
                mark: format!("{}fixture", self.run.mark),
            };
            self.fixtures.insert(kind, Fixture::start(kind, self.fixtures_started, &place)?);
        }
        if self.ports.is_none() {
            self.ports = Some(Ports::reserve()?);
        }
        Ok(self.ports.as_ref().map(Ports::text).unwrap_or_default())
    }

    fn directory(&self) -> PathBuf {
        self.run.directory.join(format!("job-{}", self.number))
    }

    fn attempt(&mut self, case: &Case, ports: String) -> Outcome {
        let number = self.run.attempts.fetch_add(1, Ordering::Relaxed);
        let place = Place {
            run: self.run,
            directory: self.directory().join(format!("test-{number}")),
            mark: format!("{}{number}", self.run.mark),
            ports,
        };
        let mut outcome = attempt::run(case, self.fixtures.get(&case.fixture), &place);
        self.clean_after(case.fixture, &mut outcome);
        outcome
    }

    /// Makes the fixture ready for the next test, or lets go of it.
    fn clean_after(&mut self, kind: Kind, outcome: &mut Outcome) {
        let Some(fixture) = self.fixtures.get_mut(&kind) else { return };
        // A hung test may have left anything behind; a new fixture costs less than finding out.
        let cleaned = match outcome.status {
            Status::Timeout => fixture.gone().map_or(Cleaned::Changed("the test hung".into()), Cleaned::Dead),
            _ => fixture.clean(),
        };
        let reason = match cleaned {
            Cleaned::Ready => return,
            Cleaned::Changed(reason) => reason,
            Cleaned::Dead(gone) => {
                attempt::blame_fixture(outcome, gone.clone());
                gone
            }
        };
        outcome.fixture_replaced = Some(reason);
        if let Some(fixture) = self.fixtures.remove(&kind) {
            fixture.stop();
        }
    }
}
