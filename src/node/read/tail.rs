//! Tailable cursors: over a capped collection or the oplog, in the order of insertion, going on when more is inserted.
//!
//! A batch may be empty without the cursor having ended. A cursor that awaits data holds an empty batch back for a while.
//! What overtakes a reader of a capped collection ends its cursor: it could not say what it has missed.

use super::find::FindCommand;
use super::rows::dropped;
use crate::exec::Output;
use crate::namespace::Slot;
use crate::oplog_view::OplogRows;
use crate::{Node, Operation, log_failed};
use document::{Doc, Result, bail};
use query::matcher::Matcher;
use query::projection::Projection;
use runtime::Instant;
use std::pin::pin;
use std::time::Duration;
use storage::log::{LogError, Position};
use storage::{CollectionView, RecordId};

/// How long a cursor that awaits data waits where its getMore does not say.
pub const AWAIT_DEFAULT: Duration = Duration::from_secs(1);
/// The longest that one slice keeps the latch.
const SLICE_TIME_MAX: Duration = Duration::from_millis(1);

/// The rows of a tailable cursor.
pub struct TailRows {
    source: Source,
    pub await_data: bool,
}

enum Source {
    Capped(Box<Capped>),
    Oplog(Box<OplogRows>),
}

struct Capped {
    ns: String,
    uuid: [u8; 16],
    filter: Matcher,
    projection: Option<Projection>,
    /// Matches still to be passed over, and still to be given where they are limited.
    skip: u64,
    left: Option<u64>,
    /// The last record looked at; `None`: the collection was empty, and the cursor has ended.
    last: Option<RecordId>,
    started: bool,
}

impl TailRows {
    pub fn of_oplog(rows: OplogRows, await_data: bool) -> TailRows {
        TailRows { source: Source::Oplog(Box::new(rows)), await_data }
    }
    /// On the capped collection of the namespace; `None` when there is nothing of this name.
    ///
    /// # Errors
    /// BadValue (2) on a collection that is not capped, InvalidPipelineOperator (168) on a view.
    pub async fn of_capped(
        op: &Operation,
        slot: &Slot,
        filter: Matcher,
        projection: Option<Projection>,
        command: &FindCommand<'_>,
    ) -> Result<Option<TailRows>> {
        let found = slot.read(op, |state| {
            if state.view.is_some() {
                bail!(INVALID_PIPELINE_OPERATOR, "Option not supported on views.");
            }
            let Some(collection) = &state.collection else { return Ok(None) };
            if state.capped.is_none() {
                bail!(
                    BAD_VALUE,
                    "error processing query: ns={} tailable cursor requested on non capped collection",
                    slot.ns
                );
            }
            Ok(Some((collection.uuid(), collection.is_empty())))
        });
        let Some((uuid, is_empty)) = found.await? else { return Ok(None) };
        let last = Some(RecordId::MIN).filter(|_| !is_empty);
        let (skip, left) = (command.skip, Some(command.limit).filter(|limit| *limit > 0));
        let capped =
            Capped { ns: slot.ns.clone(), uuid, filter, projection, skip, left, last, started: false };
        Ok(Some(TailRows { source: Source::Capped(Box::new(capped)), await_data: command.await_data }))
    }

    /// Only a cursor on what was empty ends by itself; one that has given all it may stays open and gives nothing more.
    pub fn ended(&self) -> bool {
        matches!(&self.source, Source::Capped(c) if c.last.is_none())
    }
    pub fn uuid(&self) -> Option<[u8; 16]> {
        match &self.source {
            Source::Capped(c) => Some(c.uuid),
            Source::Oplog(_) => None,
        }
    }
    /// Puts into `out` what there is now.
    pub async fn fill(&mut self, node: &Node, op: &Operation, out: &mut dyn Output) -> Result<()> {
        match &mut self.source {
            Source::Oplog(rows) => {
                rows.go_on(node.log.appended());
                rows.fill(op, out).await
            }
            Source::Capped(capped) => {
                while !out.is_full() && capped.slice(node, out)? {
                    op.check_interrupt()?;
                    tokio::task::yield_now().await;
                }
                Ok(())
            }
        }
    }
    /// Waits until something was written after what was `seen`, to the collection where it follows one, or until the time is up.
    ///
    /// # Errors
    /// Interrupts, and a log that takes nothing any more.
    pub async fn await_news(
        &self,
        node: &Node,
        op: &Operation,
        seen: Position,
        until: Instant,
    ) -> Result<()> {
        if let Source::Capped(capped) = &self.source {
            let slot = node.namespaces.slot(&capped.ns);
            let mut written = pin!(slot.written.notified());
            // From here on a change wakes it; what came before is looked for.
            written.as_mut().enable();
            if !capped.has_news(&slot) {
                drop(op.interruptible(Box::pin(tokio::time::timeout_at(until, written))).await?);
            }
            return Ok(());
        }
        let news = node.log.wait_appended(seen);
        match op.interruptible(Box::pin(tokio::time::timeout_at(until, news))).await? {
            Ok(Err(e)) if !matches!(e, LogError::Truncated { .. }) => Err(log_failed(e)),
            _ => Ok(()),
        }
    }
}

impl Capped {
    /// Whether a slice would do anything now.
    fn has_news(&self, slot: &Slot) -> bool {
        let state = slot.read_unchecked();
        let Some(collection) = state.collection.as_ref().filter(|c| c.uuid() == self.uuid) else {
            return true;
        };
        let Some(last) = self.last.filter(|_| self.left != Some(0)) else { return false };
        let mut records = collection.records();
        match self.started {
            false => records.first().is_some(),
            true => match records.seek(last) {
                Some((record, _)) if record == last => records.next().is_some(),
                _ => true,
            },
        }
    }
    /// One latch; whether there may be more now.
    fn slice(&mut self, node: &Node, out: &mut dyn Output) -> Result<bool> {
        let Some(last) = self.last else { return Ok(false) };
        let slot = node.namespaces.slot(&self.ns);
        let state = slot.read_unchecked();
        let collection = state.collection.as_ref().filter(|c| c.uuid() == self.uuid);
        let collection = collection.ok_or_else(|| dropped(self.uuid))?;
        let mut records = collection.records();
        let mut next = match self.started {
            false => records.first(),
            true => match records.seek(last) {
                Some((record, _)) if record == last => records.next(),
                _ => bail!(
                    CAPPED_POSITION_LOST,
                    "CollectionScan died due to position in capped collection being deleted. Last seen record id: {last:?}"
                ),
            },
        };
        let begun = Instant::now();
        while let Some((record, doc)) = next {
            if self.left == Some(0) || out.is_full() || !self.take(doc, out)? {
                return Ok(false);
            }
            (self.last, self.started) = (Some(record), true);
            if begun.elapsed() > SLICE_TIME_MAX {
                return Ok(true);
            }
            next = records.next();
        }
        Ok(false)
    }
    /// False when there is no room for the document.
    fn take(&mut self, doc: Doc<'_>, out: &mut dyn Output) -> Result<bool> {
        if !self.filter.matches(doc)? {
            return Ok(true);
        }
        if self.skip > 0 {
            self.skip -= 1;
            return Ok(true);
        }
        let taken = match &self.projection {
            None => out.put(doc)?,
            Some(p) => out.put_with(&mut |bytes| p.apply(doc, bytes))?,
        };
        if taken && let Some(left) = &mut self.left {
            *left -= 1;
        }
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::LocalClient;
    use crate::replication::testing;
    use document::doc;
    use futures::FutureExt;

    #[tokio::test]
    async fn only_what_is_written_to_its_own_collection_wakes_a_tailing_cursor() {
        let node = testing::node(None);
        let local = LocalClient::new(node.clone());
        let options = doc! { "capped": true, "size": 100_000 };
        let op = Operation::internal();
        crate::ddl::collections::create_collection(&node, &op, "d.c", options, None).await.unwrap();
        local.insert("d.c", &doc! { "_id": 0 }).await.unwrap();
        local.ensure_collection("d.other", &[]).await.unwrap();
        let (uuid, last) = {
            let slot = node.namespaces.slot("d.c");
            let state = slot.read_unchecked();
            let collection = state.collection.as_ref().unwrap();
            (collection.uuid(), collection.records().first().map(|(record, _)| record))
        };
        let all = doc! {}.to_doc_buf();
        let filter = Matcher::parse_plain(all.doc(), &query::QueryContext::at(0)).unwrap();
        let capped = Capped {
            ns: "d.c".to_string(),
            uuid,
            filter,
            projection: None,
            skip: 0,
            left: None,
            last,
            started: true,
        };
        let rows = TailRows { source: Source::Capped(Box::new(capped)), await_data: true };
        let far = Instant::now() + Duration::from_secs(600);
        let waits = || Box::pin(rows.await_news(&node, &op, node.log.appended(), far));
        let mut waiting = waits();
        assert!(waiting.as_mut().now_or_never().is_none());
        local.put("d.other", &doc! { "_id": 1 }).await.unwrap();
        assert!(waiting.as_mut().now_or_never().is_none(), "that is another's");
        local.insert("d.c", &doc! { "_id": 1 }).await.unwrap();
        waiting.await.unwrap();
        // What came before it waits is news, too.
        waits().await.unwrap();
    }
}
