//! Acknowledgement: what a write waits for before it is answered, and what a read waits for before it starts.
//!
//! On a set of one, majority-committed means durable. Under a log that does not sync, appended counts as durable.

use crate::operation::{Operation, ReadLevel, WriteAck, WriteConcern};
use crate::replication::{Replication, waiting};
use crate::transaction::Area;
use crate::{Node, log_failed};
use document::{Document, Error, Result, Timestamp, bail, codes, doc};
use std::sync::atomic::Ordering;
use std::task::Poll;

/// Ends of a wait after which the write is there, and nobody knows whether it stays: this member stepped down, or a new
/// configuration has no such mode or tag, or too few members.
const LEAVE_OPEN: [i32; 4] = [
    codes::PRIMARY_STEPPED_DOWN,
    codes::UNKNOWN_REPL_WRITE_CONCERN,
    codes::NO_SUCH_KEY,
    codes::UNSATISFIABLE_WRITE_CONCERN,
];

/// `None` where it took longer than the concern's `wtimeout`.
async fn limited<T>(wc: &WriteConcern, wait: impl Future<Output = T>) -> Option<T> {
    match wc.timeout {
        None => Some(wait.await),
        Some(limit) => tokio::time::timeout(limit, wait).await.ok(),
    }
}

impl Node {
    /// Waits as the operation's write concern asks for everything the operation committed. Answers the
    /// `writeConcernError` to show, if any.
    ///
    /// # Errors
    /// A failed log: the write is not acknowledged.
    pub async fn acknowledge(&self, op: &Operation) -> Result<Option<Document>> {
        let default = match op.write_concern.given {
            true => None,
            false => self.replication.default_write_concern(),
        };
        let wc = default.as_ref().unwrap_or(&op.write_concern);
        let provenance = match (op.write_concern.given, &default) {
            (true, _) => "clientSupplied",
            (false, Some(_)) => "customDefault",
            (false, None) => "implicitDefault",
        };
        let implicit = !op.write_concern.given && default.is_none();
        let implicit_majority = implicit && self.is_replica_set() && self.implicit_concern_is_majority();
        let majority = implicit_majority || matches!(wc.w, WriteAck::Majority);
        let waits = self.is_replica_set() && (majority || !matches!(wc.w, WriteAck::Nodes(0 | 1)));
        let began = runtime::Instant::now();
        let _counted = waits.then(|| self.replication.metrics.awaiting_members.enter());
        let done = self.await_concern(op, wc, provenance, majority).await;
        if let Ok(error) = &done
            && waits
        {
            self.replication.metrics.acknowledged(began, error.as_ref(), op.write_concern.given);
        }
        done
    }

    /// Waits as `wc` asks; `majority` is whether that is for the majority.
    async fn await_concern(
        &self,
        op: &Operation,
        wc: &WriteConcern,
        provenance: &str,
        majority: bool,
    ) -> Result<Option<Document>> {
        if let Some(e) = self.refused_concern(wc, provenance) {
            return Ok(Some(e));
        }
        if let Some(held) = self.failpoints.hold(op, "hangBeforeWaitingForWriteConcern", "") {
            held.await?;
        }
        let here = majority || matches!(wc.w, WriteAck::Nodes(0 | 1)) || !self.is_replica_set();
        if self.replication.commit.is_shared() || !here {
            return Box::pin(self.within(op, wc, provenance, self.wait_replicated(op, wc, majority))).await;
        }
        // What this member has is all that is asked for. A write that changed nothing still promises that what it saw is
        // durable.
        if !majority && !wc.needs_durable() {
            self.log.health().map_err(log_failed)?;
            return Ok(None);
        }
        self.within(op, wc, provenance, self.wait_operation_committed(op)).await
    }

    /// Waits as long as the concern and the operation allow; the `writeConcernError` when it took longer, or when the wait ended with
    /// one of `LEAVE_OPEN`. The write stays however that ends.
    async fn within(
        &self,
        op: &Operation,
        wc: &WriteConcern,
        provenance: &str,
        wait: impl Future<Output = Result<()>>,
    ) -> Result<Option<Document>> {
        let mut wait = std::pin::pin!(wait);
        let error = |e: Error| doc! { "code": e.code, "codeName": e.code_name(), "errmsg": e.message };
        // What need not wait is not made to look at clocks.
        let done = match futures::poll!(&mut wait) {
            Poll::Ready(done) => done,
            Poll::Pending => match Box::pin(op.interruptible(limited(wc, wait))).await {
                Ok(Some(done)) => done,
                Ok(None) => return Ok(Some(timed_out(wc, provenance))),
                Err(interrupted) => return Ok(Some(error(interrupted))),
            },
        };
        match done {
            Err(e) if LEAVE_OPEN.contains(&e.code) => Ok(Some(error(e))),
            done => done.map(|()| None),
        }
    }

    fn refused_concern(&self, wc: &WriteConcern, provenance: &str) -> Option<Document> {
        // What nearly every write asks for can always be met.
        if matches!(wc.w, WriteAck::Nodes(0 | 1) | WriteAck::Majority) || !self.is_replica_set() {
            return None;
        }
        let refused = self.check_satisfiable(wc).err()?;
        Some(doc! { "code": refused.code, "codeName": refused.code_name(), "errmsg": refused.message,
        "errInfo": waiting::shown(wc, provenance) })
    }

    /// Refuses write concerns that cannot be met by this kind of node before anything is written.
    ///
    /// # Errors
    /// BadValue (2) on a standalone asked for more than one node or for a tag.
    pub fn check_write_concern(&self, op: &Operation) -> Result<()> {
        if self.is_replica_set() {
            return Ok(());
        }
        match &op.write_concern.w {
            WriteAck::Nodes(n) if *n > 1 => {
                bail!(BAD_VALUE, "cannot use 'w' > 1 when a host is not replicated")
            }
            // Tags given as numbers are looked up in a set's configuration only: a node without one ignores them.
            WriteAck::Tags(_) => Ok(()),
            WriteAck::Mode(_) => bail!(
                BAD_VALUE,
                "cannot use non-majority 'w' mode when a host is not a member of a replica set"
            ),
            _ => Ok(()),
        }
    }

    /// `operationTime` of the reply to an operation: when it wrote; else no earlier than what it can have read, which for level
    /// majority is the commit point.
    pub fn operation_time(&self, op: &Operation) -> Timestamp {
        let optime = match op.committed_optime() {
            Some(written) => written,
            None if self.read_level(op) == ReadLevel::Majority => self.committed(),
            None => self.log.last_optime(),
        };
        Timestamp::from_u64(optime.ts)
    }

    /// The level a read asks for, or the default of clients' reads.
    pub(crate) fn read_level(&self, op: &Operation) -> ReadLevel {
        let rc = &op.read_concern;
        match rc.level_given || op.client.internal.load(Ordering::Relaxed) {
            true => rc.level,
            false => self.replication.default_read_level().unwrap_or(rc.level),
        }
    }

    /// Waits until what a read has read is committed, where its read concern promises so. What was durable when the read
    /// began is not enough: it may have read what was appended since. And a linearizable read shows what others were told
    /// is written only if this member still led when it read, which is known when an entry written afterwards is committed.
    ///
    /// # Errors
    /// Interrupts, a failed log; NotWritablePrimary (10107), PrimarySteppedDown (189) where another has begun to lead;
    /// InterruptedDueToReplStateChange (11602) where a rollback may have taken back what was read.
    pub async fn await_read_committed(&self, op: &Operation) -> Result<()> {
        self.await_level_committed(op, self.read_level(op)).await
    }

    /// The same for a read whose level is known: a later batch of a cursor names none.
    pub(crate) async fn await_level_committed(&self, op: &Operation, level: ReadLevel) -> Result<()> {
        if matches!(level, ReadLevel::Local | ReadLevel::Available) || !self.is_replica_set() {
            return Ok(());
        }
        if op.transaction().is_none() {
            if level == ReadLevel::Linearizable {
                self.failpoints.pause_operation(op, "hangBeforeLinearizableReadConcern", "").await?;
                self.append_noop(doc! { "msg": "linearizable read" })?;
            }
            op.interruptible(self.wait_all_committed()).await??;
        }
        match op.read_before(self.past.edition()) {
            true => Err(Replication::rolled_back()),
            false => Ok(()),
        }
    }

    /// As [`Node::await_read_concern`], for a read of the area outside transactions that is not given a moment of its own.
    ///
    /// # Errors
    /// The same.
    pub(crate) async fn await_readable(&self, op: &Operation, area: Area<'_>) -> Result<()> {
        self.await_read_concern(op).await?;
        let until = match op.read_concern.after_cluster_time {
            // What its reader has seen elsewhere may be of a transaction that is prepared here.
            Some(after) => after,
            None if op.read_concern.level == ReadLevel::Linearizable => Timestamp::MAX,
            None => return Ok(()),
        };
        let internal = match area {
            Area::All => false,
            Area::Database(db) => document::is_internal_database(db),
            Area::Collection(ns) => document::is_internal_database(storage::split_namespace(ns).0),
        };
        if op.transaction().is_some() || internal {
            return Ok(());
        }
        Box::pin(self.wait_prepared(op, area, until)).await
    }

    /// Waits until a read of the operation's read concern may start.
    ///
    /// # Errors
    /// NotAReplicaSet-like refusals (123, 72), interrupts, a failed log.
    pub async fn await_read_concern(&self, op: &Operation) -> Result<()> {
        let (rc, level) = (&op.read_concern, self.read_level(op));
        // A transaction's was heeded when it began.
        if (!rc.given && level == ReadLevel::Local) || op.transaction().is_some() {
            return Ok(());
        }
        self.await_named_times(op).await?;
        self.check_possible(level)?;
        match level {
            ReadLevel::Local | ReadLevel::Available => Ok(()),
            // What was appended by now is what the read may see; it is committed once durable.
            _ if self.is_replica_set() => op.interruptible(self.wait_all_committed()).await?,
            _ => Ok(()),
        }
    }

    /// Whether this node answers reads of a level.
    ///
    /// # Errors
    /// NotAReplicaSet (123), NotWritablePrimary (10107).
    pub(crate) fn check_possible(&self, level: ReadLevel) -> Result<()> {
        match level {
            ReadLevel::Linearizable | ReadLevel::Snapshot if !self.is_replica_set() => {
                bail!(NOT_A_REPLICA_SET, "node needs to be a replica set member to use read concern")
            }
            ReadLevel::Linearizable if !self.is_writable() => {
                bail!(NOT_WRITABLE_PRIMARY, "cannot satisfy linearizable read concern on non-primary node")
            }
            _ => Ok(()),
        }
    }

    /// Waits until this node has come to the times that a read names.
    ///
    /// # Errors
    /// IllegalOperation (20), InvalidOptions (72), NotAReplicaSet (123), interrupts.
    pub(crate) async fn await_named_times(&self, op: &Operation) -> Result<()> {
        let rc = &op.read_concern;
        if let Some(after) = rc.after_cluster_time {
            if !self.is_replica_set() {
                bail!(ILLEGAL_OPERATION, "Cannot specify afterClusterTime readConcern without replica set");
            }
            if after.as_u64() == 0 {
                bail!(INVALID_OPTIONS, "afterClusterTime cannot be a null timestamp");
            }
            // A time that nobody can have seen yet is a mistake.
            let now = self.cluster_time();
            if after > now {
                bail!(
                    INVALID_OPTIONS,
                    "readConcern afterClusterTime value must not be greater than the current clusterTime. Requested clusterTime: \
                     {{ ts: Timestamp({}, {}) }}; current clusterTime: {{ ts: Timestamp({}, {}) }}",
                    after.secs,
                    after.inc,
                    now.secs,
                    now.inc
                );
            }
            // Other nodes have brought a time at which this one has written nothing. With an entry behind it, what is read
            // here is known to be as of then, and so says the reply's operationTime.
            if after.as_u64() > self.log.last_optime().ts && self.replication.is_primary() {
                self.append_noop(doc! { "msg": "a read waits for this time" })?;
            }
        }
        if let Some(after) = rc.after_cluster_time
            && !self.is_writable()
        {
            self.wait_applied(op, after).await?;
        }
        if let Some(after) = rc.after_op_time {
            if !self.is_replica_set() {
                bail!(NOT_A_REPLICA_SET, "node needs to be a replica set member to use read concern");
            }
            Box::pin(self.wait_applied(op, after)).await?;
        }
        Ok(())
    }
}

fn timed_out(wc: &WriteConcern, provenance: &str) -> Document {
    let mut info = doc! { "wtimeout": true };
    info.0.extend(waiting::shown(wc, provenance).0);
    doc! { "code": codes::WRITE_CONCERN_FAILED, "codeName": "WriteConcernFailed", "errmsg": "waiting for replication timed out", "errInfo": info }
}
