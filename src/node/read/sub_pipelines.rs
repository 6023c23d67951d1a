//! Other collections, as the stages of a pipeline on this node read them: the rows of each sub-pipeline, by a number.
//!
//! Rows opened by one command may be read by a later one, a getMore of the pipeline's cursor. They go on with the operation of that: its
//! deadline and its kill count, and the time between the two does not.

use super::host::LocalHost;
use super::rows::Rows;
use crate::Operation;
use crate::exec::Query;
use crate::exec::batch::Documents;
use document::{DocBuf, Result};
use parking_lot::Mutex;
use query::pipeline::Kept;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The rows that are not read to their end.
#[derive(Default)]
pub(crate) struct SubPipelines(Mutex<Numbered>);

#[derive(Default)]
struct Numbered {
    rows: BTreeMap<u64, SubRows>,
    last: u64,
}

struct SubRows {
    rows: Rows,
    /// The operation that has read them last. It names the versions that the router has sent for them.
    op: Arc<Operation>,
}

impl SubPipelines {
    /// About how many bytes their stages and their input hold.
    pub(super) fn held_bytes(&self) -> usize {
        self.0.lock().rows.values().map(|sub| sub.rows.held_bytes()).sum()
    }
    /// Keeps rows that `op` has opened.
    pub(super) fn keep(&self, rows: Rows, op: Arc<Operation>) -> Kept {
        let scans = rows.query().is_some_and(Query::scans);
        let mut kept = self.0.lock();
        kept.last += 1;
        let number = kept.last;
        kept.rows.insert(number, SubRows { rows, op });
        Kept { number, scans }
    }
    /// The next documents of some rows; `None` at the end.
    pub(super) async fn more(&self, host: &LocalHost, number: u64) -> Result<Option<Vec<DocBuf>>> {
        let sub = self.0.lock().rows.remove(&number);
        let Some(mut sub) = sub.filter(|sub| !sub.rows.ended()) else { return Ok(None) };
        sub.go_on_with(host);
        let mut out = Documents::default();
        sub.rows.fill(&host.node, &sub.op, &mut out).await?;
        if !sub.rows.ended() {
            self.0.lock().rows.insert(number, sub);
        } else if out.list.is_empty() {
            return Ok(None);
        }
        Ok(Some(out.list))
    }
    pub(super) fn end(&self, number: u64) {
        let ended = self.0.lock().rows.remove(&number);
        drop(ended);
    }
}

impl SubRows {
    /// Has them read by the operation of the command under way.
    fn go_on_with(&mut self, host: &LocalHost) {
        if self.op.parent.as_ref().is_some_and(|parent| Arc::ptr_eq(parent, &host.op)) {
            return;
        }
        let mut op = host.aside();
        op.received = self.op.received;
        self.op = Arc::new(op);
    }
}
