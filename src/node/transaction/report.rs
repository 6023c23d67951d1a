//! What is shown of transactions: `serverStatus.transactions`, the `transaction` member of `$currentOp`.

use super::Transaction;
use crate::Node;
use crate::operation::ReadLevel;
use document::{Document, Value, doc};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Transactions since the node was started.
#[derive(Default)]
pub struct Totals {
    pub started: AtomicI64,
    pub committed: AtomicI64,
    pub aborted: AtomicI64,
    pub prepared: AtomicI64,
    pub prepared_then_committed: AtomicI64,
    pub prepared_then_aborted: AtomicI64,
}

impl Node {
    /// `serverStatus.transactions`.
    pub fn transaction_status(&self) -> Document {
        let open = self.transactions.open();
        let active = open.iter().filter(|t| t.is_active()).count() as i64;
        let prepared = open.iter().filter(|t| t.is_prepared()).count() as i64;
        let totals = &self.transactions.totals;
        let total = |n: &AtomicI64| n.load(Ordering::Relaxed);
        doc! {
            "currentActive": active, "currentInactive": open.len() as i64 - active, "currentOpen": open.len() as i64,
            "totalAborted": total(&totals.aborted), "totalCommitted": total(&totals.committed),
            "totalStarted": total(&totals.started), "totalPrepared": total(&totals.prepared),
            "totalPreparedThenCommitted": total(&totals.prepared_then_committed),
            "totalPreparedThenAborted": total(&totals.prepared_then_aborted), "currentPrepared": prepared,
        }
    }

    /// The rows of `$currentOp` for transactions between two statements.
    pub fn idle_transactions(&self, host: &str) -> Vec<Document> {
        let idle = self.transactions.open().into_iter().filter(|t| !t.is_active());
        idle.map(|t| {
            doc! {
                "type": "idleSession", "host": host, "desc": "inactive transaction", "lsid": t.session.to_document(),
                "transaction": t.report(), "waitingForLock": false, "active": false,
            }
        })
        .collect()
    }
}

impl Transaction {
    fn is_active(&self) -> bool {
        self.running.lock().strong_count() > 0
    }

    /// The `transaction` member of `$currentOp`.
    pub fn report(self: &Arc<Self>) -> Document {
        let level = match self.read_concern.level {
            ReadLevel::Majority => "majority",
            ReadLevel::Snapshot => "snapshot",
            _ => "local",
        };
        let open = self.started.elapsed().as_micros() as i64;
        let active = (self.active_micros.load(Ordering::Relaxed) as i64).min(open);
        let mut report = doc! {
            "parameters": { "txnNumber": self.number, "autocommit": false, "readConcern": { "level": level } },
            "readTimestamp": document::Timestamp::from_u64(self.moment.as_ref().map_or(0, |m| m.ts())),
            "startWallClockTime": Value::DateTime(self.started_ms),
            "timeOpenMicros": open, "timeActiveMicros": active, "timeInactiveMicros": open - active,
        };
        if let Some(prepared) = self.state.lock().prepared {
            report.push("timePreparedMicros", prepared.since.elapsed().as_micros() as i64);
        } else {
            report.push("expiryTime", Value::DateTime(self.expires_ms));
        }
        report
    }
}
