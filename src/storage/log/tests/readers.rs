//! Readers of the log, at its tail and in its past.

use super::*;

fn filled(n: u64) -> (SimulatedDisk, Log, Vec<Appended>) {
    let disk = SimulatedDisk::new();
    let log = open(&disk, small()).unwrap().0;
    let appended: Vec<_> = (0..n).map(|i| append(&log, i)).collect();
    (disk, log, appended)
}

#[test]
fn a_reader_sees_what_is_only_in_memory() {
    let (disk, log, _) = filled(50);
    assert_eq!(disk.operations(), 0);
    assert_eq!(numbers(&read_all(&log, ReadFrom::Start)), (0..50).collect::<Vec<_>>());
    log.wait_durable_blocking(log.appended()).unwrap();
    assert_eq!(numbers(&read_all(&log, ReadFrom::Start)), (0..50).collect::<Vec<_>>());
}

#[test]
fn every_position_and_timestamp_can_be_found_in_files_and_in_memory() {
    for durable in [0, 25, 50] {
        let (_disk, log, appended) = filled(durable);
        log.wait_durable_blocking(log.appended()).unwrap();
        let later: Vec<_> = (durable..50).map(|i| append(&log, i)).collect();
        for (i, entry) in appended.iter().chain(&later).enumerate() {
            let expected: Vec<u64> = (i as u64..50).collect();
            assert_eq!(numbers(&read_all(&log, ReadFrom::Ts(entry.first.ts))), expected);
            assert_eq!(numbers(&read_all(&log, ReadFrom::Position(entry.start))), expected);
            let mut reverse = log.reverse_reader(Some(entry.position)).unwrap();
            for before in (0..=i as u64).rev() {
                assert_eq!(reverse.next().unwrap().unwrap().payload, payload(before));
            }
            assert!(reverse.next().unwrap().is_none());
        }
        assert_eq!(read_all(&log, ReadFrom::Ts(0)).len(), 50);
        assert_eq!(read_all(&log, ReadFrom::Ts(u64::MAX)).len(), 0);
        assert_eq!(read_all(&log, ReadFrom::End).len(), 0);
        let end = log.appended();
        assert!(matches!(log.reader(ReadFrom::Position(end + 1)), Err(LogError::Truncated { .. })));
    }
}

#[test]
fn segments_that_were_not_read_at_the_start_can_be_searched() {
    let (disk, log, appended) = filled(200);
    drop(log);
    let (log, _, frames) = open_at(&disk, small(), Some(appended[199].position)).unwrap();
    assert!(frames.is_empty());
    for i in (0..200).step_by(7) {
        assert_eq!(read_all(&log, ReadFrom::Ts(appended[i].first.ts)).len(), 200 - i);
    }
    assert_eq!(log.last_frame(None).unwrap().unwrap().payload, payload(199));
    assert_eq!(log.first_ts(), Some(appended[0].first.ts));
}

#[test]
fn a_reader_that_is_kept_finds_every_time_and_reads_on_in_their_order() {
    for (segment_bytes, reads) in [(1000, 200), (1 << 20, 50)] {
        let options = || LogOptions { segment_bytes, ..small() };
        let disk = SimulatedDisk::new();
        let log = open(&disk, options()).unwrap().0;
        let appended: Vec<_> = (0..200).map(|i| append(&log, i)).collect();
        drop(log);
        let (log, _, _) = open_at(&disk, options(), Some(appended[199].position)).unwrap();
        let mut reader = log.reader(ReadFrom::End).unwrap();
        let mut find = |i: usize| {
            reader.seek_ts(appended[i].first.ts).unwrap();
            assert_eq!(reader.next().unwrap().unwrap().payload, payload(i as u64));
        };
        let before = disk.reads();
        (0..200).for_each(&mut find);
        assert!(disk.reads() - before < reads, "{} reads for 200 frames", disk.reads() - before);
        (0..200).rev().for_each(&mut find);
        (0..200).for_each(|i| find(i * 77 % 200));
        (0..200).step_by(3).for_each(&mut find);
        reader.seek_ts(u64::MAX).unwrap();
        assert!(reader.next().unwrap().is_none());
        // After a cut, what was read ahead means nothing any more.
        reader.seek_ts(appended[150].first.ts).unwrap();
        log.truncate_after(appended[99].position).unwrap();
        let later = append(&log, 1000);
        for (ts, expected) in [(appended[99].first.ts, 99), (later.first.ts, 1000)] {
            reader.seek_ts(ts).unwrap();
            assert_eq!(reader.next().unwrap().unwrap().payload, payload(expected));
        }
    }
}

#[test]
fn the_last_frame_of_a_class_is_found_behind_others() {
    let (_disk, log, _) = filled(30);
    for _ in 0..100 {
        log.append(Class::Local, &[&[&[1; 100]]]);
    }
    log.wait_durable_blocking(log.appended()).unwrap();
    assert_eq!(log.last_frame(Some(Class::Oplog)).unwrap().unwrap().payload, payload(29));
    assert_eq!(log.last_frame(None).unwrap().unwrap().class, Class::Local);
    assert_eq!(log.durable_optime(), log.last_optime());
}

#[test]
fn large_entries_come_back_whole() {
    let disk = SimulatedDisk::new();
    let log = open(&disk, options()).unwrap().0;
    let sizes = [0, 1, 300_000, 10, 5_000_000, 262_144, 0];
    for size in sizes {
        log.append_with(Class::Oplog, 1, |_, _, payload| payload.extend(&vec![7; size]));
    }
    let lengths = |log: &Log| -> Vec<usize> {
        read_all(log, ReadFrom::Start).iter().map(|frame| frame.payload.len()).collect()
    };
    assert_eq!(lengths(&log), sizes);
    log.wait_durable_blocking(log.appended()).unwrap();
    assert_eq!(lengths(&log), sizes);
    assert_eq!(log.admit_blocking(MAX_PAYLOAD + 1), Err(LogError::TooLarge(MAX_PAYLOAD + 1)));
}

#[test]
fn a_tailing_reader_keeps_up_with_appenders() {
    const EACH: u64 = 3000;
    let disk = SimulatedDisk::new();
    let options = LogOptions {
        segment_bytes: 100_000,
        buffer_bytes: 20_000,
        sync: SyncPolicy::Group { interval: Duration::from_millis(1) },
        ..options()
    };
    let log = Arc::new(open(&disk, options).unwrap().0);
    let appenders: Vec<_> = (0..3)
        .map(|_| {
            let log = Arc::clone(&log);
            std::thread::spawn(move || {
                for i in 0..EACH {
                    log.admit_blocking(400).unwrap();
                    append(&log, i);
                }
            })
        })
        .collect();
    let mut reader = log.reader(ReadFrom::Start).unwrap();
    let (mut seen, mut last_ts, mut end) = (0, 0, 0);
    while seen < 3 * EACH {
        let position = reader.position();
        match reader.next().unwrap() {
            Some(frame) => {
                assert!(frame.position == end && frame.optime.ts > last_ts);
                assert_eq!(numbers(&[frame.to_owned()]).len(), 1);
                (end, last_ts) = (frame.end, frame.optime.ts);
                seen += 1;
            }
            None => block_on(log.wait_appended(position)).unwrap(),
        }
    }
    appenders.into_iter().for_each(|appender| appender.join().unwrap());
}

#[test]
fn a_reader_can_be_held_back_to_what_is_durable() {
    let (_disk, log, appended) = filled(10);
    let mut reader = log.reader(ReadFrom::Start).unwrap();
    let limit = appended[4].position;
    let seen = std::iter::from_fn(|| reader.next_before(limit).unwrap().map(|frame| frame.end));
    assert_eq!(seen.last(), Some(limit));
    assert_eq!(reader.next().unwrap().unwrap().payload, payload(5));
}

#[test]
fn damage_is_noticed_by_readers_of_segments_that_recovery_skipped() {
    let (disk, log, appended) = filled(100);
    drop(log);
    let log = open_at(&disk, small(), Some(appended[99].position)).unwrap().0;
    let names = disk.list(Path::new(DIR)).unwrap();
    disk.corrupt(&Path::new(DIR).join(&names[0]), 64 + 60).unwrap();
    let mut reader = log.reader(ReadFrom::Start).unwrap();
    assert!(matches!(reader.next(), Err(LogError::Corrupt { .. })));
}
