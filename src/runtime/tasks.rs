//! Tasks, and threads that may block.
//!
//! In a simulation a task belongs to the [`Owner`] under which it was spawned, and so does everything that it spawns:
//! ending a node there means to end its tasks wherever they stand, as the end of a process would.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use tokio::runtime::Handle;
use tokio::task::{AbortHandle, JoinError, JoinHandle, JoinSet};

use crate::simulation::{self, Skew};

tokio::task_local! {
    static OWNER: Owner;
}

/// Whose tasks end together. Clones are the same owner.
#[derive(Clone)]
pub struct Owner(Arc<Owned>);

struct Owned {
    name: String,
    clock: Skew,
    ended: AtomicBool,
    tasks: Mutex<Vec<AbortHandle>>,
}

impl Owner {
    /// An owner without tasks.
    pub fn named(name: &str) -> Owner {
        Owner::with_clock(name, Skew::default())
    }
    /// One whose tasks read another wall clock than the world's.
    pub fn with_clock(name: &str, clock: Skew) -> Owner {
        let name = name.to_string();
        Owner(Arc::new(Owned { name, clock, ended: false.into(), tasks: Mutex::default() }))
    }

    pub fn name(&self) -> &str {
        &self.0.name
    }
    pub(crate) fn clock(&self) -> Skew {
        self.0.clock
    }

    /// Runs `work` with everything that it spawns belonging to this owner.
    pub async fn run<T>(&self, work: impl Future<Output = T>) -> T {
        OWNER.scope(self.clone(), work).await
    }

    /// Ends all tasks at the await where each stands, and returns when they are gone. What they still spawn while they are
    /// dropped ends too.
    pub async fn end(&self) {
        self.0.ended.store(true, Ordering::SeqCst);
        self.tasks().iter().for_each(AbortHandle::abort);
        while !self.tasks().iter().all(AbortHandle::is_finished) {
            tokio::task::yield_now().await;
        }
    }

    /// Whether [`end`](Self::end) was called.
    pub fn has_ended(&self) -> bool {
        self.0.ended.load(Ordering::SeqCst)
    }

    /// The owner of the running task, if it has one.
    pub fn current() -> Option<Owner> {
        OWNER.try_with(Owner::clone).ok()
    }

    fn add(&self, task: AbortHandle) {
        if self.has_ended() {
            task.abort();
        }
        let mut tasks = self.tasks();
        if tasks.len() == tasks.capacity() {
            tasks.retain(|task| !task.is_finished());
        }
        tasks.push(task);
    }

    fn tasks(&self) -> std::sync::MutexGuard<'_, Vec<AbortHandle>> {
        // Nothing panics while it is held.
        self.0.tasks.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Starts a task.
pub fn spawn<F>(work: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    spawn_boxed(Box::pin(work))
}

/// A future of one type for each result, so that what tokio keeps for a task is compiled once for each result and not
/// twice for each future: with an owner and without.
type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

fn spawn_boxed<T: Send + 'static>(work: Boxed<T>) -> JoinHandle<T> {
    match owner() {
        None => tokio::spawn(work),
        Some(owner) => {
            let task = tokio::spawn(OWNER.scope(owner.clone(), work));
            owner.add(task.abort_handle());
            task
        }
    }
}

/// Starts a task on a runtime that the calling thread may be outside of.
pub fn spawn_on<F>(runtime: &Handle, work: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    let _inside = runtime.enter();
    spawn(work)
}

/// Starts a task that ends with a set.
pub fn spawn_in<T: Send + 'static>(tasks: &mut JoinSet<T>, work: impl Future<Output = T> + Send + 'static) {
    let work: Boxed<T> = Box::pin(work);
    match owner() {
        None => drop(tasks.spawn(work)),
        Some(owner) => owner.add(tasks.spawn(OWNER.scope(owner.clone(), work))),
    }
}

fn owner() -> Option<Owner> {
    simulation::is_running().then(Owner::current).flatten()
}

/// Runs what blocks its thread beside the threads that serve; in a simulation at once on the one thread there is.
///
/// The result is an error after a panic of `work`, or at the end of the runtime.
pub fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Blocking<T> {
    if simulation::is_running() {
        return Blocking::Done(Some(Box::new(work())));
    }
    let work: Box<dyn FnOnce() -> T + Send> = Box::new(work);
    Blocking::Thread(tokio::task::spawn_blocking(work))
}

/// The result of [`blocking`] to wait for.
pub enum Blocking<T> {
    Thread(JoinHandle<T>),
    /// Boxed, so that futures that wait for it are no larger for it.
    Done(Option<Box<T>>),
}

impl<T> Unpin for Blocking<T> {}

impl<T> Future for Blocking<T> {
    type Output = Result<T, JoinError>;

    /// # Panics
    /// When polled again after it was ready.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Blocking::Thread(thread) => Pin::new(thread).poll(cx),
            Blocking::Done(result) => Poll::Ready(Ok(*result.take().expect("polled after it was ready"))),
        }
    }
}
