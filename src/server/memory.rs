//! How much memory the process may use: the least of the machine's, its container's and its own limit. And the way back to the
//! kernel: what the allocator keeps of freed memory, where the program has said how it is told to give back.

use std::sync::OnceLock;

/// Has the allocator give freed memory back to the kernel, whichever thread freed it.
static GIVE_BACK: OnceLock<fn()> = OnceLock::new();

/// Says how the allocator is told to give back; called once, by the program that has chosen the allocator.
pub fn give_back_by(f: fn()) {
    GIVE_BACK.get_or_init(|| f);
}

/// Looks at what the process holds; called regularly.
pub fn look(watch: &mut node::memory::Watch) {
    watch.look(resident_bytes, || GIVE_BACK.get().into_iter().for_each(|f| f()));
}

/// What the process has of its own in memory: without pages of files, as those of its program.
fn resident_bytes() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let mut pages = text.split_whitespace().skip(1).map(|n| n.parse::<usize>().unwrap_or(0));
    let (resident, of_files) = (pages.next().unwrap_or(0), pages.next().unwrap_or(0));
    resident.saturating_sub(of_files) * 4096
}

/// Of the memory, what messages may hold at most, and at least.
const INPUT_SHARE: u64 = 8;
const INPUT_MIN: u64 = 160 << 20;
const INPUT_MAX: u64 = 1 << 30;

/// The budget of a node's [`wire::InputBudget`].
pub fn input_bytes_max() -> usize {
    let bytes = (limit_bytes() / INPUT_SHARE).clamp(INPUT_MIN, INPUT_MAX);
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// The memory of this process, in bytes.
pub fn limit_bytes() -> u64 {
    let machine = u64::try_from(crate::commands::info::memory_mb()).unwrap_or(0) << 20;
    let container = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        .iter()
        .filter_map(|path| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok());
    container.chain(address_space()).chain([machine]).filter(|bytes| *bytes > 0).min().unwrap_or(u64::MAX)
}

fn address_space() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: fills the struct it is given.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut limit) } == 0;
    (known && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}
