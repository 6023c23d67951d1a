//! How much memory the process uses, and how much of what it may use messages may hold. And the way back to the
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
    let pages = pages();
    usize::try_from(pages.resident.saturating_sub(pages.of_files)).unwrap_or(usize::MAX)
}

/// The pages of the process, in bytes.
pub struct Pages {
    pub total: u64,
    pub resident: u64,
    /// Of those resident, the pages of files.
    pub of_files: u64,
}

/// What the kernel says of the process's pages; nothing where it does not.
pub fn pages() -> Pages {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let mut bytes = text.split_whitespace().map(|n| n.parse::<u64>().unwrap_or(0) * page_bytes());
    let mut next = || bytes.next().unwrap_or(0);
    Pages { total: next(), resident: next(), of_files: next() }
}

/// The size of a page.
pub fn page_bytes() -> u64 {
    // SAFETY: returns a number.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
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
    node::memory::available_bytes().map_or(u64::MAX, |bytes| bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_has_pages_of_its_own_and_of_files() {
        let pages = pages();
        assert!(pages.total >= pages.resident && pages.resident > pages.of_files && pages.of_files > 0);
        assert!(page_bytes().is_power_of_two() && pages.resident.is_multiple_of(page_bytes()));
    }
}
