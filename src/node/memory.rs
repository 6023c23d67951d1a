//! The process's memory: how much there may be, and who is refused first.
//!
//! The allocator counts every byte ([`document::meter`]), so the process's total is known exactly and needs no estimate
//! by those who allocate. What the kernel counts is more: freed memory that the allocator keeps, and pages of which only a
//! part is in use. So the resident memory is looked at regularly ([`look`]), the allocator gives back what it has too
//! much of, and the larger of both numbers is what stands against the ceiling, by default a part of what the
//! container or the machine has.
//!
//! ```text
//! above the ceiling              an operation that has grown is refused (ExceededMemoryLimit, 146), and so is a cursor that would
//!                                keep what it has built, or would be one of very many
//!                                (of a router's cursors, which keep what shards have sent, those that together keep too much)
//! a sixteenth above the ceiling  so is a client's write that adds to the data: it is the data that fills the memory
//! ```
//!
//! What holds little goes on, so that a full node still answers pings, kills and deletes.
//!
//! Beside the ceiling a single evaluation (a document through an expression, a batch through a stage) has a limit of its
//! own, since nothing that it builds could leave the server anyway.

use crate::Operation;
use crate::parameters::Parameters;
use crate::user_writes::is_users;
use document::{Error, Result, bail, err, meter};
use query::pipeline::Limits;
use runtime::Instant;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The part of the memory found that the process may use, in percent. The rest is the allocator's slack, stacks, and the
/// kernel's buffers.
const CEILING_PERCENT: usize = 70;
/// What one uninterrupted evaluation may hold, unless the ceiling is low.
const SLICE_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Above the ceiling an evaluation that has grown by more than this is refused.
const SMALL_BYTES: usize = 2 * 1024 * 1024;

/// Above the ceiling a cursor that would keep more than this is refused, and any where so many are open.
const CURSOR_BYTES: usize = 16 * 1024;
const CURSORS: usize = 1000;
/// Of the ceiling, what all cursors of a router may keep above it. A plain find keeps documents there, too, and what fills the memory
/// of its process may be data that is to be read.
const ROUTED_SHARE: usize = 16;

/// Of the ceiling, what the allocator may keep beside what is in use before it has to give back.
const SLACK_SHARE: usize = 8;
/// Above this part of the ceiling the allocator gives back as soon as it keeps anything worth it.
const PRESSED_PERCENT: usize = 60;
/// What it may keep at most where there is plenty.
const CALM_SLACK_BYTES: usize = 64 * 1024 * 1024;
/// How often it gives back then, so that memory comes back when all is over.
const CALM: Duration = Duration::from_secs(1);
/// What it may keep for longer than [`RARELY`]: what is left of a large piece of work long ago helps none that is to come.
const OLD_SLACK_BYTES: usize = 16 * 1024 * 1024;
const RARELY: Duration = Duration::from_secs(10);
/// Above this part of the ceiling it gives back at every look: what is kept there keeps operations from what they need.
const FULL_PERCENT: usize = 85;
/// Below it, giving back takes at most one part in so many of a thread's time.
const GIVE_BACK_SHARE: u32 = 10;

/// Resident bytes of the process, when last looked at.
static RESIDENT: AtomicUsize = AtomicUsize::new(0);

static CEILING: LazyLock<AtomicUsize> = LazyLock::new(|| AtomicUsize::new(default_ceiling()));

/// Bytes that the process may have allocated before operations are refused.
pub fn ceiling() -> usize {
    CEILING.load(Ordering::Relaxed)
}

/// Sets another ceiling (`processMemoryLimitMB`); 0 is the default, a part of what there is.
pub fn set_ceiling(megabytes: i64) {
    let bytes = match usize::try_from(megabytes) {
        Ok(n) if n > 0 => n.saturating_mul(1024 * 1024),
        _ => default_ceiling(),
    };
    CEILING.store(bytes, Ordering::Relaxed);
}

fn default_ceiling() -> usize {
    available_bytes().map_or(usize::MAX, |n| n / 100 * CEILING_PERCENT)
}

/// The limits of stages as the parameters say.
pub fn limits(parameters: &Parameters) -> Limits {
    let count = |name| usize::try_from(parameters.int(name)).unwrap_or(usize::MAX);
    Limits {
        sort: count("internalQueryMaxBlockingSortMemoryUsageBytes"),
        group: count("internalDocumentSourceGroupMaxMemoryBytes"),
        bucket_auto: count("internalDocumentSourceBucketAutoMaxMemoryBytes"),
        graph_lookup: count("internalDocumentSourceGraphLookupMaxMemoryBytes"),
        lookup: count("internalLookupStageIntermediateDocumentMaxSizeBytes"),
        lookup_side: count("internalQuerySlotBasedExecutionHashLookupApproxMemoryUseInBytesBeforeSpill"),
        set_window_fields: count("internalDocumentSourceSetWindowFieldsMaxMemoryBytes"),
        facet: count("internalQueryFacetMaxOutputDocSizeBytes"),
        push: count("internalQueryMaxPushBytes"),
        add_to_set: count("internalQueryMaxAddToSetBytes"),
        densify: count("internalQueryMaxAllowedDensifyDocs"),
    }
}

/// Bytes that the process holds: what is allocated, or what the kernel counted lately if that is more.
fn held() -> usize {
    meter::allocated().max(RESIDENT.load(Ordering::Relaxed))
}

/// Whether the process holds more than it should.
pub fn is_short() -> bool {
    held() > ceiling()
}

/// Refuses to let a client's write add to the data where that has filled the memory.
///
/// # Errors
/// ExceededMemoryLimit (146).
pub(crate) fn check_growth(op: &Operation, ns: &str) -> Result<()> {
    let ceiling = ceiling();
    if held() > ceiling.saturating_add(ceiling / 16) && op.is_subject_to_block() && is_users(ns) {
        bail!(EXCEEDED_MEMORY_LIMIT, "the data has reached the process's memory limit of {ceiling} bytes");
    }
    Ok(())
}

/// Looks at the resident memory, regularly; holds when the allocator may be asked again to give back.
pub struct Watch {
    again: Instant,
    /// When the allocator was last asked.
    asked: Instant,
}

impl Default for Watch {
    fn default() -> Watch {
        Watch { again: Instant::now(), asked: Instant::now() }
    }
}

impl Watch {
    /// Notes what `resident` returns, and has the allocator give back (`give_back`) what it keeps too much of.
    pub fn look(&mut self, resident: impl Fn() -> usize, give_back: impl FnOnce()) {
        let (now, held) = (Instant::now(), resident());
        let ceiling = ceiling();
        let kept = held.saturating_sub(meter::allocated());
        let above = |percent| held > ceiling / 100 * percent;
        let (pressed, full) = (above(PRESSED_PERCENT), above(FULL_PERCENT));
        let worth =
            if pressed { ceiling / (4 * SLACK_SHARE) } else { (ceiling / SLACK_SHARE).min(CALM_SLACK_BYTES) };
        let old = kept > OLD_SLACK_BYTES && now.duration_since(self.asked) > RARELY;
        if !old && (kept <= worth || (now < self.again && !full)) {
            RESIDENT.store(held, Ordering::Relaxed);
            return;
        }
        give_back();
        let rest = now.elapsed() * GIVE_BACK_SHARE;
        self.asked = Instant::now();
        self.again = self.asked + if pressed { rest } else { rest.max(CALM) };
        RESIDENT.store(resident(), Ordering::Relaxed);
    }
}

/// Refuses an evaluation that holds `bytes` when it, or the process, holds too much.
///
/// # Errors
/// ExceededMemoryLimit (146).
pub fn check_slice(bytes: i64) -> Result<()> {
    let bytes = usize::try_from(bytes).unwrap_or(0);
    if bytes <= SMALL_BYTES {
        return Ok(());
    }
    let ceiling = ceiling();
    let most = SLICE_BYTES_MAX.min(ceiling / 4);
    if bytes > most {
        bail!(
            EXCEEDED_MEMORY_LIMIT,
            "evaluation would use too much memory ({bytes} bytes) and cannot spill to disk. Memory limit: {most} bytes"
        );
    }
    match held() > ceiling {
        true => Err(at_the_limit(bytes)),
        false => Ok(()),
    }
}

/// Refuses to keep another cursor for a client that may never ask for its rest, when the process holds too much: one of
/// `bytes` beside `open` others. Small ones are kept, so that what fills the memory can still be read.
///
/// # Errors
/// ExceededMemoryLimit (146).
pub(crate) fn check_cursor(bytes: usize, open: usize) -> Result<()> {
    let ceiling = ceiling();
    if (bytes > CURSOR_BYTES || open >= CURSORS) && held() > ceiling {
        bail!(
            EXCEEDED_MEMORY_LIMIT,
            "the process has reached its memory limit of {ceiling} bytes; {open} cursors are open, and another would keep \
             {bytes} bytes"
        );
    }
    Ok(())
}

/// As [`check_cursor`], for a cursor of a router that keeps `bytes` of the `all` that its cursors keep together.
///
/// # Errors
/// ExceededMemoryLimit (146).
pub fn check_routed_cursor(bytes: usize, all: usize, open: usize) -> Result<()> {
    match all > ceiling() / ROUTED_SHARE {
        true => check_cursor(bytes, open),
        false => check_cursor(0, open),
    }
}

/// Refuses an operation that has gathered `bytes` over several slices when the process holds too much.
///
/// # Errors
/// ExceededMemoryLimit (146).
pub fn check_gathered(bytes: impl FnOnce() -> usize) -> Result<()> {
    if !is_short() {
        return Ok(());
    }
    match bytes() {
        bytes if bytes > SMALL_BYTES => Err(at_the_limit(bytes)),
        _ => Ok(()),
    }
}

fn at_the_limit(bytes: usize) -> Error {
    err!(
        EXCEEDED_MEMORY_LIMIT,
        "the process has reached its memory limit of {} bytes; the operation holds {bytes} of them",
        ceiling()
    )
}

/// What there is: the least of the container's limits, the process's own, and the machine's memory.
pub fn available_bytes() -> Option<usize> {
    let containers =
        ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"].map(container);
    containers.into_iter().chain([machine(), own_container(), address_space()]).flatten().min()
}

fn number(text: &str) -> Option<usize> {
    text.trim().parse().ok()
}

fn container(path: &str) -> Option<usize> {
    number(&std::fs::read_to_string(path).ok()?)
}

/// The limit of the control group that the process is in (version 2, then version 1).
fn own_container() -> Option<usize> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    groups
        .lines()
        .filter_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            match (parts.next()?, parts.next()?) {
                ("", path) => container(&format!("/sys/fs/cgroup{path}/memory.max")),
                ("memory", path) => container(&format!("/sys/fs/cgroup/memory{path}/memory.limit_in_bytes")),
                _ => None,
            }
        })
        .min()
}

fn machine() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("MemTotal:"))?;
    number(line.trim().strip_suffix("kB")?).map(|kib| kib * 1024)
}

/// The limit set on the process's address space, which also holds its stacks, its code and what the allocator reserves.
fn address_space() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("Max address space"))?;
    number(line.split_whitespace().next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_little_is_never_refused_and_a_large_evaluation_always() {
        assert!(check_slice(-5).is_ok());
        assert!(check_slice(SMALL_BYTES as i64).is_ok());
        assert_eq!(check_slice(SLICE_BYTES_MAX as i64 + 1).unwrap_err().code, 146);
        assert!(available_bytes().is_some_and(|n| n > 1024 * 1024));
    }

    #[test]
    fn the_allocator_gives_back_what_it_keeps_and_no_more_often_than_is_worth_it() {
        use std::cell::Cell;
        let (kept, asked) = (Cell::new(CALM_SLACK_BYTES / 2), Cell::new(0));
        let mut watch = Watch::default();
        let mut look = |give_back_to: usize| {
            watch.look(
                || kept.get(),
                || {
                    asked.set(asked.get() + 1);
                    kept.set(give_back_to);
                },
            );
            RESIDENT.load(Ordering::Relaxed)
        };
        assert_eq!((look(0), asked.get()), (CALM_SLACK_BYTES / 2, 0), "that little may stay");
        kept.set(CALM_SLACK_BYTES * 2);
        assert_eq!((look(7), asked.get()), (7, 1), "what counts is what is left");
        kept.set(CALM_SLACK_BYTES * 2);
        assert_eq!((look(0), asked.get()), (CALM_SLACK_BYTES * 2, 1), "not again at once");
        let nearly_all = ceiling() / 100 * (FULL_PERCENT + 5);
        kept.set(nearly_all);
        look(nearly_all);
        assert_eq!(
            (look(7), asked.get()),
            (7, 3),
            "at every look where it would keep others from what they need"
        );
        kept.set(0);
        look(0);
        little_that_is_kept_for_long_is_given_back_too();
    }

    fn little_that_is_kept_for_long_is_given_back_too() {
        let mut watch = Watch::default();
        let mut asked = 0;
        for (kept, since, expected) in [
            (OLD_SLACK_BYTES * 2, Duration::ZERO, 0),
            (OLD_SLACK_BYTES / 2, RARELY * 2, 0),
            (OLD_SLACK_BYTES * 2, RARELY * 2, 1),
            (OLD_SLACK_BYTES * 2, Duration::ZERO, 1),
        ] {
            watch.asked = Instant::now() - since;
            watch.look(|| meter::allocated() + kept, || asked += 1);
            assert_eq!(asked, expected, "{kept} bytes for {since:?}");
        }
    }
}
