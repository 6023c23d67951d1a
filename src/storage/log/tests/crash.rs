//! Crashes. The rule under test: after a crash the log holds a prefix of what was appended, and in it everything that
//! was acknowledged.

use super::*;
use crate::files::Fault;
use proptest::prelude::*;

/// Appends until something fails; every third entry is waited for. Returns how many entries were acknowledged.
fn work(log: &Log, entries: std::ops::Range<u64>) -> u64 {
    let mut acknowledged = entries.start;
    for i in entries {
        let position = append(log, i).position;
        if i % 3 == 2 {
            match log.wait_durable_blocking(position) {
                Ok(()) => acknowledged = i + 1,
                Err(_) => break,
            }
        }
    }
    acknowledged
}

/// Reopens and checks the rule; returns how many entries are there.
fn check(disk: &SimulatedDisk, acknowledged: u64) -> Result<u64, String> {
    let (_, _, frames) = open(disk, small()).map_err(|error| error.to_string())?;
    let numbers = numbers(&frames);
    let found = numbers.len() as u64;
    if numbers != (0..found).collect::<Vec<_>>() {
        return Err(format!("not a prefix: {numbers:?}"));
    }
    match found < acknowledged {
        true => Err(format!("{acknowledged} were acknowledged, {found} are there")),
        false => Ok(found),
    }
}

fn crash_modes() -> impl Iterator<Item = CrashMode> {
    let torn = (1..6).map(|seed| CrashMode::Torn { seed });
    [CrashMode::DropUnsynced, CrashMode::KeepAll].into_iter().chain(torn)
}

#[test]
fn what_was_acknowledged_survives_a_crash_at_every_operation() {
    for mode in crash_modes() {
        for operation in 0.. {
            let disk = SimulatedDisk::new();
            let (log, ..) = open(&disk, small()).unwrap();
            disk.fail_at(operation, Fault::PowerOff);
            let acknowledged = work(&log, 0..24);
            let survived = log.health().is_ok();
            drop(log);
            let finished = survived && disk.operations() <= operation;
            disk.crash(mode);
            let context = format!("{mode:?} at operation {operation}");
            let found = check(&disk, acknowledged).unwrap_or_else(|error| panic!("{context}: {error}"));

            // Life goes on after the crash, and the next one takes nothing either.
            let (log, ..) = open(&disk, small()).unwrap();
            let acknowledged = work(&log, found..found + 9).max(found);
            drop(log);
            disk.crash(CrashMode::DropUnsynced);
            check(&disk, acknowledged).unwrap_or_else(|error| panic!("{context}, second life: {error}"));
            if finished {
                break;
            }
        }
    }
}

#[test]
fn a_crash_during_recovery_takes_nothing() {
    for seed in 0..30 {
        for operation in 0..8 {
            let disk = SimulatedDisk::new();
            let (log, ..) = open(&disk, small()).unwrap();
            let acknowledged = work(&log, 0..12);
            for _ in 0..20 {
                append(&log, 12);
            }
            disk.fail_at(disk.operations() + 1, Fault::PowerOff);
            drop(log);
            disk.crash(CrashMode::Torn { seed });
            disk.fail_at(disk.operations() + operation, Fault::PowerOff);
            drop(open(&disk, small()));
            disk.crash(CrashMode::Torn { seed: seed + 1 });
            let (_, _, frames) = open(&disk, small()).unwrap();
            assert!(frames.len() as u64 >= acknowledged, "seed {seed}, operation {operation}");
        }
    }
}

/// The tests above must be able to fail: without the syncs of files, or of the directory, they do.
#[test]
fn without_syncs_the_loss_is_noticed() {
    let lose = |prepare: &dyn Fn(&SimulatedDisk)| {
        let disk = SimulatedDisk::new();
        let (log, ..) = open(&disk, small()).unwrap();
        prepare(&disk);
        let acknowledged = work(&log, 0..24);
        assert_eq!(acknowledged, 24);
        disk.fail_at(disk.operations(), Fault::PowerOff);
        drop(log);
        disk.crash(CrashMode::DropUnsynced);
        check(&disk, acknowledged)
    };
    assert_eq!(lose(&|_| {}), Ok(24));
    assert!(lose(&|disk| disk.ignore_syncs(true)).is_err());
    assert!(lose(&|disk| disk.ignore_dir_syncs(true)).is_err());
}

#[test]
fn a_failed_sync_or_write_ends_acknowledgement_for_good() {
    for fault in [Fault::SyncFails, Fault::NoSpace] {
        let mut failures = 0;
        for operation in 0..40 {
            let disk = SimulatedDisk::new();
            let (log, ..) = open(&disk, small()).unwrap();
            disk.fail_at(operation, fault);
            let acknowledged = work(&log, 0..24);
            if log.health().is_err() {
                failures += 1;
                assert!(log.has_failed());
                assert!(matches!(waiters::block_on(log.wait_failed()), LogError::Failed(_)));
                let operations = disk.operations();
                let later = append(&log, 99).position;
                assert!(matches!(log.wait_durable_blocking(later), Err(LogError::Failed(_))));
                assert!(matches!(log.admit_blocking(1), Err(LogError::Failed(_))));
                assert!(log.shutdown().is_err());
                assert_eq!(disk.operations(), operations, "nothing is written after a failure");
            }
            drop(log);
            disk.crash(CrashMode::DropUnsynced);
            check(&disk, acknowledged).unwrap_or_else(|error| panic!("{fault:?} at {operation}: {error}"));
        }
        assert!(failures > 20, "{fault:?} struck {failures} times");
    }
}

#[test]
fn a_killed_process_loses_nothing_even_under_never() {
    let disk = SimulatedDisk::new();
    let (log, ..) = open(&disk, LogOptions { sync: SyncPolicy::Never, ..small() }).unwrap();
    assert_eq!(work(&log, 0..60), 60);
    drop(log);
    disk.crash(CrashMode::KeepAll);
    // Opened with syncs again, what is there is made durable before anything is said about it.
    let (log, ..) = open(&disk, small()).unwrap();
    assert_eq!(log.durable(), log.appended());
    disk.fail_at(disk.operations(), Fault::PowerOff);
    drop(log);
    disk.crash(CrashMode::DropUnsynced);
    assert_eq!(check(&disk, 60), Ok(60));
}

#[test]
fn under_never_a_crash_leaves_a_prefix() {
    for seed in 0..100 {
        let disk = SimulatedDisk::new();
        let (log, ..) = open(&disk, LogOptions { sync: SyncPolicy::Never, ..small() }).unwrap();
        work(&log, 0..40);
        drop(log);
        disk.crash(CrashMode::Torn { seed });
        let found = check(&disk, 0).unwrap();
        let (log, ..) = open(&disk, small()).unwrap();
        work(&log, found..found + 6);
        drop(log);
        disk.crash(CrashMode::DropUnsynced);
        check(&disk, found + 6).unwrap();
    }
}

#[derive(Debug, Clone)]
enum Step {
    Append(u64),
    Wait,
    Crash(u64),
    Reopen,
    CutAfter(u64),
    CutBefore(u64),
    Read(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1..12u64).prop_map(Step::Append),
        3 => Just(Step::Wait),
        1 => any::<u64>().prop_map(Step::Crash),
        1 => Just(Step::Reopen),
        1 => any::<u64>().prop_map(Step::CutAfter),
        1 => any::<u64>().prop_map(Step::CutBefore),
        2 => any::<u64>().prop_map(Step::Read),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever happens in whatever order, the log holds what a list of frames would.
    #[test]
    fn the_log_is_a_list(steps in proptest::collection::vec(step(), 1..60)) {
        let disk = SimulatedDisk::new();
        let mut log = open(&disk, small()).unwrap().0;
        // End position and number of each entry; how many of them are acknowledged.
        let mut model: Vec<(Position, u64)> = Vec::new();
        let (mut next, mut acknowledged) = (0, 0);
        for step in steps {
            match step {
                Step::Append(n) => for _ in 0..n {
                    model.push((append(&log, next).position, next));
                    next += 1;
                },
                Step::Wait => {
                    log.wait_durable_blocking(log.appended()).unwrap();
                    acknowledged = model.len();
                }
                Step::Crash(seed) => {
                    disk.fail_at(disk.operations() + seed % 3, Fault::PowerOff);
                    drop(log);
                    disk.crash(CrashMode::Torn { seed });
                    log = open(&disk, small()).unwrap().0;
                    let found = model.partition_point(|&(end, _)| end <= log.appended());
                    prop_assert!(found >= acknowledged);
                    model.truncate(found);
                    acknowledged = found;
                }
                Step::Reopen => {
                    log.shutdown().unwrap();
                    drop(log);
                    log = open(&disk, small()).unwrap().0;
                    acknowledged = model.len();
                }
                Step::CutAfter(at) if !model.is_empty() => {
                    let keep = at as usize % model.len() + 1;
                    if model[keep - 1].0 >= log.first_position() {
                        log.truncate_after(model[keep - 1].0).unwrap();
                        model.truncate(keep);
                        acknowledged = acknowledged.min(keep);
                    }
                }
                Step::CutBefore(at) if !model.is_empty() => {
                    log.truncate_before(model[at as usize % model.len()].0).unwrap();
                }
                Step::Read(at) if !model.is_empty() => {
                    let (end, number) = model[at as usize % model.len()];
                    if end >= log.first_position() {
                        let expected: Vec<u64> =
                            model.iter().map(|entry| entry.1).filter(|&other| other > number).collect();
                        prop_assert_eq!(numbers(&read_all(&log, ReadFrom::Position(end))), expected);
                    }
                }
                _ => {}
            }
            let first = log.first_position();
            let kept: Vec<u64> = model
                .iter()
                .enumerate()
                .filter(|(i, _)| i.checked_sub(1).map_or(0, |before| model[before].0) >= first)
                .map(|(_, entry)| entry.1)
                .collect();
            prop_assert_eq!(numbers(&read_all(&log, ReadFrom::Start)), kept);
            prop_assert_eq!(log.appended(), model.last().map_or(0, |last| last.0));
        }
    }
}
