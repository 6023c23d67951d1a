//! A log that ends anywhere is read up to its last whole record.

use super::*;
use crate::files::Fault;

fn filled(disk: &SimulatedDisk, n: u64) -> (Log, Vec<Position>) {
    let log = open(disk, small()).unwrap().0;
    let ends = (0..n).map(|i| append(&log, i).position).collect();
    log.wait_durable_blocking(log.appended()).unwrap();
    (log, ends)
}

#[test]
fn truncating_before_removes_whole_segments_only() {
    let disk = SimulatedDisk::new();
    let (log, ends) = filled(&disk, 60);
    let mut old = log.reader(ReadFrom::Start).unwrap();
    old.next().unwrap();
    log.truncate_before(ends[30]).unwrap();
    let first = log.first_position();
    assert!(first > 0 && first <= ends[30]);
    let left = numbers(&read_all(&log, ReadFrom::Start));
    assert_eq!(left.last(), Some(&59));
    assert!(left[0] <= 31 && left[0] > 20, "{left:?}");
    assert!(matches!(log.reader(ReadFrom::Position(0)), Err(LogError::PositionLost { .. })));
    let mut reverse = log.reverse_reader(None).unwrap();
    let back = std::iter::from_fn(|| reverse.next().unwrap().map(|frame| frame.position)).last();
    assert_eq!(back, Some(first));
    log.truncate_before(u64::MAX).unwrap();
    assert!(log.bytes() > 0, "the last segment stays");
    drop(log);
    let (log, report, _) = open(&disk, small()).unwrap();
    assert_eq!((report.first_position, report.end_position), (log.first_position(), ends[59]));
    assert!(matches!(open_at(&disk, small(), Some(0)), Err(LogError::PositionLost { .. })));
}

#[test]
fn retention_is_counted_in_bytes() {
    let disk = SimulatedDisk::new();
    let options = LogOptions { retain_bytes: 3000, ..small() };
    let log = open(&disk, options).unwrap().0;
    assert_eq!(log.retention_position(), 0);
    for i in 0..60 {
        append_durably(&log, i).unwrap();
    }
    log.truncate_before(log.retention_position()).unwrap();
    assert!((3000..4500).contains(&log.bytes()), "{}", log.bytes());
}

#[test]
fn truncating_after_leaves_exactly_what_was_before() {
    for keep in 0..40 {
        let disk = SimulatedDisk::new();
        let (log, ends) = filled(&disk, 40);
        append(&log, 40);
        let ts = log.last_ts();
        let mut beyond = log.reader(ReadFrom::End).unwrap();
        let mut before = log.reader(ReadFrom::Start).unwrap();
        before.next().unwrap();
        log.truncate_after(ends[keep]).unwrap();
        assert_eq!((log.appended(), log.durable(), log.last_ts()), (ends[keep], ends[keep], ts));
        assert!(matches!(beyond.next(), Err(LogError::Truncated { .. })));
        assert_eq!(log.last_optime(), log.durable_optime());
        assert_eq!(log.last_frame(None).unwrap().unwrap().optime, log.last_optime());
        append_durably(&log, 77).unwrap();
        let mut expected: Vec<u64> = (1..=keep as u64).collect();
        expected.push(77);
        let mut rest = Vec::new();
        while let Some(frame) = before.next().unwrap() {
            rest.push(frame.to_owned());
        }
        assert_eq!(numbers(&rest), expected);
        drop(log);
        disk.crash(CrashMode::DropUnsynced);
        expected.insert(0, 0);
        assert_eq!(numbers(&open(&disk, small()).unwrap().2), expected);
    }
}

#[test]
fn truncating_after_refuses_what_is_not_the_end_of_a_frame() {
    let disk = SimulatedDisk::new();
    let (log, ends) = filled(&disk, 10);
    assert!(matches!(log.truncate_after(ends[3] + 1), Err(LogError::Corrupt { .. })));
    assert!(matches!(log.truncate_after(ends[9] + 1), Err(LogError::Truncated { .. })));
    assert_eq!(read_all(&log, ReadFrom::Start).len(), 10);
    log.health().unwrap();
    log.truncate_after(0).unwrap();
    append_durably(&log, 5).unwrap();
    drop(log);
    assert_eq!(numbers(&open(&disk, small()).unwrap().2), [5]);
}

#[test]
fn a_crash_during_either_cut_leaves_a_log_without_holes() {
    for seed in 0..4 {
        for operation in 0..24 {
            let disk = SimulatedDisk::new();
            let (log, ends) = filled(&disk, 60);
            disk.fail_at(disk.operations() + operation, Fault::PowerOff);
            let _ = log.truncate_before(ends[20]);
            let _ = log.truncate_after(ends[40]);
            drop(log);
            disk.crash(CrashMode::Torn { seed });
            let context = format!("seed {seed}, operation {operation}");
            let opened = open_at(&disk, small(), Some(ends[20]));
            let (log, _, frames) = opened.unwrap_or_else(|error| panic!("{context}: {error}"));
            let found = numbers(&frames);
            assert_eq!(found, (21..21 + found.len() as u64).collect::<Vec<_>>(), "{context}");
            assert!(found.len() >= 20, "{context}");
            read_all(&log, ReadFrom::Start);
        }
    }
}
