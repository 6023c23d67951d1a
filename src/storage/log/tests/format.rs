//! The bytes of the log.

use super::*;
use crate::log::frame::{Head, right_in_itself, seal};
use crate::log::segment::{SegmentHead, segment_path};

/// The bytes of version 1. If this test has to change, the version has to rise.
#[test]
fn the_bytes_of_a_frame_and_a_segment_head_are_fixed() {
    let head = Head {
        length: 3,
        class: Class::Oplog,
        position: 0x1122,
        term: -1,
        ts: 0x0102_0304_0506_0708,
        wall: 9,
        synced: 0,
        previous: 0,
        checksum: 0,
    };
    let mut frame = head.encode().to_vec();
    frame.extend_from_slice(b"abc");
    seal(&mut frame, 0x77, 0xAABB_CCDD);
    let hex: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
    let expected = "03000000010000002211000000000000ffffffffffffffff0807060504030201\
                    09000000000000007700000000000000ddccbbaa";
    assert_eq!(&hex[..104], expected);
    let covered = [&frame[..52], b"abc"].concat();
    assert_eq!(&frame[52..56], crc32c::crc32c(&covered).to_le_bytes());
    assert_eq!(&frame[56..], b"abc");
    assert_eq!(right_in_itself(&frame, 0x1122).map(|head| head.synced), Some(0x77));
    assert!(right_in_itself(&frame, 0x1123).is_none());

    let head = SegmentHead { previous: 1, base: 2, first_ts: 3, synced: 4 }.encode();
    let hex: String = head[..40].iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(&head[..8], b"TSSRALOG");
    assert_eq!(&hex[16..], "0100000001000000020000000000000003000000000000000400000000000000");
    let path = segment_path(Path::new("/d"), 0xAB);
    assert_eq!(path, Path::new("/d/log-00000000000000ab.seg"));
}

#[test]
fn another_format_version_is_refused_and_left_alone() {
    let disk = SimulatedDisk::new();
    let (log, ..) = open(&disk, small()).unwrap();
    append_durably(&log, 0).unwrap();
    drop(log);
    let path = segment_path(Path::new(DIR), 0);
    let file = disk.open(&path).unwrap();
    let mut head = [0; 64];
    file.read_exact_at(&mut head, 0).unwrap();
    head[8] = 2;
    let checksum = crc32c::crc32c(&head[..60]);
    head[60..].copy_from_slice(&checksum.to_le_bytes());
    file.write_at(&head, 0).unwrap();
    let before = disk.read(&path).unwrap();
    assert!(matches!(open(&disk, small()), Err(LogError::Corrupt { .. })));
    assert_eq!(disk.read(&path).unwrap(), before);
}

#[test]
fn every_damaged_byte_of_durable_frames_is_noticed() {
    let disk = SimulatedDisk::new();
    let (log, ..) = open(&disk, options()).unwrap();
    let mut ends = Vec::new();
    for i in 0..6 {
        ends.push(append_durably(&log, i).unwrap());
    }
    drop(log);
    let path = segment_path(Path::new(DIR), 0);
    let bytes = disk.read(&path).unwrap();
    assert_eq!(bytes.len() as u64, 64 + ends[5], "a closed log has no preallocated rest");
    // The last frame states that all but the last two were durable before it was written, and nothing states more.
    for offset in 0..64 + ends[4] {
        disk.corrupt(&path, offset).unwrap();
        let error = open(&disk, options()).err();
        assert!(matches!(error, Some(LogError::Corrupt { .. })), "byte {offset}: {error:?}");
        disk.corrupt(&path, offset).unwrap();
        assert_eq!(disk.read(&path).unwrap(), bytes, "a refused log is left alone");
    }
    let (_, _, frames) = open(&disk, options()).unwrap();
    assert_eq!(numbers(&frames), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn damage_in_the_last_frame_is_a_torn_tail_unless_a_checkpoint_vouches_for_it() {
    let disk = SimulatedDisk::new();
    let (log, ..) = open(&disk, options()).unwrap();
    let end = (0..3).map(|i| append_durably(&log, i).unwrap()).last();
    let start = append(&log, 3).start;
    drop(log);
    assert_eq!(end, Some(start));
    disk.corrupt(&segment_path(Path::new(DIR), 0), 64 + start + 60).unwrap();
    let checkpoint = Some(start + 56 + payload(3).len() as u64);
    assert!(matches!(open_at(&disk, options(), checkpoint), Err(LogError::Corrupt { .. })));
    let (log, report, frames) = open(&disk, options()).unwrap();
    assert_eq!(report.torn, Some(TornTail { position: start, bytes: 56 + payload(3).len() as u64 }));
    assert_eq!(numbers(&frames), [0, 1, 2]);
    append_durably(&log, 7).unwrap();
    drop(log);
    let (_, report, frames) = open(&disk, options()).unwrap();
    assert_eq!((report.torn, numbers(&frames)), (None, vec![0, 1, 2, 7]));
}

#[test]
fn a_missing_segment_is_noticed() {
    for missing in 0..3 {
        let disk = SimulatedDisk::new();
        let (log, ..) = open(&disk, small()).unwrap();
        for i in 0..40 {
            append_durably(&log, i).unwrap();
        }
        drop(log);
        let names = disk.list(Path::new(DIR)).unwrap();
        assert!(names.len() > 4);
        disk.remove(&Path::new(DIR).join(&names[missing])).unwrap();
        let result = open_at(&disk, small(), Some(0));
        assert!(result.is_err(), "segment {missing} was not missed");
    }
}

#[test]
fn replay_starts_where_the_checkpoint_says() {
    let disk = SimulatedDisk::new();
    let (log, ..) = open(&disk, small()).unwrap();
    let ends: Vec<_> = (0..40).map(|i| append_durably(&log, i).unwrap()).collect();
    drop(log);
    for (i, &end) in ends.iter().enumerate() {
        let (log, report, frames) = open_at(&disk, small(), Some(end)).unwrap();
        assert_eq!(numbers(&frames), (i as u64 + 1..40).collect::<Vec<_>>());
        assert_eq!(report.frames_replayed, 39 - i as u64);
        assert_eq!(report.first_position, 0);
        assert_eq!(numbers(&read_all(&log, ReadFrom::Start)).len(), 40);
        assert_eq!(log.last_optime(), log.last_frame(None).unwrap().unwrap().optime);
    }
    assert!(matches!(open_at(&disk, small(), Some(ends[3] + 1)), Err(LogError::Corrupt { .. })));
    assert!(matches!(open_at(&disk, small(), Some(ends[39] + 1)), Err(LogError::Corrupt { .. })));
}

#[test]
fn a_refusal_of_replay_refuses_the_log() {
    let disk = SimulatedDisk::new();
    let (log, ..) = open(&disk, small()).unwrap();
    append_durably(&log, 0).unwrap();
    drop(log);
    let files: Arc<dyn Files> = Arc::new(disk.clone());
    let result = Log::open(files, Path::new(DIR), small(), None, &mut |_| Err(LogError::Replay("no".into())));
    assert_eq!(result.err(), Some(LogError::Replay("no".into())));
}

#[test]
fn an_empty_log_costs_nothing_to_open() {
    let disk = SimulatedDisk::new();
    let (log, report, frames) = open(&disk, options()).unwrap();
    assert_eq!((report.end_position, frames.len(), log.bytes()), (0, 0, 0));
    assert_eq!((log.first_position(), log.first_ts(), log.durable()), (0, None, 0));
    drop(log);
    assert_eq!(disk.operations(), 0);
}

#[test]
fn the_clock_starts_above_the_frames_and_above_the_wall() {
    let disk = SimulatedDisk::new();
    let (log, report, _) = open(&disk, small()).unwrap();
    let second = NOW as u64 / 1000;
    assert_eq!(report.clock_start, (second + 1) << 32 | 1);
    assert_eq!(append(&log, 0).first.ts, report.clock_start);
    assert_eq!(log.reserve_ts(), report.clock_start + 1);
    log.advance_clock((second + 5000) << 32 | 9);
    log.set_term(4);
    let appended = log.append(Class::Oplog, &[&[b"a"], &[b"b"]]);
    assert_eq!(appended.first, OpTime { ts: (second + 5000) << 32 | 10, term: 4 });
    assert_eq!(appended.last, OpTime { ts: (second + 5000) << 32 | 11, term: 4 });
    log.advance_clock(((second + 5000) << 32) + 20);
    let local = log.append(Class::Local, &[&[b"c"]]);
    assert_eq!(local.last, appended.last, "class local repeats the time before and leaves the clock alone");
    assert_eq!(log.last_optime(), appended.last);
    let given = OpTime { ts: appended.last.ts + 1, term: 4 };
    assert_eq!(log.append_at(Class::Oplog, given, NOW, &[b"d"]).last, given, "a time below the clock's");
    log.advance_clock(7);
    drop(log);
    let (log, report, _) = open(&disk, small()).unwrap();
    assert_eq!(report.clock_start, (second + 5001) << 32 | 1);
    assert_eq!((log.term(), report.last_optime.term), (4, 4));
    assert_eq!(log.last_wall(), NOW);
}

#[test]
fn real_files_and_memory_keep_the_same_contract() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let files: Arc<dyn Files> = Arc::new(crate::files::RealFiles);
    let run = |options: LogOptions, expected: u64| {
        let mut seen = 0;
        let opened = Log::open(Arc::clone(&files), &path, options, None, &mut |_| {
            seen += 1;
            Ok(())
        });
        let (log, report) = opened.unwrap();
        assert_eq!((seen, report.torn), (expected, None));
        for i in 0..100 {
            append_durably(&log, i).unwrap();
        }
        assert_eq!(read_all(&log, ReadFrom::Start).len() as u64, expected + 100);
        log.shutdown().unwrap();
        assert_eq!(log.health(), Err(LogError::Closed));
    };
    let memory = LogOptions { in_memory: true, sync: SyncPolicy::Never, ..small() };
    run(memory.clone(), 0);
    run(memory, 0);
    assert!(!path.exists());
    run(small(), 0);
    run(LogOptions { sync: SyncPolicy::Never, ..small() }, 100);
    run(small(), 200);
}

/// What the cut of a torn tail should already prevent: a frame of another history at the right place.
#[test]
fn a_frame_that_does_not_continue_the_one_before_is_not_taken() {
    let write = |byte: u8| {
        let disk = SimulatedDisk::new();
        let log = open(&disk, small()).unwrap().0;
        let appended = log.append(Class::Oplog, &[&[&[byte; 40]], &[&[3; 40]]]);
        drop(log);
        (disk, appended)
    };
    let ((disk, _), (other, appended)) = (write(1), write(2));
    let path = segment_path(Path::new(DIR), 0);
    let second = 64 + (56 + 40);
    let stale = other.read(&path).unwrap()[second..].to_vec();
    disk.open(&path).unwrap().write_at(&stale, second as u64).unwrap();
    let (_, report, frames) = open(&disk, small()).unwrap();
    assert_eq!(frames.len(), 1);
    assert_eq!(report.torn, Some(TornTail { position: appended.start + 96, bytes: 96 }));
}
