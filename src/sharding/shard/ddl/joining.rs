//! Requests for what runs already.
//!
//! A request that equals the one a coordinator of the same kind runs for the same namespace waits for that one's outcome. One of
//! the same kind that asks for something else is refused, or waits for the namespace's lock, as its kind wants it: two different
//! shard keys contradict each other, two different indexes do not. Other kinds wait for the lock.

use super::repeated::RequestId;
use document::{Document, Result, bail, err};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::watch;

pub(super) type Outcome = watch::Receiver<Option<Result<Document>>>;
type Outcomes = Arc<watch::Sender<Option<Result<Document>>>>;
/// Namespace and kind; and what is asked for, where requests of the kind do not refuse one another.
type Key = (String, &'static str, Vec<u8>);

struct UnderWay {
    requested: Document,
    id: Option<RequestId>,
    outcome: Outcomes,
    unwanted: watch::Sender<bool>,
}

/// The coordinators that run or wait for their lock.
#[derive(Default)]
pub(super) struct Running(Mutex<BTreeMap<Key, UnderWay>>);

/// How a request got in.
pub(super) enum Entered {
    /// It is to be run.
    First(Run),
    /// An equal one runs.
    Joined(Outcome),
    /// An equal one is being given up, which says nothing of this request: it is run afterwards.
    After(Outcome),
}

/// A coordinator that was entered; it is gone when this is, and those who wait hear how it ended.
pub(super) struct Run {
    running: Arc<Running>,
    key: Key,
    outcome: Outcomes,
    /// It has its lock: what was asked for is being done.
    begun: bool,
}

impl Run {
    pub(super) fn begin(&mut self) {
        self.begun = true;
    }
    pub(super) fn outcome(&self) -> Outcome {
        self.outcome.subscribe()
    }
    pub(super) fn end(self, outcome: Result<Document>) {
        // Nobody joins what has ended.
        self.running.0.lock().remove(&self.key);
        self.outcome.send_replace(Some(outcome));
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if self.outcome.borrow().is_some() {
            return;
        }
        self.running.0.lock().remove(&self.key);
        if self.begun {
            self.outcome.send_replace(Some(Err(err!(INTERRUPTED_AT_SHUTDOWN, "the shard is stopping"))));
        }
    }
}

impl Running {
    /// # Errors
    /// ConflictingOperationInProgress (117) while one of the same kind runs that asks for something else and `refuses_others`.
    pub(super) fn join(
        self: &Arc<Self>,
        ns: &str,
        operation: &'static str,
        requested: &Document,
        refuses_others: bool,
        id: Option<RequestId>,
    ) -> Result<Entered> {
        let key = key(ns, operation, requested, refuses_others);
        let mut all = self.0.lock();
        if let Some(other) = all.get(&key) {
            if other.requested == *requested {
                let outcome = other.outcome.subscribe();
                return Ok(match *other.unwanted.borrow() {
                    false => Entered::Joined(outcome),
                    true => Entered::After(outcome),
                });
            }
            bail!(
                CONFLICTING_OPERATION_IN_PROGRESS,
                "Another {operation} with different arguments is already running for the same namespace {ns}"
            );
        }
        let (outcome, unwanted) = (Arc::new(watch::Sender::new(None)), watch::Sender::new(false));
        all.insert(
            key.clone(),
            UnderWay { requested: requested.clone(), id, outcome: outcome.clone(), unwanted },
        );
        Ok(Entered::First(Run { running: self.clone(), key, outcome, begun: false }))
    }

    /// The coordinator that a request of this name has begun.
    pub(super) fn begun_by(&self, id: RequestId) -> Option<Outcome> {
        let all = self.0.lock();
        all.values().find(|run| run.id == Some(id)).map(|run| run.outcome.subscribe())
    }

    /// Whether nobody wants the outcome of a coordinator any more, whose requests do not refuse one another; it says so when
    /// that becomes true.
    pub(super) fn unwanted(
        &self,
        ns: &str,
        operation: &'static str,
        requested: &Document,
    ) -> watch::Receiver<bool> {
        let all = self.0.lock();
        let found = all.get(&key(ns, operation, requested, false));
        found.map_or_else(|| watch::Sender::new(false).subscribe(), |run| run.unwanted.subscribe())
    }

    /// One of those who waited was interrupted: where none is left, the coordinator is told.
    pub(super) fn left(&self, ns: &str, operation: &'static str, requested: &Document) {
        let all = self.0.lock();
        let found = all.get(&key(ns, operation, requested, false));
        if let Some(run) = found.filter(|run| run.outcome.receiver_count() == 0) {
            run.unwanted.send_replace(true);
        }
    }

    /// What coordinators of this kind are asked for on a namespace.
    pub(super) fn requested(&self, ns: &str, operation: &'static str) -> Vec<Document> {
        let all = self.0.lock();
        let found = all.iter().filter(|((of, o, _), _)| of == ns && *o == operation);
        found.map(|(_, run)| run.requested.clone()).collect()
    }

    /// Tells coordinators of this kind, whoever waits for them; whether there were any. `which` chooses by namespace and by what was
    /// asked for.
    pub(super) fn end(&self, operation: &'static str, which: impl Fn(&str, &Document) -> bool) -> bool {
        let all = self.0.lock();
        let chosen = all.iter().filter(|((ns, o, _), run)| *o == operation && which(ns, &run.requested));
        let mut any = false;
        chosen.for_each(|(_, run)| {
            run.unwanted.send_replace(true);
            any = true;
        });
        any
    }
}

fn key(ns: &str, operation: &'static str, requested: &Document, refuses_others: bool) -> Key {
    let apart = if refuses_others { Vec::new() } else { requested.to_doc_buf().doc().bytes().to_vec() };
    (ns.to_string(), operation, apart)
}

/// Waits for the outcome; `None` when the first gave up before it began.
pub(super) async fn ended(mut outcome: Outcome) -> Option<Result<Document>> {
    outcome.wait_for(Option::is_some).await.ok().and_then(|done| done.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::{codes, doc};

    #[tokio::test]
    async fn an_equal_request_hears_the_outcome_of_the_first_and_another_is_refused() {
        let running = Arc::<Running>::default();
        let join = |operation: &'static str, requested: Document| {
            running.join("d.c", operation, &requested, true, None)
        };
        let Entered::First(run) = join("rename", doc! { "a": 1 }).unwrap() else { panic!("nothing runs") };
        let Entered::Joined(second) = join("rename", doc! { "a": 1 }).unwrap() else {
            panic!("the first runs")
        };
        let refused = join("rename", doc! { "a": 2 }).err().unwrap();
        assert_eq!(refused.code, codes::CONFLICTING_OPERATION_IN_PROGRESS);
        assert!(matches!(join("refine", doc! {}), Ok(Entered::First(_))));
        run.end(Ok(doc! { "done": true }));
        assert_eq!(ended(second).await.unwrap().unwrap(), doc! { "done": true });
        assert!(matches!(join("rename", doc! { "a": 2 }), Ok(Entered::First(_))));
    }

    #[tokio::test]
    async fn where_requests_may_stand_beside_one_another_only_equal_ones_join() {
        let running = Arc::<Running>::default();
        let join =
            |requested: Document| running.join("d.c", "createIndexes", &requested, false, None).unwrap();
        let Entered::First(run) = join(doc! { "a": 1 }) else { panic!("nothing runs") };
        let Entered::First(_other) = join(doc! { "a": 2 }) else { panic!("it is another") };
        let Entered::Joined(second) = join(doc! { "a": 1 }) else { panic!("the first runs") };
        run.end(Ok(doc! { "done": true }));
        assert_eq!(ended(second).await.unwrap().unwrap(), doc! { "done": true });
    }

    #[tokio::test]
    async fn a_run_is_unwanted_when_the_last_who_waits_leaves() {
        let running = Arc::<Running>::default();
        let requested = doc! { "a": 1 };
        let join = || running.join("d.c", "createIndexes", &requested, false, None).unwrap();
        let Entered::First(run) = join() else { panic!("nothing runs") };
        let first = run.outcome();
        let Entered::Joined(second) = join() else { panic!("the first runs") };
        let unwanted = running.unwanted("d.c", "createIndexes", &requested);
        drop(first);
        running.left("d.c", "createIndexes", &requested);
        assert!(!*unwanted.borrow());
        drop(second);
        running.left("d.c", "createIndexes", &requested);
        assert!(*unwanted.borrow());
        let Entered::After(given_up) = join() else {
            panic!("its outcome is that of nobody who still waits")
        };
        run.end(Ok(doc! {}));
        assert!(ended(given_up).await.is_some());
        assert!(matches!(join(), Entered::First(_)));
        assert!(!running.end("createIndexes", |_, _| true));
    }

    #[tokio::test]
    async fn who_waits_for_one_that_gives_up_may_be_the_first() {
        let running = Arc::<Running>::default();
        let join = || running.join("d.c", "drop", &doc! {}, true, None).unwrap();
        let (Entered::First(run), Entered::Joined(second)) = (join(), join()) else { panic!("nothing runs") };
        drop(run);
        assert!(ended(second).await.is_none());
        let (Entered::First(mut run), Entered::Joined(second)) = (join(), join()) else {
            panic!("it is gone")
        };
        run.begin();
        drop(run);
        assert_eq!(ended(second).await.unwrap().unwrap_err().code, codes::INTERRUPTED_AT_SHUTDOWN);
    }
}
