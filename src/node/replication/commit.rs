//! What is majority-committed, and how to wait for it. Everything that owes durability asks here and not the log.
//!
//! On a standalone and in a set whose majority is this member alone, committed means durable: the log answers, at no cost
//! beyond its own. In any other set the commit point comes from the members' positions: the primary computes it, the
//! others learn it (`super::driver`).
//!
//! Only optimes mean the same on every member: log positions count frames of class local too, and differ.
//!
//! Invariant: the commit point never falls.

use super::Replication;
use crate::{Node, Operation, log_failed};
use document::{Result, Timestamp, err};
use std::sync::atomic::{AtomicBool, Ordering};
use storage::log::{Appended, OpTime, Position};
use tokio::sync::watch;

/// The order of optimes: by term, then by timestamp.
pub fn order(t: OpTime) -> (i64, u64) {
    (t.term, t.ts)
}

/// The commit point of a node.
pub struct CommitPoint {
    /// Other members have a say in what is committed.
    shared: AtomicBool,
    /// A write that names no concern needs fewer than a majority: an arbiter would make that fragile.
    implicit_is_one: AtomicBool,
    point: watch::Sender<OpTime>,
    /// Rises whenever a reign of this node ends: writes that wait then cannot know their outcome.
    reigns_ended: watch::Sender<u64>,
}

impl Default for CommitPoint {
    fn default() -> Self {
        let nothing = OpTime { ts: 0, term: -1 };
        CommitPoint {
            shared: AtomicBool::new(false),
            implicit_is_one: AtomicBool::new(false),
            point: watch::Sender::new(nothing),
            reigns_ended: watch::Sender::new(0),
        }
    }
}

impl CommitPoint {
    pub fn set_shared(&self, shared: bool) {
        self.shared.store(shared, Ordering::SeqCst);
    }
    pub(super) fn set_implicit_is_one(&self, one: bool) {
        self.implicit_is_one.store(one, Ordering::SeqCst);
    }
    pub(super) fn implicit_is_one(&self) -> bool {
        self.implicit_is_one.load(Ordering::Relaxed)
    }
    pub fn is_shared(&self) -> bool {
        self.shared.load(Ordering::Acquire)
    }
    /// Raises the commit point; a lower one changes nothing.
    pub fn advance(&self, to: OpTime) {
        self.point.send_if_modified(|point| {
            let rises = order(to) > order(*point);
            if rises {
                *point = to;
            }
            rises
        });
    }
    /// Ends what waits for, or works in, the reign of this node. Called by its driver, and by tests.
    pub fn end_reign(&self) {
        self.reigns_ended.send_modify(|n| *n += 1);
    }
    /// A receiver that sees every rise, in a set of several.
    pub fn subscribe(&self) -> watch::Receiver<OpTime> {
        self.point.subscribe()
    }
    /// A receiver that sees the end of each reign from now on.
    pub(crate) fn reigns(&self) -> watch::Receiver<u64> {
        self.reigns_ended.subscribe()
    }
    /// A receiver that sees the end of the reign in which an operation wrote. `None`: the operation did not write.
    ///
    /// # Errors
    /// PrimarySteppedDown (189) when it has ended.
    pub(crate) fn reign(&self, noted: Option<u64>) -> Result<watch::Receiver<u64>> {
        let mut reigns = self.reigns_ended.subscribe();
        let ended = *reigns.borrow_and_update();
        match noted.is_none_or(|noted| noted == ended) {
            true => Ok(reigns),
            false => Err(Replication::stepped_down()),
        }
    }
    fn value(&self) -> OpTime {
        *self.point.borrow()
    }
}

impl Replication {
    /// The error of a read that a rollback has overtaken.
    pub fn rolled_back() -> document::Error {
        err!(INTERRUPTED_DUE_TO_REPL_STATE_CHANGE, "what was read may have been rolled back")
    }
    /// The error of a write whose waiting was ended by a step-down.
    pub fn stepped_down() -> document::Error {
        err!(PRIMARY_STEPPED_DOWN, "Primary stepped down while waiting for replication")
    }
}

impl Node {
    /// How many reigns of this node have ended. To be read before it is asked whether the node may write.
    pub fn reigns_ended(&self) -> u64 {
        *self.replication.commit.reigns_ended.borrow()
    }

    /// Remembers what a commit of the operation has appended. To be called under the gate.
    pub(crate) fn note_commit(&self, op: &Operation, appended: &Appended) {
        op.note_reign(self.reigns_ended());
        op.note_commit(appended);
    }

    /// Runs what must not outlive the reign in which the operation began: a later one has taken up elsewhere what it was for.
    ///
    /// # Errors
    /// PrimarySteppedDown (189) when that reign has ended; `work` is dropped then.
    pub async fn while_reign_lasts<T>(
        &self,
        op: &Operation,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let mut reigns = self.replication.commit.reign(op.reign())?;
        tokio::select! {
            biased;
            _ = reigns.changed() => Err(Replication::stepped_down()),
            done = work => done,
        }
    }

    /// Whether an optime is majority-committed.
    pub(crate) fn is_committed(&self, optime: OpTime) -> bool {
        order(self.committed()) >= order(optime)
    }
    /// The newest optime that is majority-committed: no election and no rollback takes it away.
    pub fn committed(&self) -> OpTime {
        match self.replication.commit.is_shared() {
            false => self.log.durable_optime(),
            true => self.replication.commit.value(),
        }
    }

    /// Waits until what the operation wrote is majority-committed; where it wrote nothing, until what it can have seen is.
    ///
    /// # Errors
    /// A failed log; PrimarySteppedDown (189) when this member has ceased to be the primary that it was when the operation began to
    /// write: what was written then may be rolled back.
    pub async fn wait_operation_committed(&self, op: &Operation) -> Result<()> {
        let position = op.committed_position().unwrap_or_else(|| self.log.appended());
        let optime = op.committed_optime().unwrap_or_else(|| self.log.last_optime());
        Box::pin(self.wait_committed_optime(optime, position, op.reign())).await
    }

    /// Waits until everything appended by now is majority-committed, on behalf of an operation that has written some of it, or has
    /// found it done.
    ///
    /// # Errors
    /// As [`Node::wait_operation_committed`].
    pub async fn wait_all_committed_for(&self, op: &Operation) -> Result<()> {
        self.wait_newest_committed(op.reign()).await
    }

    /// Waits until the commit point is at a time, or beyond, for a read that has begun.
    ///
    /// # Errors
    /// Interrupts; InterruptedDueToReplStateChange (11602) after a rollback: what the time was of may be gone, and perhaps no entry
    /// of that time comes here again.
    pub(crate) async fn await_commit_point(&self, op: &Operation, time: Timestamp) -> Result<()> {
        let commit = &self.replication.commit;
        if !commit.is_shared() {
            return op.interruptible(self.wait_all_committed()).await?;
        }
        let (mut points, mut editions) = (commit.subscribe(), self.past.editions());
        let reached = async {
            tokio::select! {
                biased;
                _ = points.wait_for(|point| point.ts >= time.as_u64()) => Ok(()),
                _ = editions.wait_for(|edition| op.read_before(*edition)) => Err(Replication::rolled_back()),
            }
        };
        op.interruptible(reached).await?
    }

    /// Waits until everything appended by now is majority-committed, on behalf of who has only read it.
    ///
    /// # Errors
    /// A failed log; PrimarySteppedDown (189) when this member stops being primary before.
    pub async fn wait_all_committed(&self) -> Result<()> {
        self.wait_newest_committed(None).await
    }

    async fn wait_newest_committed(&self, reign: Option<u64>) -> Result<()> {
        let (optime, position) = (self.log.last_optime(), self.log.appended());
        Box::pin(self.wait_committed_optime(optime, position, reign)).await
    }

    async fn wait_committed_optime(
        &self,
        optime: OpTime,
        position: Position,
        reign: Option<u64>,
    ) -> Result<()> {
        let commit = &self.replication.commit;
        if !commit.is_shared() {
            return self.log.wait_durable(position).await.map_err(log_failed);
        }
        let mut reigns = commit.reign(reign)?;
        let leads = reign.is_some() || self.replication.look(|m| m.is_leader());
        self.log.wait_durable(position).await.map_err(log_failed)?;
        self.count_own_log();
        let mut points = commit.subscribe();
        // The sender lives as long as the node. A commit point of a later term says nothing of an entry of this one: it may
        // have been rolled back.
        let reached = async {
            let point = points.wait_for(|point| order(*point) >= order(optime)).await;
            !leads || point.is_ok_and(|point| point.term == optime.term)
        };
        tokio::select! {
            biased;
            same_term = reached => if same_term { Ok(()) } else { Err(Replication::stepped_down()) },
            _ = reigns.changed() => Err(Replication::stepped_down()),
        }
    }
}
