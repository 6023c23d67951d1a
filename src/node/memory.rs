//! The process's memory: how much there may be, and who is refused first.
//!
//! The allocator counts every byte ([`document::meter`]), so the process's total is known exactly and needs no estimate
//! by those who allocate. Against it stands a ceiling, by default a part of what the container or the machine has. An
//! operation that has grown is refused when the process is above the ceiling (ExceededMemoryLimit, 146); what holds
//! little goes on, so that a full node still answers pings, kills and deletes.
//!
//! Beside the ceiling a single evaluation (a document through an expression, a batch through a stage) has a limit of its
//! own, since nothing that it builds could leave the server anyway.

use crate::parameters::Parameters;
use document::{Result, bail, meter};
use query::pipeline::Limits;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The part of the memory found that the process may use, in percent. The rest is the allocator's slack, stacks, and the
/// kernel's buffers.
const CEILING_PERCENT: usize = 70;
/// What one uninterrupted evaluation may hold, unless the ceiling is low.
const SLICE_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Above the ceiling an evaluation that has grown by more than this is refused.
const SMALL_BYTES: usize = 2 * 1024 * 1024;

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
        facet: count("internalQueryFacetMaxOutputDocSizeBytes"),
        push: count("internalQueryMaxPushBytes"),
        add_to_set: count("internalQueryMaxAddToSetBytes"),
        densify: count("internalQueryMaxAllowedDensifyDocs"),
    }
}

/// Whether the process has allocated more than it should.
pub fn is_short() -> bool {
    meter::allocated() > ceiling()
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
    if meter::allocated() > ceiling {
        bail!(
            EXCEEDED_MEMORY_LIMIT,
            "the process has reached its memory limit of {ceiling} bytes; the operation holds {bytes} of them"
        );
    }
    Ok(())
}

/// What there is: the least of the container's limits, the process's own, and the machine's memory.
fn available_bytes() -> Option<usize> {
    [machine(), container("/sys/fs/cgroup/memory.max"), own_container(), address_space()]
        .into_iter()
        .flatten()
        .min()
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
}
