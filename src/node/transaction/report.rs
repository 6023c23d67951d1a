//! What is shown of transactions: `serverStatus.transactions`, the `transaction` member of `$currentOp`, and the account that
//! is logged when a slow one ends.

use super::Transaction;
use crate::Node;
use crate::operation::{ClientInfo, Operation, ReadConcern, ReadLevel, SessionId};
use document::extended_json::iso_date;
use document::{Document, Timestamp, doc};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// Transactions since the node was started.
#[derive(Default)]
pub struct Totals {
    pub started: AtomicI64,
    pub committed: AtomicI64,
    pub aborted: AtomicI64,
    pub prepared: AtomicI64,
    pub prepared_then_committed: AtomicI64,
    pub prepared_then_aborted: AtomicI64,
    last_committed: Mutex<Option<Document>>,
}

/// What a transaction's commands have left behind.
#[derive(Default)]
pub(super) struct Seen {
    active_micros: AtomicU64,
    keys_examined: AtomicU64,
    docs_examined: AtomicU64,
    /// The client that used it last.
    client: Mutex<Option<Arc<ClientInfo>>>,
}

impl Seen {
    pub(super) fn use_by(&self, op: &Operation) {
        *self.client.lock() = Some(op.client.clone());
    }
    /// A command has ended that ran for so long.
    pub(super) fn stop(&self, active: Duration, op: Option<&Operation>) {
        self.active_micros.fetch_add(active.as_micros() as u64, Ordering::Relaxed);
        let (keys, docs) = op.map(Operation::examined).unwrap_or_default();
        self.keys_examined.fetch_add(keys, Ordering::Relaxed);
        self.docs_examined.fetch_add(docs, Ordering::Relaxed);
    }
}

impl Node {
    /// Tells of a transaction that has ended, while its changes are still known.
    pub(super) fn tell_end(&self, t: &Transaction, committed: bool) {
        let Some(hooks) = self.hooks.read().clone() else { return };
        let connection = t.seen.client.lock().as_ref().map_or(0, |client| client.connection_id);
        let open = t.started.elapsed();
        hooks.transaction_ended(open, connection, &|| t.account(committed, open));
    }

    /// `serverStatus.transactions`.
    pub fn transaction_status(&self) -> Document {
        let open = self.transactions.open();
        let active = open.iter().filter(|t| t.is_active()).count() as i64;
        let prepared = open.iter().filter(|t| t.is_prepared()).count() as i64;
        let (totals, sessions) = (&self.transactions.totals, &self.sessions.counts);
        let total = |n: &AtomicI64| n.load(Ordering::Relaxed);
        let mut status = doc! {
            "retriedCommandsCount": total(&sessions.retried_commands),
            "retriedStatementsCount": total(&sessions.retried_statements),
            "transactionsCollectionWriteCount": total(&sessions.changes),
            "currentActive": active, "currentInactive": open.len() as i64 - active, "currentOpen": open.len() as i64,
            "totalAborted": total(&totals.aborted), "totalCommitted": total(&totals.committed),
            "totalStarted": total(&totals.started), "totalPrepared": total(&totals.prepared),
            "totalPreparedThenCommitted": total(&totals.prepared_then_committed),
            "totalPreparedThenAborted": total(&totals.prepared_then_aborted), "currentPrepared": prepared,
        };
        if let Some(last) = &*totals.last_committed.lock() {
            status.push("lastCommittedTransaction", last.clone());
        }
        status
    }

    /// Notes a transaction that commits, while its changes are still known.
    pub(super) fn note_committed(&self, t: &Transaction, op: &Operation) {
        let state = t.state.lock();
        let bytes: usize = state.writes.iter().map(|w| w.bytes().len()).sum();
        let mut concern = op.write_concern.to_document();
        concern.push("provenance", if op.write_concern.given { "clientSupplied" } else { "implicitDefault" });
        let last = doc! {
            "operationCount": state.writes.len() as i64, "oplogOperationBytes": bytes as i64, "writeConcern": concern,
        };
        drop(state);
        *self.transactions.totals.last_committed.lock() = Some(last);
    }

    /// The rows of `$currentOp` for transactions between two statements.
    pub fn idle_transactions(&self, host: &str) -> Vec<Document> {
        let idle = self.transactions.open().into_iter().filter(|t| !t.is_active());
        idle.map(|t| idle_row(host, t.seen.client.lock().as_deref(), &t.session, t.report())).collect()
    }
}

/// The row of `$currentOp` for a session whose transaction waits for its next statement. `client` is the one that used it last.
pub fn idle_row(host: &str, client: Option<&ClientInfo>, id: &SessionId, transaction: Document) -> Document {
    let mut row = doc! { "type": "idleSession", "host": host, "desc": "inactive transaction" };
    if let Some(client) = client {
        client.describe(&mut row);
    }
    row.push("lsid", id.to_document());
    row.push("transaction", transaction);
    row.push("waitingForLock", false);
    row.push("active", false);
    row.push("locks", Document::new());
    row
}

/// The read concern of a transaction as reports show it.
fn shown_concern(concern: &ReadConcern) -> Document {
    let level = match concern.level {
        ReadLevel::Majority => "majority",
        ReadLevel::Snapshot => "snapshot",
        _ => "local",
    };
    let mut shown = doc! { "level": level };
    for (name, time) in
        [("afterClusterTime", concern.after_cluster_time), ("atClusterTime", concern.at_cluster_time)]
    {
        if let Some(time) = time {
            shown.push(name, time);
        }
    }
    shown.push("provenance", if concern.given { "clientSupplied" } else { "implicitDefault" });
    shown
}

impl Transaction {
    fn is_active(&self) -> bool {
        self.running.lock().strong_count() > 0
    }

    fn read_timestamp(&self) -> Timestamp {
        Timestamp::from_u64(self.moment.as_ref().map_or(0, |m| m.ts()))
    }

    /// For how long commands of it have run, the one under way included.
    fn active_micros(&self, open: i64) -> i64 {
        let now = self.running.lock().upgrade().map_or(Duration::ZERO, |op| op.started.elapsed());
        let before = self.seen.active_micros.load(Ordering::Relaxed);
        (before.saturating_add(now.as_micros() as u64) as i64).min(open)
    }

    /// The attributes of the log line about it, `open` after its first statement.
    fn account(&self, committed: bool, open: Duration) -> Document {
        let (at, open_micros) = (self.read_timestamp(), open.as_micros() as i64);
        let active = self.active_micros(open_micros);
        let mut account = doc! {
            "parameters": {
                "lsid": self.session.to_document(), "txnNumber": self.number, "autocommit": false,
                "readConcern": shown_concern(&self.read_concern),
            },
            "readTimestamp": format!("Timestamp({}, {})", at.secs, at.inc),
            "keysExamined": self.seen.keys_examined.load(Ordering::Relaxed) as i64,
            "docsExamined": self.seen.docs_examined.load(Ordering::Relaxed) as i64,
        };
        let state = self.state.lock();
        for (name, op) in [("ninserted", "i"), ("nModified", "u"), ("ndeleted", "d")] {
            let changes = state.writes.iter().filter(|w| w.doc().get_str("op") == Some(op)).count();
            if changes > 0 {
                account.push(name, changes as i64);
            }
        }
        account.push("terminationCause", if committed { "committed" } else { "aborted" });
        account.push("timeActiveMicros", active);
        account.push("timeInactiveMicros", open_micros - active);
        account.push("wasPrepared", state.prepared.is_some());
        if let Some(prepared) = &state.prepared {
            account.push("totalPreparedDurationMicros", prepared.since.elapsed().as_micros() as i64);
            let at = doc! { "ts": Timestamp::from_u64(prepared.at.ts), "t": prepared.at.term };
            account.push("prepareOpTime", at);
        }
        account.push("durationMillis", open.as_millis() as i64);
        account
    }

    /// The `transaction` member of `$currentOp`.
    pub fn report(self: &Arc<Self>) -> Document {
        let open = self.started.elapsed().as_micros() as i64;
        let active = self.active_micros(open);
        let mut report = doc! {
            "parameters": {
                "txnNumber": self.number, "autocommit": false, "readConcern": shown_concern(&self.read_concern),
            },
            "readTimestamp": self.read_timestamp(), "startWallClockTime": iso_date(self.started_ms),
            "timeOpenMicros": open, "timeActiveMicros": active, "timeInactiveMicros": open - active,
        };
        if let Some(prepared) = self.state.lock().prepared {
            report.push("timePreparedMicros", prepared.since.elapsed().as_micros() as i64);
        } else {
            report.push("expiryTime", iso_date(self.expires_ms));
        }
        report
    }
}
