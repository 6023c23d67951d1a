//! Work on all cores whose results are needed in order: what makes a start fast.
//!
//! ```text
//! items --(any thread)--> work --> kept until it is its turn --(this thread)--> take
//! ```
//! Workers take the next item as long as no more than [`AHEAD`] results for each of them wait to be taken, which bounds memory.
//! The first error in the order of the items ends everything.

use std::collections::BTreeMap;

use parking_lot::{Condvar, Mutex};

/// Results that may wait, for each worker.
const AHEAD: usize = 2;

struct Turn<R, E> {
    /// The next item to work on.
    next: usize,
    /// The next result to take.
    taken: usize,
    done: BTreeMap<usize, Result<R, E>>,
    workers: usize,
    stop: bool,
}

struct Shared<R, E> {
    turn: Mutex<Turn<R, E>>,
    changed: Condvar,
}

/// How many threads are worth having; a simulation has one.
pub(crate) fn cores() -> usize {
    if runtime::simulation::is_running() {
        return 1;
    }
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Calls `work` on every item, on all cores, and `take` on the results, on this thread and in the items' order.
///
/// # Errors
/// The first of `work` or `take`, by the order of the items.
pub(crate) fn in_order<T: Sync, R: Send, E: Send>(
    items: &[T],
    work: impl Fn(&T) -> Result<R, E> + Sync,
    mut take: impl FnMut(&T, R) -> Result<(), E>,
) -> Result<(), E> {
    let workers = cores().min(items.len());
    if items.len() < 2 || workers < 2 {
        return items.iter().try_for_each(|item| take(item, work(item)?));
    }
    let turn = Turn { next: 0, taken: 0, done: BTreeMap::new(), workers, stop: false };
    let shared = Shared { turn: Mutex::new(turn), changed: Condvar::new() };
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| shared.work(items, &work));
        }
        let stop = Stop(&shared);
        for item in items {
            // A worker that panicked leaves a gap; the scope passes the panic on.
            let Some(result) = shared.next() else { break };
            take(item, result?)?;
        }
        drop(stop);
        Ok(())
    })
}

impl<R, E> Shared<R, E> {
    fn work<T>(&self, items: &[T], work: &impl Fn(&T) -> Result<R, E>) {
        let _leave = Leave(self);
        loop {
            let at = {
                let mut turn = self.turn.lock();
                while !turn.stop && turn.next >= turn.taken + AHEAD * cores() && turn.next < items.len() {
                    self.changed.wait(&mut turn);
                }
                if turn.stop || turn.next >= items.len() {
                    return;
                }
                turn.next += 1;
                turn.next - 1
            };
            let result = work(&items[at]);
            self.turn.lock().done.insert(at, result);
            self.changed.notify_all();
        }
    }

    fn next(&self) -> Option<Result<R, E>> {
        let mut turn = self.turn.lock();
        loop {
            let at = turn.taken;
            if let Some(result) = turn.done.remove(&at) {
                turn.taken += 1;
                self.changed.notify_all();
                return Some(result);
            }
            if turn.workers == 0 || turn.stop {
                return None;
            }
            self.changed.wait(&mut turn);
        }
    }
}

/// Ends the workers, also when `take` fails or panics.
struct Stop<'a, R, E>(&'a Shared<R, E>);

impl<R, E> Drop for Stop<'_, R, E> {
    fn drop(&mut self) {
        self.0.turn.lock().stop = true;
        self.0.changed.notify_all();
    }
}

/// Counts a worker out; one that panicked ends the others, whose results cannot be taken past its own.
struct Leave<'a, R, E>(&'a Shared<R, E>);

impl<R, E> Drop for Leave<'_, R, E> {
    fn drop(&mut self) {
        let mut turn = self.0.turn.lock();
        turn.workers -= 1;
        turn.stop |= std::thread::panicking();
        drop(turn);
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_and_the_first_error_ends_it() {
        let items: Vec<u64> = (0..500).collect();
        let mut taken = Vec::new();
        let done: Result<(), u64> = in_order(
            &items,
            |n| Ok(n * 2),
            |n, r| {
                taken.push((*n, r));
                Ok(())
            },
        );
        assert_eq!(done, Ok(()));
        assert_eq!(taken, items.iter().map(|n| (*n, n * 2)).collect::<Vec<_>>());
        let mut taken = 0;
        let failing = |n: &u64| if *n >= 100 && n.is_multiple_of(50) { Err(*n) } else { Ok(()) };
        let done = in_order(&items, failing, |_, ()| {
            taken += 1;
            Ok(())
        });
        assert_eq!((done, taken), (Err(100), 100));
        assert_eq!(in_order(&items, |n| Ok(*n), |n, _| if *n == 7 { Err(7) } else { Ok(()) }), Err(7));
    }

    #[test]
    #[should_panic(expected = "scoped thread panicked")]
    fn a_panic_of_a_worker_is_passed_on() {
        let items: Vec<u64> = (0..50).collect();
        let _: Result<(), ()> =
            in_order(&items, |n| if *n == 9 { panic!("nine") } else { Ok(()) }, |_, ()| Ok(()));
    }
}
