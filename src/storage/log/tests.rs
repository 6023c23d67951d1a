//! Tests of the log: format, recovery, crashes at every operation, readers, cuts, waiting.

mod crash;
mod cuts;
mod format;
mod readers;
mod scripts;
mod waiting;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::files::{CrashMode, SimulatedDisk};

const DIR: &str = "/data/log";

/// 2023-11-14T22:13:20Z.
const NOW: i64 = 1_700_000_000_000;

fn options() -> LogOptions {
    LogOptions { clock: Arc::new(SimulatedClock::new(NOW)), ..LogOptions::default() }
}

/// Segments of a few frames; nobody who does not wait gets a sync.
fn small() -> LogOptions {
    LogOptions {
        segment_bytes: 1000,
        sync: SyncPolicy::Group { interval: Duration::from_secs(3600) },
        ..options()
    }
}

fn open(disk: &SimulatedDisk, options: LogOptions) -> Result<(Log, RecoveryReport, Vec<Frame>), LogError> {
    open_at(disk, options, None)
}

fn open_at(
    disk: &SimulatedDisk,
    options: LogOptions,
    start: Option<Position>,
) -> Result<(Log, RecoveryReport, Vec<Frame>), LogError> {
    let mut frames = Vec::new();
    let files: Arc<dyn Files> = Arc::new(disk.clone());
    let (log, report) = Log::open(files, Path::new(DIR), options, start, &mut |frame| {
        frames.push(frame.to_owned());
        Ok(())
    })?;
    Ok((log, report, frames))
}

/// A payload that says which it is and has some length.
fn payload(i: u64) -> Vec<u8> {
    let mut bytes = i.to_le_bytes().to_vec();
    bytes.resize(8 + (i as usize * 37) % 300, i as u8);
    bytes
}

fn append(log: &Log, i: u64) -> Appended {
    let bytes = payload(i);
    let (a, b) = bytes.split_at(bytes.len() / 2);
    log.append(Class::Oplog, &[&[a, b]])
}

fn append_durably(log: &Log, i: u64) -> Result<Position, LogError> {
    let position = append(log, i).position;
    log.wait_durable_blocking(position).map(|()| position)
}

fn numbers(frames: &[Frame]) -> Vec<u64> {
    let number = |frame: &Frame| u64::from_le_bytes(frame.payload[..8].try_into().unwrap());
    let numbers: Vec<u64> = frames.iter().map(number).collect();
    for (frame, &i) in frames.iter().zip(&numbers) {
        assert_eq!(frame.payload, payload(i), "a payload came back changed");
    }
    numbers
}

fn read_all(log: &Log, from: ReadFrom) -> Vec<Frame> {
    let mut reader = log.reader(from).unwrap();
    let mut frames = Vec::new();
    while let Some(frame) = reader.next().unwrap() {
        frames.push(frame.to_owned());
    }
    frames
}
