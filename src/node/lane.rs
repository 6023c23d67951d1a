//! The lane of long work: evaluation that does not end in a few milliseconds leaves its worker.
//!
//! A command is polled by one of the runtime's workers, of which there are as many as cores. Evaluation inside a poll
//! cannot await, so it is metered ([`document::meter`]): after each quantum, about a millisecond, its operation is asked.
//!
//! ```text
//! quanta 1..4   the worker is held; deadline, kill and memory are checked after each
//! quantum 4     the thread hands its worker on (block_in_place) and waits for a place in the lane
//! afterwards    the thread computes as one of at most PLACES; after TURN quanta it lets the next one have its place
//! end of poll   the place is given back; the thread, which has no worker now, returns to the pool of blocking threads
//! ```
//!
//! So the workers are always free within some milliseconds for what is brief, and long work shares what its places get
//! of the machine. Nothing waits for a place under a latch: there the thread only hands its worker on.
//!
//! Invariant: the lane's lock is held for a few instructions, never across a computation.
//! Invariant: a place is given back when its slice ends, however it ends.

use crate::Operation;
use crate::memory;
use document::meter::{self, Overseer, Oversight, Slice};
use document::{Result, bail};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::task::Poll;
use std::time::Duration;
use tokio::runtime::{Handle, RuntimeFlavor};

/// Quanta in one poll that a worker bears with.
const WORKER_QUANTA: u32 = 4;
/// Quanta that a place is kept for while others wait.
const TURN: u32 = 20;
/// How often a thread that waits for a place looks whether its operation is to end.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Threads that may be away from their workers. Each needs another one in its place, of which the runtime has some
/// hundreds; operations beyond are refused.
const AWAY_MAX: usize = 200;

/// Places for long work and the queue before them. Threads are the process's, so there is one lane for all its nodes.
struct Lane {
    queue: Mutex<Queue>,
    moved: Condvar,
}

struct Queue {
    free: usize,
    /// Threads that have a place or wait for one.
    away: usize,
    /// Numbers of those that wait, in order.
    waiting: VecDeque<u64>,
    next: u64,
}

static LANE: std::sync::LazyLock<Lane> = std::sync::LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(2, |n| n.get());
    Lane {
        queue: Mutex::new(Queue { free: (cores - 1).max(1), away: 0, waiting: VecDeque::new(), next: 0 }),
        moved: Condvar::new(),
    }
});

/// A place in the lane, and the quantum at which it was taken.
struct Place {
    since: u32,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut queue = LANE.queue.lock();
        (queue.free, queue.away) = (queue.free + 1, queue.away - 1);
        drop(queue);
        LANE.moved.notify_all();
    }
}

impl Lane {
    /// Waits for a place. Blocks its thread.
    fn place(&self, op: &Operation, since: u32) -> Result<Place> {
        let mut queue = self.queue.lock();
        if queue.away >= AWAY_MAX {
            bail!(EXCEEDED_MEMORY_LIMIT, "too many long operations are under way: each holds a thread");
        }
        let number = queue.next;
        (queue.next, queue.away) = (number + 1, queue.away + 1);
        queue.waiting.push_back(number);
        loop {
            if queue.free > 0 && queue.waiting.front() == Some(&number) {
                queue.free -= 1;
                queue.waiting.pop_front();
                return Ok(Place { since });
            }
            self.moved.wait_for(&mut queue, LOOK_EVERY);
            if let Err(e) = op.check_interrupt() {
                queue.waiting.retain(|n| *n != number);
                queue.away -= 1;
                self.moved.notify_all();
                return Err(e);
            }
        }
    }
    fn is_wanted(&self) -> bool {
        !self.queue.lock().waiting.is_empty()
    }
}

impl Overseer for Operation {
    fn check(&self, slice: &mut Slice) -> Result<()> {
        self.check_interrupt()?;
        memory::check_slice(slice.bytes())?;
        if slice.quanta >= WORKER_QUANTA && has_workers() {
            leave_worker(self, slice)?;
        }
        Ok(())
    }
}

/// Whether this thread may hand on a worker. A runtime of one thread, as in tests, has no other to go on with.
fn has_workers() -> bool {
    Handle::try_current().is_ok_and(|h| h.runtime_flavor() == RuntimeFlavor::MultiThread)
}

fn leave_worker(op: &Operation, slice: &mut Slice) -> Result<()> {
    if slice.latched {
        tokio::task::block_in_place(std::thread::yield_now);
        return Ok(());
    }
    let held = slice.hold.as_ref().and_then(|h| h.downcast_ref::<Place>()).map(|p| p.since);
    match held {
        Some(since) if slice.quanta.saturating_sub(since) < TURN || !LANE.is_wanted() => return Ok(()),
        _ => slice.hold = None,
    }
    let place = tokio::task::block_in_place(|| LANE.place(op, slice.quanta))?;
    slice.hold = Some(Box::new(place));
    Ok(())
}

/// Runs a command's future with its work metered, on behalf of the operation that is given to [`meter::oversee`] once the
/// request has been read.
pub async fn metered<F: Future>(future: F) -> F::Output {
    let mut oversight = Oversight::default();
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(move |context| -> Poll<F::Output> {
        meter::within(&mut oversight, || future.as_mut().poll(context))
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::{codes, meter::spend};
    use runtime::Instant;
    use std::sync::Arc;

    async fn endless(op: Arc<Operation>) -> document::Error {
        metered(async {
            meter::oversee(op);
            loop {
                if let Err(e) = spend(1) {
                    return e;
                }
            }
        })
        .await
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn endless_work_on_every_worker_neither_stops_others_nor_outlives_its_deadline() {
        let began = Instant::now();
        let tasks: Vec<_> = (0..8)
            .map(|_| {
                let mut op = Operation::internal();
                op.deadline = Some(began + Duration::from_millis(600));
                runtime::spawn(endless(Arc::new(op)))
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(50)).await;
        for _ in 0..5 {
            let asked = Instant::now();
            runtime::spawn(async {}).await.unwrap();
            assert!(asked.elapsed() < Duration::from_millis(250), "{:?}", asked.elapsed());
        }
        assert!(began.elapsed() < Duration::from_millis(600), "asked while they ran");
        for t in tasks {
            assert_eq!(t.await.unwrap().code, codes::MAX_TIME_MS_EXPIRED);
        }
        assert!(began.elapsed() < Duration::from_secs(5));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_killed_operation_ends_inside_its_evaluation() {
        let op = Arc::new(Operation::internal());
        let task = runtime::spawn(endless(op.clone()));
        tokio::time::sleep(Duration::from_millis(20)).await;
        op.kill(codes::INTERRUPTED);
        assert_eq!(task.await.unwrap().code, codes::INTERRUPTED);
    }
}
