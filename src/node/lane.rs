//! The lane of long work: what does not end in a few milliseconds shares one core fewer than there are.
//!
//! A command is polled by one of the runtime's workers, of which there are as many as cores. Evaluation inside a poll
//! cannot await, so it is metered ([`document::meter`]): after each quantum, about a millisecond, its operation is asked.
//! What works in slices awaits [`give_way`] between any two.
//!
//! ```text
//! quanta 1..4   the worker is held; deadline, kill and memory are checked after each
//! quantum 4     of one poll: the thread hands its worker on (block_in_place) and waits for a place in the lane
//!               of several polls: each further slice waits for a place before it begins, without a thread
//! afterwards    at most PLACES compute; after TURN quanta of one poll the next one has its place
//! end of poll   the place is given back; a thread that has no worker now returns to the pool of blocking threads
//! ```
//!
//! So a worker is always free within some milliseconds for what is brief, and to watch the sockets. Nothing waits for a place
//! under a latch: there the thread only hands its worker on.
//!
//! Invariant: a place is given back when its poll ends, however it ends. So who has one waits for nothing.

use crate::Operation;
use crate::memory;
use document::meter::{self, Overseer, Oversight, QUANTUM, Slice};
use document::{Result, bail};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Quanta that a worker bears with, in one poll or in several.
const WORKER_QUANTA: u32 = 4;
/// Quanta of one poll that a place is kept for while others wait.
const TURN: u32 = 20;
/// How often a thread that waits for a place looks whether its operation is to end.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Threads that may be away from their workers. Each needs another one in its place, of which the runtime has some
/// hundreds; operations beyond are refused.
const AWAY_MAX: usize = 200;

/// Places for long work, in the order in which they were asked for. Threads are the process's, so there is one lane for all its nodes.
static PLACES: LazyLock<Semaphore> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(2, |n| n.get());
    Semaphore::new((cores - 1).max(1))
});

/// A place in the lane.
struct Place {
    _permit: SemaphorePermit<'static>,
    /// The quantum of the poll at which it was taken.
    since: u32,
    /// Its thread has handed on its worker.
    away: bool,
}

/// Threads that wait for a place without a worker.
static AWAY: AtomicUsize = AtomicUsize::new(0);

struct Away;

impl Away {
    fn go() -> Result<Away> {
        let away = Away;
        if AWAY.fetch_add(1, Ordering::Relaxed) >= AWAY_MAX {
            bail!(EXCEEDED_MEMORY_LIMIT, "too many long operations are under way: each holds a thread");
        }
        Ok(away)
    }
}

impl Drop for Away {
    fn drop(&mut self) {
        AWAY.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Waits for a place. Blocks its thread, which has handed on its worker.
fn wait_for_place(op: &Operation) -> Result<SemaphorePermit<'static>> {
    let _away = Away::go()?;
    let runtime = Handle::current();
    let mut asked = std::pin::pin!(PLACES.acquire());
    loop {
        let looked = runtime.block_on(async { tokio::time::timeout(LOOK_EVERY, asked.as_mut()).await });
        match looked {
            Ok(Ok(permit)) => return Ok(permit),
            // Nobody closes the lane.
            Ok(Err(closed)) => bail!(INTERNAL_ERROR, "{closed}"),
            Err(_) => op.check_interrupt()?,
        }
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
    let quanta = slice.quanta;
    match slice.hold.as_mut().and_then(|h| h.downcast_mut::<Place>()) {
        Some(place) if quanta.saturating_sub(place.since) < TURN => {
            if !std::mem::replace(&mut place.away, true) {
                tokio::task::block_in_place(|| ());
            }
            return Ok(());
        }
        _ => slice.hold = None,
    }
    let permit = tokio::task::block_in_place(|| wait_for_place(op))?;
    slice.hold = Some(Box::new(Place { _permit: permit, since: quanta, away: true }));
    Ok(())
}

/// Lets others run between two slices of work. An operation that has worked for long waits for a place in the lane, which it
/// has until it next waits for anything.
///
/// # Errors
/// Those of an operation that is to end.
pub async fn give_way(op: &Operation) -> Result<()> {
    let worked = op.note_work(meter::spent());
    tokio::task::yield_now().await;
    op.check_interrupt()?;
    if worked < i64::from(WORKER_QUANTA) * QUANTUM || !has_workers() {
        return Ok(());
    }
    let permit = match PLACES.try_acquire() {
        Ok(permit) => permit,
        Err(_) => match op.interruptible(PLACES.acquire()).await? {
            Ok(permit) => permit,
            Err(closed) => bail!(INTERNAL_ERROR, "{closed}"),
        },
    };
    meter::hold(Box::new(Place { _permit: permit, since: 0, away: false }));
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

    /// Work in slices of half a quantum, which no poll of its own shows to be long.
    async fn sliced(op: Arc<Operation>) -> document::Error {
        metered(async {
            meter::oversee(op.clone());
            loop {
                let slice = (0..QUANTUM / 2).try_for_each(|_| spend(1));
                if let Err(e) = slice.and(give_way(&op).await) {
                    return e;
                }
            }
        })
        .await
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn what_works_long_in_short_slices_takes_turns_and_ends_at_its_deadline() {
        let began = Instant::now();
        let operations: Vec<Arc<Operation>> = (0..8)
            .map(|_| {
                let mut op = Operation::internal();
                op.deadline = Some(began + Duration::from_millis(300));
                Arc::new(op)
            })
            .collect();
        let tasks: Vec<_> = operations.iter().map(|op| runtime::spawn(sliced(op.clone()))).collect();
        for t in tasks {
            assert_eq!(t.await.unwrap().code, codes::MAX_TIME_MS_EXPIRED);
        }
        let worked: Vec<i64> = operations.iter().map(|op| op.note_work(0)).collect();
        assert!(worked.iter().all(|w| *w > i64::from(WORKER_QUANTA) * QUANTUM), "each had turns: {worked:?}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_place_is_held_for_one_poll_and_by_as_many_as_there_are() {
        let long = || {
            let op = Arc::new(Operation::internal());
            op.note_work(i64::from(WORKER_QUANTA) * QUANTUM);
            op
        };
        let all = std::thread::available_parallelism().map_or(1, |n| n.get() - 1).max(1);
        let taken = PLACES.acquire_many(all as u32).await.unwrap();
        let op = long();
        let waits = runtime::spawn({
            let op = op.clone();
            async move { metered(async { give_way(&op).await }).await }
        });
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(!waits.is_finished(), "it waits for a place");
        op.kill(codes::INTERRUPTED);
        assert_eq!(waits.await.unwrap().unwrap_err().code, codes::INTERRUPTED);
        drop(taken);
        let op = long();
        metered(async { give_way(&op).await }).await.unwrap();
        let again = tokio::time::timeout(Duration::from_secs(10), PLACES.acquire_many(all as u32)).await;
        assert!(again.is_ok(), "the place is given back at the end of the poll");
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
