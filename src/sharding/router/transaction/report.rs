//! What a router shows of its open transactions in `$currentOp`.

use super::{State, Transaction, Transactions};
use document::extended_json::iso_date;
use document::{Document, Value, doc};
use node::transaction::report::idle_row;
use runtime::Instant;

impl Transactions {
    /// The rows of `$currentOp` for transactions between two statements.
    pub fn idle_rows(&self, host: &str) -> Vec<Document> {
        let sessions: Vec<_> = self.sessions.lock().values().cloned().collect();
        let row = |t: &std::sync::Arc<Transaction>| {
            let state = t.state.lock();
            let client = state.progress.as_ref().filter(|p| p.running.is_none())?.client.clone();
            Some(idle_row(host, client.as_deref(), &t.session, state.report()?))
        };
        sessions.iter().filter_map(row).collect()
    }
}

impl Transaction {
    /// The `transaction` member of a row of `$currentOp`; `None` when it has ended.
    pub fn report(&self) -> Option<Document> {
        self.state.lock().report()
    }
}

impl State {
    fn report(&self) -> Option<Document> {
        let progress = self.progress.as_ref().filter(|p| !p.ended)?;
        let (open, active) = (progress.started.elapsed(), progress.active());
        let mut concern = self.read_concern.clone();
        let at = concern.remove("atClusterTime");
        let mut report = doc! { "parameters": {
            "txnNumber": self.number, "autocommit": false, "readConcern": concern,
        } };
        if let Some(at) = at {
            report.push("globalReadTimestamp", at);
        }
        report.push("startWallClockTime", wall_time(progress.started));
        report.push("timeOpenMicros", super::metrics::micros(open));
        report.push("timeActiveMicros", super::metrics::micros(active));
        report.push("timeInactiveMicros", super::metrics::micros(open.saturating_sub(active)));
        self.report_participants(&mut report);
        if let Some((kind, since)) = progress.commit {
            report.push("commitStartWallClockTime", wall_time(since));
            report.push("commitType", kind.name());
        }
        Some(report)
    }

    fn report_participants(&self, report: &mut Document) {
        let listed = self.participants.iter().map(|(shard, p)| {
            let mut shown = doc! { "name": shard.to_string() };
            shown.push("coordinator", self.coordinator.as_ref() == Some(shard));
            if let Some(read_only) = p.read_only {
                shown.push("readOnly", read_only);
            }
            Value::Document(shown)
        });
        let of = |read_only| self.participants.values().filter(|p| p.read_only == Some(read_only)).count();
        report.push("numParticipants", self.participants.len() as i32);
        report.push("participants", listed.collect::<Vec<_>>());
        report.push("numReadOnlyParticipants", of(true) as i32);
        report.push("numNonReadOnlyParticipants", of(false) as i32);
    }
}

/// When it was `then` on the wall clock.
fn wall_time(then: Instant) -> String {
    iso_date(runtime::now_millis() - i64::try_from(then.elapsed().as_millis()).unwrap_or(0))
}
