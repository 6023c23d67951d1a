//! Counted work, counted memory, and the question whether to go on.
//!
//! Evaluation is synchronous and pure: it neither awaits nor reads a clock. So that no expression, filter or sort holds a
//! worker for long, whatever loops calls [`spend`], and every allocation counts as work too ([`Counted`]). After
//! [`QUANTUM`] units, about a millisecond, the [`Overseer`] of the operation is asked. It fails when the operation was
//! killed, is late or holds too much memory; it may also block, having left the worker to others.
//!
//! ```text
//! poll of a command ─ within ─┬─ oversee(operation)          once the request has been read
//!                             ├─ spend, spend, spend ...     QUANTUM units ─> overseer.check ─> go on
//!                             └─ spend, allocate, ...        QUANTUM units ─> overseer.check ─> Err: evaluation ends
//! ```
//!
//! The meter belongs to the thread for as long as one poll lasts, which is why no signature names it. Outside of
//! [`within`] nothing is ever refused.
//!
//! Under a latch an overseer does not block. What can be repeated without the latch runs [`bounded`]: it fails with
//! [`OVERRUN`], which never leaves the node, once it has taken its number of quanta.

use crate::{Error, Result};
use std::alloc::{GlobalAlloc, Layout};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Units of work between two checks.
pub const QUANTUM: i64 = 12_000;
/// The code of work that became too long under a latch. It is handled where [`bounded`] was called.
pub const OVERRUN: i32 = i32::MIN;
/// Bytes allocated that count as one unit of work, beside the one of the allocation itself.
const BYTES_A_UNIT: usize = 1024;
/// A thread adds what it allocated to the process's total when it has this much to tell.
const FLUSH_BYTES: i64 = 64 * 1024;

/// Decides whether an operation's work may go on.
pub trait Overseer: Send + Sync {
    /// Asked after each quantum. An error ends the evaluation that is under way.
    ///
    /// # Errors
    /// Whatever the operation is to end with.
    fn check(&self, slice: &mut Slice) -> Result<()>;
}

/// One uninterrupted stretch of synchronous work, as its overseer sees it.
#[derive(Default)]
pub struct Slice {
    /// Quanta used up so far.
    pub quanta: u32,
    /// A latch is held: whoever waits now makes others wait.
    pub latched: bool,
    /// What the overseer keeps until the slice ends, its place in a lane for instance.
    pub hold: Option<Box<dyn Any>>,
    /// The thread's balance of bytes when the slice began.
    started_bytes: i64,
}

impl Slice {
    /// Bytes that the slice has allocated and not freed.
    pub fn bytes(&self) -> i64 {
        COUNTERS.with(|c| c.bytes.get()) - self.started_bytes
    }
}

struct Counters {
    /// Units left of the quantum at hand.
    left: Cell<i64>,
    /// Bytes allocated less bytes freed by this thread.
    bytes: Cell<i64>,
    /// How much of `bytes` is in the process's total.
    told: Cell<i64>,
    latches: Cell<u32>,
    /// Quanta after which [`OVERRUN`] is the answer; 0: never.
    bound: Cell<u32>,
}

/// More work than any thread does without an overseer.
const ENDLESS: i64 = i64::MAX / 2;

/// Who oversees the work of one command from poll to poll; nobody until [`oversee`] is called.
#[derive(Default)]
pub struct Oversight(Option<Arc<dyn Overseer>>);

struct Running {
    overseer: Option<Arc<dyn Overseer>>,
    slice: Slice,
}

thread_local! {
    static COUNTERS: Counters = const {
        Counters {
            left: Cell::new(ENDLESS), bytes: Cell::new(0), told: Cell::new(0), latches: Cell::new(0), bound: Cell::new(0),
        }
    };
    static RUNNING: RefCell<Option<Running>> = const { RefCell::new(None) };
}

static ALLOCATED: AtomicI64 = AtomicI64::new(0);

/// Bytes that the process has allocated and not freed; 0 where [`Counted`] is not the allocator.
pub fn allocated() -> usize {
    usize::try_from(ALLOCATED.load(Ordering::Relaxed)).unwrap_or(0)
}

/// Counts `units` of work; a unit is some tens of nanoseconds.
///
/// # Errors
/// Those of the overseer, and [`OVERRUN`] within [`bounded`].
#[inline]
pub fn spend(units: usize) -> Result<()> {
    let left = COUNTERS.with(|c| {
        let left = c.left.get() - units as i64;
        c.left.set(left);
        left
    });
    match left >= 0 {
        true => Ok(()),
        false => exhausted(left),
    }
}

/// Counts `units` of work where nothing can be refused; the next [`spend`] asks, as after an allocation.
#[inline]
pub fn charge(units: usize) {
    COUNTERS.with(|c| c.left.set(c.left.get() - units as i64));
}

/// Bytes from which on an allocation is asked for before it is made.
const CLAIMED_BYTES: usize = 1024 * 1024;

/// Asks whether `bytes` may be allocated in one step: as if they were allocated already, since the next [`spend`] would find them in use.
///
/// # Errors
/// Those of [`spend`].
pub fn claim(bytes: usize) -> Result<()> {
    if bytes < CLAIMED_BYTES {
        return Ok(());
    }
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX / 2);
    count(bytes, QUANTUM);
    let allowed = spend(1);
    count(-bytes, 0);
    allowed
}

#[cold]
fn exhausted(left: i64) -> Result<()> {
    let used = u32::try_from(1 + left.unsigned_abs() as i64 / QUANTUM).unwrap_or(u32::MAX);
    let Some(mut running) = RUNNING.with(RefCell::take) else {
        COUNTERS.with(|c| c.left.set(ENDLESS));
        return Ok(());
    };
    let (latched, bound) = COUNTERS.with(|c| (c.latches.get() > 0, c.bound.get()));
    running.slice.quanta = running.slice.quanta.saturating_add(used);
    running.slice.latched = latched;
    let checked = match &running.overseer {
        _ if bound != 0 && running.slice.quanta >= bound => {
            Err(Error::new(OVERRUN, "too much work under a latch"))
        }
        Some(overseer) => overseer.check(&mut running.slice),
        None => Ok(()),
    };
    RUNNING.with(|r| *r.borrow_mut() = Some(running));
    COUNTERS.with(|c| c.left.set(QUANTUM));
    checked
}

/// Quanta that the slice at hand has used up; 0 outside of [`within`].
pub fn quanta() -> u32 {
    RUNNING.with(|r| r.borrow().as_ref().map_or(0, |r| r.slice.quanta))
}

/// Units that the slice at hand has used up; 0 outside of [`within`].
pub fn spent() -> i64 {
    let quanta = RUNNING.with(|r| r.borrow().as_ref().map(|r| r.slice.quanta));
    quanta.map_or(0, |quanta| i64::from(quanta) * QUANTUM + QUANTUM - COUNTERS.with(|c| c.left.get()))
}

/// Keeps `held` until the slice at hand ends; outside of [`within`] nothing is kept.
pub fn hold(held: Box<dyn Any>) {
    let before =
        RUNNING.with(|r| r.borrow_mut().as_mut().and_then(|running| running.slice.hold.replace(held)));
    drop(before);
}

/// Runs `f`, one poll of a command, with its work counted.
pub fn within<T>(oversight: &mut Oversight, f: impl FnOnce() -> T) -> T {
    struct Restore<'a> {
        oversight: &'a mut Oversight,
        running: Option<Running>,
        left: i64,
    }
    impl Drop for Restore<'_> {
        fn drop(&mut self) {
            let ended = RUNNING.with(|r| r.replace(self.running.take()));
            COUNTERS.with(|c| c.left.set(self.left));
            if let Some(ended) = ended {
                self.oversight.0 = ended.overseer;
            }
        }
    }
    let started_bytes = COUNTERS.with(|c| c.bytes.get());
    let slice = Slice { started_bytes, ..Slice::default() };
    let overseer = oversight.0.take();
    let running = RUNNING.with(|r| r.replace(Some(Running { overseer, slice })));
    let left = COUNTERS.with(|c| c.left.replace(QUANTUM));
    let _restore = Restore { oversight, running, left };
    f()
}

/// Has the work of the command that is being polled overseen from now on.
pub fn oversee(overseer: Arc<dyn Overseer>) {
    RUNNING.with(|r| {
        if let Some(running) = r.borrow_mut().as_mut() {
            running.overseer = Some(overseer);
        }
    });
}

/// Runs `f`, which holds a latch all the while.
pub fn latched<T>(f: impl FnOnce() -> T) -> T {
    struct Unlatch;
    impl Drop for Unlatch {
        fn drop(&mut self) {
            COUNTERS.with(|c| c.latches.set(c.latches.get() - 1));
        }
    }
    COUNTERS.with(|c| c.latches.set(c.latches.get() + 1));
    let _unlatch = Unlatch;
    f()
}

/// Runs `f`, which can be taken up again elsewhere: it fails with [`OVERRUN`] when the slice has used `quanta` more.
pub fn bounded<T>(quanta: u32, f: impl FnOnce() -> Result<T>) -> Result<T> {
    struct Restore(u32);
    impl Drop for Restore {
        fn drop(&mut self) {
            COUNTERS.with(|c| c.bound.set(self.0));
        }
    }
    let _restore = Restore(COUNTERS.with(|c| c.bound.replace(self::quanta().saturating_add(quanta))));
    f()
}

/// Runs `f`, whose answer must be whole whatever the operation is to end with: within it nothing is refused. Its work counts for the
/// next check.
pub fn unbroken<T>(f: impl FnOnce() -> T) -> T {
    struct Resume(i64);
    impl Drop for Resume {
        fn drop(&mut self) {
            COUNTERS.with(|c| c.left.set(self.0 - (ENDLESS - c.left.get())));
        }
    }
    let _resume = Resume(COUNTERS.with(|c| c.left.replace(ENDLESS)));
    f()
}

/// Whether work may be refused: not within [`unbroken`], nor where nobody oversees or bounds it. What has no end of its own needs a bound
/// there.
pub fn may_refuse() -> bool {
    let (left, bound) = COUNTERS.with(|c| (c.left.get(), c.bound.get()));
    let overseen = || RUNNING.with(|r| r.borrow().as_ref().is_some_and(|r| r.overseer.is_some()));
    left <= QUANTUM && (bound != 0 || overseen())
}

/// Whether a latch may be held: what cannot be interrupted in time, or blocks, must not begin there.
///
/// # Errors
/// [`OVERRUN`] within [`bounded`]; NotImplemented (238) under a latch that nobody would take up again.
pub fn aside() -> Result<()> {
    match COUNTERS.with(|c| (c.bound.get(), c.latches.get())) {
        (0, 0) => Ok(()),
        (0, _) => {
            Err(Error::new(crate::codes::NOT_IMPLEMENTED, "JavaScript is known but not implemented here"))
        }
        _ => Err(Error::new(OVERRUN, "this cannot be done under a latch")),
    }
}

/// An allocator that counts what it gives: as work of the thread, and as memory of the thread and the process.
pub struct Counted<A>(pub A);

fn count(bytes: i64, units: i64) {
    // A thread that is ending has no counters any more, and needs none.
    let _ = COUNTERS.try_with(|c| {
        let now = c.bytes.get() + bytes;
        c.bytes.set(now);
        c.left.set(c.left.get() - units);
        let untold = now - c.told.get();
        if !(-FLUSH_BYTES..=FLUSH_BYTES).contains(&untold) {
            c.told.set(now);
            ALLOCATED.fetch_add(untold, Ordering::Relaxed);
        }
    });
}

#[inline]
fn allocation(size: usize) -> (i64, i64) {
    (size as i64, 1 + (size / BYTES_A_UNIT) as i64)
}

// SAFETY: every call is passed on unchanged. Counting touches thread-local cells and an atomic, and does not allocate.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counted<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (bytes, units) = allocation(layout.size());
        count(bytes, units);
        // SAFETY: the caller's promises are those that the inner allocator asks for.
        unsafe { self.0.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        count(-(layout.size() as i64), 0);
        // SAFETY: as above.
        unsafe { self.0.dealloc(ptr, layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let (bytes, units) = allocation(layout.size());
        count(bytes, units);
        // SAFETY: as above.
        unsafe { self.0.alloc_zeroed(layout) }
    }
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let (_, units) = allocation(new_size);
        count(new_size as i64 - layout.size() as i64, units);
        // SAFETY: as above.
        unsafe { self.0.realloc(ptr, layout, new_size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    struct Limit(AtomicU32, u32);
    impl Overseer for Limit {
        fn check(&self, slice: &mut Slice) -> Result<()> {
            self.0.fetch_add(1, Ordering::Relaxed);
            match slice.quanta >= self.1 {
                true => Err(Error::new(50, "late")),
                false => Ok(()),
            }
        }
    }

    fn work(units: usize) -> Result<()> {
        (0..units).try_for_each(|_| spend(1))
    }

    #[test]
    fn work_ends_with_the_overseers_error_and_none_is_counted_outside() {
        let limit = &mut Oversight(Some(Arc::new(Limit(AtomicU32::new(0), 3))));
        assert_eq!(within(limit, || work(QUANTUM as usize * 10)).unwrap_err().code, 50);
        assert!(within(limit, || work(QUANTUM as usize)).is_ok(), "each slice is counted by itself");
        assert!(work(QUANTUM as usize * 10).is_ok());
        assert_eq!(
            within(limit, || spend(QUANTUM as usize * 5)).unwrap_err().code,
            50,
            "five quanta at once"
        );
    }

    #[test]
    fn unbroken_work_is_refused_nothing_and_counts_for_what_follows() {
        within(&mut Oversight(Some(Arc::new(Limit(AtomicU32::new(0), 3)))), || {
            unbroken(|| work(QUANTUM as usize * 10)).unwrap();
            assert_eq!(work(1).unwrap_err().code, 50);
            assert!(spent() >= QUANTUM * 10, "{}", spent());
        });
        unbroken(|| work(10)).unwrap();
    }

    #[test]
    fn what_was_charged_is_refused_when_work_is_counted_next() {
        within(&mut Oversight(Some(Arc::new(Limit(AtomicU32::new(0), 3)))), || {
            charge(QUANTUM as usize * 10);
            assert_eq!(spend(1).unwrap_err().code, 50);
        });
        charge(QUANTUM as usize * 10);
        spend(1).unwrap();
    }

    struct Bytes(i64);
    impl Overseer for Bytes {
        fn check(&self, slice: &mut Slice) -> Result<()> {
            match slice.bytes() > self.0 {
                true => Err(Error::new(146, "much")),
                false => Ok(()),
            }
        }
    }

    #[test]
    fn what_is_claimed_is_refused_as_if_it_were_allocated_and_is_not_kept() {
        let most = 64 << 20;
        within(&mut Oversight(Some(Arc::new(Bytes(most)))), || {
            let all = allocated();
            assert_eq!(claim((most + (2 << 20)) as usize).unwrap_err().code, 146);
            assert!(allocated() < all + (1 << 20), "nothing was allocated");
            claim((most / 2) as usize).unwrap();
            claim((most / 2) as usize).unwrap();
            work(QUANTUM as usize * 3).unwrap();
            unbroken(|| claim(usize::MAX)).unwrap();
        });
        claim(usize::MAX).unwrap();
    }

    #[test]
    fn work_may_be_refused_where_somebody_asks() {
        assert!(!may_refuse());
        within(&mut Oversight::default(), || {
            assert!(!may_refuse());
            bounded(1, || {
                assert!(may_refuse());
                Ok(())
            })
            .unwrap();
            oversee(Arc::new(Limit(AtomicU32::new(0), 3)));
            assert!(may_refuse());
            unbroken(|| assert!(!may_refuse()));
            assert!(may_refuse());
        });
        assert!(!may_refuse());
    }

    #[test]
    fn bounded_work_gives_up_and_may_go_on_without_its_bound() {
        within(&mut Oversight::default(), || {
            oversee(Arc::new(Limit(AtomicU32::new(0), 100)));
            work(QUANTUM as usize * 4).unwrap();
            let short = bounded(2, || work(QUANTUM as usize * 10));
            assert_eq!(short.unwrap_err().code, OVERRUN);
            work(QUANTUM as usize * 10).unwrap();
        });
    }
}
