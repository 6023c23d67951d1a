//! Stripes: values that many threads change and few read, kept apart by thread.
//!
//! A number that every request adds to sits in one cache line, which then travels from core to core with every request. Each
//! thread has a stripe of its own instead; a reader adds them up. More threads than stripes share, which is slower and still right.

use std::cell::Cell;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering::Relaxed};

const STRIPES: usize = 4;

/// Alone in its cache line.
#[repr(align(64))]
#[derive(Default)]
struct Alone<T>(T);

/// One value for each stripe.
#[derive(Default)]
pub struct Striped<T>([Alone<T>; STRIPES]);

impl<T> Striped<T> {
    /// The calling thread's.
    pub fn own(&self) -> &T {
        &self.0[own_stripe()].0
    }
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|alone| &alone.0)
    }
}

/// Counts what every request does; each thread adds to a stripe of its own.
#[derive(Default)]
pub struct Counter(Striped<AtomicI64>);

impl Counter {
    pub fn add(&self, n: i64) {
        self.0.own().fetch_add(n, Relaxed);
    }
    pub fn increment(&self) {
        self.add(1);
    }
    pub fn get(&self) -> i64 {
        self.0.iter().map(|n| n.load(Relaxed)).sum()
    }
}

fn own_stripe() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static OWN: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    OWN.with(|own| {
        if own.get() == usize::MAX {
            own.set(NEXT.fetch_add(1, Relaxed) % STRIPES);
        }
        own.get()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_add_on_their_own_is_all_there() {
        let striped: Striped<AtomicI64> = Striped::default();
        std::thread::scope(|scope| {
            for _ in 0..9 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        striped.own().fetch_add(1, Relaxed);
                    }
                });
            }
        });
        assert_eq!(striped.iter().map(|n| n.load(Relaxed)).sum::<i64>(), 900);
        assert!(striped.iter().filter(|n| n.load(Relaxed) > 0).count() > 1);
    }
}
