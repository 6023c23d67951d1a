//! The simulated world of one thread: its clock, numbers, network, and the trace of what happened in it.
//!
//! The trace is a number made of everything that was sent, by whom, to whom and when. Two runs of one seed have the same.

pub mod network;

use std::cell::{Cell, RefCell, RefMut};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::time::Instant;

use crate::Owner;

/// Whether any thread ever simulated: what servers look at instead of the thread's own state.
static EVER: AtomicBool = AtomicBool::new(false);

thread_local! {
    static WORLD: RefCell<Option<Rc<World>>> = const { RefCell::new(None) };
}

/// What a simulation replaces on its thread.
pub struct World {
    rng: RefCell<StdRng>,
    began: Instant,
    network: RefCell<network::Network>,
    trace: RefCell<DefaultHasher>,
    verbose: Cell<bool>,
    omitted: Cell<Option<Check>>,
}

/// The wall clock of every simulation begins here: 2026-01-01.
const WALL_BEGIN_MILLIS: i64 = 1_767_225_600_000;

impl World {
    pub(crate) fn rng(&self) -> RefMut<'_, StdRng> {
        self.rng.borrow_mut()
    }
    /// What the wall clock of the running task's owner shows.
    pub(crate) fn now_millis(&self) -> i64 {
        let clock = Owner::current().map_or_else(Skew::default, |owner| owner.clock());
        WALL_BEGIN_MILLIS + clock.shows(self.began.elapsed().as_millis() as i64)
    }
}

/// How a wall clock goes otherwise than the world's. What is measured between two moments is not its business.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skew {
    /// How much it is ahead when the world begins, in milliseconds.
    pub ahead_millis: i64,
    /// How many milliseconds it gains in a million.
    pub gain_millionths: i64,
}

impl Skew {
    /// What it shows so many milliseconds after the beginning, at which a right clock shows 0.
    fn shows(self, elapsed_millis: i64) -> i64 {
        self.ahead_millis + elapsed_millis + elapsed_millis * self.gain_millionths / 1_000_000
    }
}

/// Whether this thread runs a simulation.
#[inline]
pub fn is_running() -> bool {
    EVER.load(Ordering::Relaxed) && WORLD.with_borrow(Option::is_some)
}

/// What `f` makes of the world of this thread, if it has one.
#[inline]
pub(crate) fn with<T>(f: impl FnOnce(&World) -> T) -> Option<T> {
    if !EVER.load(Ordering::Relaxed) {
        return None;
    }
    let world = WORLD.with_borrow(Option::clone)?;
    Some(f(&world))
}

/// A check that a simulation can do without, to show that it would be missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// That a request was sent for the version of the collection that the shard has.
    ShardVersion,
    /// That a statement of a retryable write was not executed before.
    Executed,
    /// That what a transaction changes was not changed since its snapshot.
    WriteConflict,
    /// That a coordinator's decision is durable before it is sent.
    DurableDecision,
    /// That a statement's transaction has not ended.
    EndedTransaction,
    /// That a vote is stored before it is given.
    StoredVote,
    /// That a log that parts from the set's is rolled back.
    Rollback,
    /// That a read waits for the outcome of what is prepared before its time.
    PrepareConflict,
    /// That a member in a later term says so when it reports how far it has come.
    ReporterTerm,
}

/// From now on nodes do without a check.
pub fn omit(check: Check) {
    with(|world| world.omitted.set(Some(check)));
}

/// Whether nodes do without a check; never outside simulations.
pub fn omits(check: Check) -> bool {
    with(|world| world.omitted.get() == Some(check)).unwrap_or(false)
}

/// Adds what happens now to the trace.
pub fn note(what: &str, bytes: &[u8]) {
    with(|world| {
        let at = world.began.elapsed();
        let mut trace = world.trace.borrow_mut();
        (at, what, bytes).hash(&mut *trace);
        if world.verbose.get() {
            let text: String =
                bytes.iter().map(|b| if b.is_ascii_graphic() { *b as char } else { '.' }).collect();
            eprintln!("{:>10.3} {:016x} {what} {} {text}", at.as_secs_f64(), trace.finish(), bytes.len());
        }
    });
}

/// The trace so far.
pub fn trace() -> u64 {
    with(|world| world.trace.borrow().finish()).unwrap_or(0)
}

/// From now on prints what is added to the trace.
pub fn trace_to_stderr(verbose: bool) {
    with(|world| world.verbose.set(verbose));
}

/// Runs `main` in a world of its own on this thread: its time passes only when every task waits, and its random numbers
/// follow from `seed`.
///
/// # Panics
/// If the thread runs a simulation or a runtime already, or `main` panics.
pub fn run<T>(seed: u64, main: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime of one thread starts");
    EVER.store(true, Ordering::Relaxed);
    let began = runtime.block_on(async { Instant::now() });
    let world = World {
        rng: RefCell::new(StdRng::seed_from_u64(seed)),
        began,
        network: RefCell::default(),
        trace: RefCell::default(),
        verbose: Cell::new(false),
        omitted: Cell::new(None),
    };
    let before = WORLD.replace(Some(Rc::new(world)));
    assert!(before.is_none(), "a simulation within a simulation");
    let result = runtime.block_on(main);
    // Tasks that are left are dropped in the world that they belong to.
    drop(runtime);
    WORLD.set(None);
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{now_millis, random, spawn, spawn_in, spawn_on};
    use std::time::Duration;

    #[test]
    fn one_seed_gives_the_same_numbers_and_no_time_passes_by_itself() {
        let look = |seed| {
            run(seed, async {
                let (began, wall) = (Instant::now(), now_millis());
                tokio::time::sleep(Duration::from_secs(3600)).await;
                assert_eq!(began.elapsed(), Duration::from_secs(3600));
                assert_eq!(now_millis() - wall, 3_600_000);
                random::<[u64; 4]>()
            })
        };
        assert_eq!(look(7), look(7));
        assert_ne!(look(7), look(8));
        assert!(!is_running());
    }

    #[test]
    fn each_owner_has_a_wall_clock_of_its_own() {
        run(1, async {
            let began = now_millis();
            let slow = Owner::with_clock("slow", Skew { ahead_millis: -500, gain_millionths: -1_000 });
            let fast = Owner::with_clock("fast", Skew { ahead_millis: 2_000, gain_millionths: 1_000 });
            let shown = |owner: &Owner| {
                let owner = owner.clone();
                async move { owner.run(async { spawn(async { now_millis() }).await.unwrap() }).await - began }
            };
            assert_eq!((shown(&slow).await, shown(&fast).await), (-500, 2_000));
            tokio::time::sleep(Duration::from_secs(100)).await;
            assert_eq!((shown(&slow).await, shown(&fast).await), (99_400, 102_100));
            assert_eq!(shown(&Owner::named("right")).await, 100_000);
            assert_eq!(now_millis() - began, 100_000);
        });
    }

    #[test]
    fn the_tasks_of_an_owner_end_with_it_and_no_others() {
        run(1, async {
            let forever = || spawn(std::future::pending::<()>());
            let owner = Owner::named("a node");
            let grandchild = owner.run(async { spawn(async move { Some(forever()) }).await }).await;
            let other = spawn(async { tokio::time::sleep(Duration::from_secs(1)).await });
            owner.end().await;
            assert!(grandchild.unwrap().unwrap().await.unwrap_err().is_cancelled());
            assert!(other.await.is_ok());
            let late = owner.run(async { Some(forever()) }).await;
            assert!(late.unwrap().await.unwrap_err().is_cancelled());
        });
    }

    #[test]
    fn tasks_of_a_set_and_of_a_handle_belong_to_the_owner_too() {
        run(1, async {
            let owner = Owner::named("a node");
            let (mut tasks, runtime) = (tokio::task::JoinSet::new(), tokio::runtime::Handle::current());
            let (grandchild, on_handle) = owner
                .run(async {
                    let (tell, told) = tokio::sync::oneshot::channel();
                    spawn_in(&mut tasks, async move {
                        drop(tell.send(spawn(std::future::pending::<()>())));
                        std::future::pending::<()>().await;
                    });
                    (told.await.unwrap(), spawn_on(&runtime, std::future::pending::<()>()))
                })
                .await;
            owner.end().await;
            assert!(tasks.join_next().await.unwrap().unwrap_err().is_cancelled());
            assert!(grandchild.await.unwrap_err().is_cancelled());
            assert!(on_handle.await.unwrap_err().is_cancelled());
        });
    }
}
