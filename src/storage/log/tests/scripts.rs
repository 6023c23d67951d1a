//! Recovery as scripts (see `golden` for their form): what is written, how the machine fails, what is there afterwards.
//!
//! ```text
//! append N               N entries, for which nobody waits
//! sync                   all of them are made durable
//! crash lost             the power fails: what was not synced is gone
//! crash kept             the process is killed: the machine still has everything
//! crash torn SEED        the power fails: some of what was not synced is there, the last of it in part
//! damage ENTRY           a byte of this entry changes on disk
//! open                   which entries are there, and what was cut from the end
//! ```

use super::*;
use crate::files::Fault;
use crate::log::segment::segment_path;
use std::fmt::Write;

#[test]
fn every_script_recovers_as_written() {
    golden::check(Path::new(env!("CARGO_MANIFEST_DIR")).join("log/scripts"), 6, || {
        let mut world = World::new();
        move |line: &str, answer: &mut String| {
            let words: Vec<&str> = line.split_whitespace().collect();
            world.run(&words, answer);
        }
    });
}

struct World {
    disk: SimulatedDisk,
    log: Option<Log>,
    next: u64,
    /// Where each entry begins.
    starts: Vec<Position>,
    last: Option<Position>,
}

impl World {
    fn new() -> World {
        let disk = SimulatedDisk::new();
        let (log, ..) = open(&disk, no_timer()).unwrap();
        World { disk, log: Some(log), next: 0, starts: Vec::new(), last: None }
    }

    fn run(&mut self, words: &[&str], answer: &mut String) {
        match words {
            ["append", n] => (0..n.parse().unwrap()).for_each(|_| self.append()),
            ["sync"] => {
                let (log, last) = (self.log.as_ref().unwrap(), self.last.unwrap());
                log.wait_durable_blocking(last).unwrap();
            }
            ["crash", "lost"] => self.crash(CrashMode::DropUnsynced),
            ["crash", "kept"] => self.crash(CrashMode::KeepAll),
            ["crash", "torn", seed] => self.crash(CrashMode::Torn { seed: seed.parse().unwrap() }),
            ["damage", entry] => {
                let start = self.starts[entry.parse::<usize>().unwrap()];
                // Behind the head of the segment and that of the frame.
                self.disk.corrupt(&segment_path(Path::new(DIR), 0), 64 + start + 56 + 4).unwrap();
            }
            ["open"] => self.open(answer),
            other => panic!("no command: {other:?}"),
        }
    }

    fn append(&mut self) {
        let appended = append(self.log.as_ref().unwrap(), self.next);
        self.next += 1;
        self.starts.push(appended.start);
        self.last = Some(appended.position);
    }

    fn crash(&mut self, mode: CrashMode) {
        self.disk.fail_at(self.disk.operations(), Fault::PowerOff);
        self.log = None;
        self.disk.crash(mode);
    }

    fn open(&mut self, answer: &mut String) {
        self.log = None;
        match open(&self.disk, no_timer()) {
            Ok((log, report, frames)) => {
                self.log = Some(log);
                let numbers = numbers(&frames);
                assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>(), "not a prefix");
                self.next = numbers.len() as u64;
                self.starts.truncate(numbers.len());
                let cut = report.torn.map_or("nothing cut", |_| "a torn tail was cut");
                let _ = writeln!(answer, "{} entries, {cut}", numbers.len());
            }
            Err(LogError::Corrupt { .. }) => answer.push_str("refused: corrupt\n"),
            Err(other) => panic!("{other}"),
        }
    }
}

/// One segment; nothing is synced that nobody waits for.
fn no_timer() -> LogOptions {
    LogOptions { sync: SyncPolicy::Group { interval: Duration::from_secs(3600) }, ..options() }
}
