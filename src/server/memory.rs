//! How much memory the process uses, and how much of what it may use messages may hold. And the way back to the
//! kernel: what the allocator keeps of freed memory, where the program has said how it is told to give back.
//!
//! What a thread has freed, or others have freed of what it allocated, only the thread itself can give back: tens of megabytes, when its
//! last work was large. So each is asked ([`look`]) and does it before it sleeps again ([`give_back_if_asked`]); those asleep are
//! woken ([`wake_workers`]). A thread that ends gives back all.

use runtime::Instant;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Has the allocator give back to the kernel what this thread has freed, and what threads have that ended.
static GIVE_BACK: OnceLock<fn()> = OnceLock::new();

/// How often all threads were asked to give back.
static ASKED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Of these times, how many this thread has heard of. A new one has nothing to give back.
    static HEARD: Cell<u64> = Cell::new(ASKED.load(Ordering::Relaxed));
}

/// Says how the allocator is told to give back; called once, by the program that has chosen the allocator.
pub fn give_back_by(f: fn()) {
    GIVE_BACK.get_or_init(|| f);
}

/// Looks at what the process holds; called regularly. Whether threads were asked to give back.
pub fn look(watch: &mut node::memory::Watch) -> bool {
    let mut asked = false;
    watch.look(resident_bytes, || {
        give_back();
        ASKED.fetch_add(1, Ordering::Relaxed);
        asked = true;
    });
    asked
}

fn give_back() {
    if let Some(give_back) = GIVE_BACK.get() {
        give_back();
    }
}

/// Gives back what this thread keeps, if that was asked for since it last did: called by threads that are about to sleep.
pub fn give_back_if_asked() {
    let asked = ASKED.load(Ordering::Relaxed);
    if HEARD.replace(asked) != asked {
        give_back();
    }
}

/// How long a worker that was woken stays awake for the others to be.
const AWAKE: Duration = Duration::from_millis(5);

/// Wakes the workers that sleep, so that they go to sleep again. There is a task for each, and none that has one takes a second.
#[expect(clippy::disallowed_methods, reason = "keeps a worker, not a task")]
pub fn wake_workers(runtime: &tokio::runtime::Handle) {
    let workers = runtime.metrics().num_workers();
    let awake = Arc::new(AtomicUsize::new(0));
    for _ in 0..workers {
        let awake = awake.clone();
        runtime.spawn(async move {
            awake.fetch_add(1, Ordering::Relaxed);
            let begun = Instant::now();
            while awake.load(Ordering::Relaxed) < workers && begun.elapsed() < AWAKE {
                std::thread::sleep(AWAKE / 50);
            }
        });
    }
}

/// What the process has of its own in memory: without pages of files, as those of its program.
pub fn resident_bytes() -> usize {
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

/// Of what the process may hold, what messages may, and how much that is at most.
const INPUT_SHARE: usize = 6;
const INPUT_MAX: usize = 1 << 30;

/// The budget of a node's [`wire::InputBudget`], in bytes.
pub fn input_bytes_max() -> usize {
    (node::memory::ceiling() / INPUT_SHARE).min(INPUT_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;
    use std::collections::HashSet;
    use std::thread::ThreadId;

    static GAVE: Mutex<Option<HashSet<ThreadId>>> = Mutex::new(None);

    /// Only they can give back what they keep.
    #[test]
    fn workers_give_back_when_they_are_asked_even_those_that_sleep() {
        let runtime = crate::process::runtime().unwrap();
        give_back_by(|| {
            let current = std::thread::current();
            if current.name().is_some_and(|name| name.starts_with("tokio-rt-worker")) {
                GAVE.lock().get_or_insert_default().insert(current.id());
            }
        });
        std::thread::sleep(Duration::from_millis(100));
        let (workers, begun) = (runtime.metrics().num_workers(), Instant::now());
        while GAVE.lock().as_ref().map_or(0, HashSet::len) < workers {
            assert!(
                begun.elapsed() < Duration::from_secs(20),
                "{workers} workers, of which gave: {:?}",
                GAVE.lock()
            );
            ASKED.fetch_add(1, Ordering::Relaxed);
            wake_workers(runtime.handle());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    #[test]
    fn the_process_has_pages_of_its_own_and_of_files() {
        let pages = pages();
        assert!(pages.total >= pages.resident && pages.resident > pages.of_files && pages.of_files > 0);
        assert!(page_bytes().is_power_of_two() && pages.resident.is_multiple_of(page_bytes()));
    }
}
