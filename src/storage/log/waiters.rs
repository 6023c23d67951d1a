//! Tasks that wait until a rising number reaches a value: the durable, the written, the appended position.
//!
//! A waiter registers first and looks at the number afterwards; whoever raises the number stores it first and looks for
//! waiters afterwards. With a full fence between the two steps on both sides at least one of them sees the other, so no
//! wake-up is lost, and raising costs one load when nobody waits.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use parking_lot::Mutex;

pub(super) struct Waiters {
    waiting: Mutex<BTreeMap<(u64, u64), Waker>>,
    lowest: AtomicU64,
    ids: AtomicU64,
    count: AtomicUsize,
}

impl Default for Waiters {
    fn default() -> Self {
        Waiters {
            waiting: Mutex::default(),
            lowest: AtomicU64::new(u64::MAX),
            ids: AtomicU64::new(0),
            count: AtomicUsize::new(0),
        }
    }
}

impl Waiters {
    /// How many wait.
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Wakes whoever waits for a value at or below `reached`; returns how many.
    pub(super) fn wake(&self, reached: u64) -> usize {
        fence(Ordering::SeqCst);
        if self.lowest.load(Ordering::SeqCst) > reached {
            return 0;
        }
        let ready = {
            let mut waiting = self.waiting.lock();
            let later = waiting.split_off(&(reached.saturating_add(1), 0));
            let ready = std::mem::replace(&mut *waiting, later);
            self.note_lowest(&waiting);
            ready
        };
        let woken = ready.len();
        ready.into_values().for_each(Waker::wake);
        woken
    }

    /// Wakes everybody: the log failed, was cut or was closed.
    pub(super) fn wake_all(&self) {
        fence(Ordering::SeqCst);
        let all = {
            let mut waiting = self.waiting.lock();
            let all = std::mem::take(&mut *waiting);
            self.note_lowest(&waiting);
            all
        };
        all.into_values().for_each(Waker::wake);
    }

    fn note_lowest(&self, waiting: &BTreeMap<(u64, u64), Waker>) {
        let lowest = waiting.first_key_value().map_or(u64::MAX, |(&(value, _), _)| value);
        self.lowest.store(lowest, Ordering::SeqCst);
        self.count.store(waiting.len(), Ordering::Relaxed);
    }

    /// Waits until `check` answers; it is asked again when `value` is reached.
    pub(super) fn wait<T, F: FnMut() -> Option<T> + Unpin>(&self, value: u64, check: F) -> Wait<'_, F> {
        Wait { waiters: self, value, id: None, check }
    }

    fn register(&self, value: u64, id: &mut Option<u64>, waker: &Waker) {
        let id = *id.get_or_insert_with(|| self.ids.fetch_add(1, Ordering::Relaxed));
        let mut waiting = self.waiting.lock();
        waiting.insert((value, id), waker.clone());
        self.note_lowest(&waiting);
        drop(waiting);
        fence(Ordering::SeqCst);
    }

    fn forget(&self, value: u64, id: Option<u64>) {
        if let Some(id) = id {
            let mut waiting = self.waiting.lock();
            if waiting.remove(&(value, id)).is_some() {
                self.note_lowest(&waiting);
            }
        }
    }
}

pub(super) struct Wait<'a, F> {
    waiters: &'a Waiters,
    value: u64,
    id: Option<u64>,
    check: F,
}

impl<T, F: FnMut() -> Option<T> + Unpin> Future for Wait<'_, F> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let this = self.get_mut();
        if let Some(answer) = (this.check)() {
            return Poll::Ready(answer);
        }
        this.waiters.register(this.value, &mut this.id, context.waker());
        match (this.check)() {
            Some(answer) => Poll::Ready(answer),
            None => Poll::Pending,
        }
    }
}

impl<F> Drop for Wait<'_, F> {
    fn drop(&mut self) {
        self.waiters.forget(self.value, self.id);
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits on this thread.
pub(super) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(answer) => return answer,
            Poll::Pending => std::thread::park(),
        }
    }
}
