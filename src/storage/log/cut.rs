//! Cutting the log at either end.
//!
//! Names are removed one at a time with a sync of the directory after each, oldest first at the beginning and newest
//! first at the end, so that a crash in between leaves a log without a hole.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::frame::right_in_itself;
use super::segment::{SEGMENT_HEAD, Segment};
use super::writer::{Shared, Writer};
use super::{LogError, Position, ReverseReader};

/// Removes whole segments that end at or before `position`.
pub(super) fn truncate_before(shared: &Shared, position: Position) -> Result<(), LogError> {
    let _one_at_a_time = shared.trimming.lock();
    // The successor's first frames must be durable: after a crash they are all that tells where the log begins.
    let safe = if shared.never_syncs() { &shared.written } else { &shared.synced };
    let safe = safe.load(Ordering::SeqCst);
    loop {
        let oldest = {
            let mut segments = shared.segments.write();
            match segments.get(1) {
                Some(next) if next.base <= position && next.base < safe => segments.remove(0),
                _ => return Ok(()),
            }
        };
        remove(shared, &oldest)?;
    }
}

fn remove(shared: &Shared, segment: &Segment) -> Result<(), LogError> {
    shared.files.remove(&segment.path).map_err(|error| LogError::io("remove", &segment.path, &error))?;
    let names = shared.files.sync_dir(&shared.dir);
    names.map_err(|error| LogError::io("sync directory", &shared.dir, &error))
}

/// Cuts everything from `position` on.
pub(super) fn truncate_after(shared: &Arc<Shared>, position: Position) -> Result<(), LogError> {
    let _not_from_the_other_end = shared.trimming.lock();
    let mut writer = shared.writer.lock();
    shared.open()?;
    shared.write_all(&mut writer)?;
    let first = shared.first_position();
    if position < first {
        return Err(LogError::PositionLost { asked: position, first });
    }
    if position > writer.position {
        return Err(LogError::Truncated { asked: position, end: writer.position });
    }
    if position == writer.position {
        return Ok(());
    }
    let checksum = checksum_before(shared, position)?;
    let newest = shared.newest_before(position)?;
    let frame_ts = ReverseReader::open(shared, Some(position))?.next()?.map_or(0, |frame| frame.optime.ts);
    note_cut(shared, position);
    let cut = cut_files(shared, &mut writer, position);
    if let Err(error) = cut {
        // Half a cut cannot be continued; the files hold a valid log, from which the next start repeats it.
        shared.fail(error.clone());
        return Err(error);
    }
    writer.restart(position, checksum, newest);
    {
        let mut tail = shared.tail.lock();
        tail.rewind(position, newest, frame_ts);
        shared.written.store(position, Ordering::SeqCst);
        shared.synced.fetch_min(position, Ordering::SeqCst);
        shared.appended.store(position, Ordering::SeqCst);
    }
    shared.forget_requests_above(position);
    if !shared.never_syncs()
        && let Err(error) = writer.sync(shared)
    {
        shared.fail(error.clone());
        return Err(error);
    }
    note_cut(shared, position);
    shared.wake_everybody();
    Ok(())
}

/// Readers drop what they read ahead: once before the files change, and once more for what they read meanwhile.
fn note_cut(shared: &Shared, position: Position) {
    let mut cuts = shared.cuts.lock();
    cuts.push(position);
    shared.epoch.store(cuts.len() as u64, Ordering::SeqCst);
}

fn cut_files(shared: &Shared, writer: &mut Writer, position: Position) -> Result<(), LogError> {
    loop {
        let last = {
            let mut segments = shared.segments.write();
            let more = segments.len() > 1;
            match segments.last() {
                Some(last) if last.base >= position && more => segments.pop(),
                _ => None,
            }
        };
        match last {
            Some(last) => remove(shared, &last)?,
            None => break,
        }
    }
    writer.current = shared.segments.read().last().cloned();
    let Some(segment) = &writer.current else { return Ok(()) };
    let io = |error| LogError::io("cut", &segment.path, &error);
    writer.allocated = segment.offset(position);
    segment.file.set_len(writer.allocated).map_err(io)?;
    segment.index.write().marks.retain(|mark| mark.position < position);
    Ok(())
}

/// The checksum of the frame that ends at `position`, which must be a frame's end.
fn checksum_before(shared: &Shared, position: Position) -> Result<u32, LogError> {
    let (segment, _) = shared.segment_at(position.saturating_sub(1).max(shared.first_position()))?;
    let bytes = segment.file.read_to_end_at(SEGMENT_HEAD as u64);
    let bytes = bytes.map_err(|error| LogError::io("read", &segment.path, &error))?;
    let (mut at, mut checksum) = (segment.base, segment.previous);
    let mut rest = bytes.as_slice();
    while at < position {
        let Some(head) = right_in_itself(rest, at) else { break };
        rest = &rest[head.size()..];
        at = head.end();
        checksum = head.checksum;
    }
    if at == position {
        return Ok(checksum);
    }
    Err(LogError::corrupt(&segment.path, position, "no frame ends where the log is to be cut"))
}
