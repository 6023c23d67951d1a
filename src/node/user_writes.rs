//! The block of user writes: what `setUserWriteBlockMode` has asked for.
//!
//! It is a document of `config.user_writes_critical_sections`, so that it survives restarts and is the next primary's too; what is here is
//! a copy in memory, renewed by an observer of that collection. A commit looks at it under the gate: after the gate was held alone once, no
//! commit is under way that has not seen it. Blocked is what clients change outside `admin`, `config` and `local`; what the servers change by
//! themselves is not, nor the end of a transaction.

use crate::local::LocalClient;
use crate::observer::WriteObserver;
use crate::{Node, Operation};
use document::{Doc, Document, Result, Value, ValueRef, bail, doc};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

pub const COLLECTION: &str = "config.user_writes_critical_sections";
/// Why writes are blocked, by number.
pub const REASONS: &[&str] =
    &["Unspecified", "ClusterToClusterMigrationInProgress", "DiskUseThresholdExceeded"];
/// The `_id` of the document: it concerns every namespace.
const GLOBAL: &str = "";
const NEW_DDL: u8 = 1;
const WRITES: u8 = 2;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// No change of the catalog of a cluster begins.
    pub new_ddl: bool,
    pub writes: bool,
    /// Where in [`REASONS`].
    pub reason: u8,
}

impl Block {
    pub fn reason_name(self) -> &'static str {
        REASONS.get(usize::from(self.reason)).copied().unwrap_or(REASONS[0])
    }
    /// The number of a reason; of none, that of the first.
    pub fn reason_of(name: Option<&str>) -> u8 {
        REASONS.iter().position(|r| Some(*r) == name).unwrap_or(0) as u8
    }
    fn to_document(self) -> Document {
        doc! {
            "_id": GLOBAL, "blockNewUserShardedDDL": (self.new_ddl), "blockUserWrites": (self.writes),
            "blockUserWritesReason": i32::from(self.reason),
        }
    }
    fn parse(d: Doc<'_>) -> Block {
        let flag = |name: &str| d.get(name).is_some_and(|v| v.truthy());
        let reason = d.get_i64("blockUserWritesReason").filter(|n| (0..REASONS.len() as i64).contains(n));
        Block {
            new_ddl: flag("blockNewUserShardedDDL"),
            writes: flag("blockUserWrites"),
            reason: reason.unwrap_or(0) as u8,
        }
    }
}

/// The block in force.
#[derive(Default)]
pub struct UserWrites {
    state: AtomicU8,
    /// Held while the block is changed.
    pub changing: tokio::sync::Mutex<()>,
    /// Shared by every coordinated change of the catalog that has begun.
    pub began: Arc<tokio::sync::RwLock<()>>,
}

impl UserWrites {
    pub fn block(&self) -> Block {
        let state = self.state.load(Relaxed);
        Block { new_ddl: state & NEW_DDL != 0, writes: state & WRITES != 0, reason: state >> 2 }
    }
    fn learn(&self, block: Block) {
        let flags = if block.new_ddl { NEW_DDL } else { 0 } | if block.writes { WRITES } else { 0 };
        self.state.store(flags | block.reason << 2, Relaxed);
    }
}

impl WriteObserver for UserWrites {
    fn inserted(&self, _: &str, doc: Doc<'_>) {
        if doc.get_str("_id") == Some(GLOBAL) {
            self.learn(Block::parse(doc));
        }
    }
    fn updated(&self, ns: &str, new: Doc<'_>) {
        self.inserted(ns, new);
    }
    fn deleted(&self, _: &str, old: Doc<'_>) {
        if old.get_str("_id") == Some(GLOBAL) {
            self.learn(Block::default());
        }
    }
}

/// Whether users write there: not where the servers keep their own, and what is theirs among the users'.
pub(crate) fn is_users(ns: &str) -> bool {
    let (db, collection) = storage::split_namespace(ns);
    !document::is_internal_database(db) && collection != "system.profile"
}

impl Node {
    /// Reads the block again, where the collection was not written but exchanged.
    pub fn load_user_writes(&self) {
        let slot = self.namespaces.slot(COLLECTION);
        let state = slot.read_unchecked();
        let found = state.collection.as_ref().and_then(|c| c.find_id(ValueRef::String(GLOBAL)));
        self.user_writes.learn(found.map(|(_, d)| Block::parse(d)).unwrap_or_default());
    }

    /// Asked under the gate.
    ///
    /// # Errors
    /// UserWritesBlocked (371).
    pub(crate) fn check_user_writes(&self, op: &Operation, ns: &str) -> Result<()> {
        if self.user_writes.state.load(Relaxed) & WRITES != 0 && op.is_subject_to_block() && is_users(ns) {
            bail!(
                USER_WRITES_BLOCKED,
                "User writes blocked, reason: {}",
                self.user_writes.block().reason_name()
            );
        }
        Ok(())
    }

    /// Puts the block into force; none for the default one. When it has returned, the block is majority-committed, and what it forbids
    /// happens no more.
    ///
    /// # Errors
    /// Those of a write.
    pub async fn set_user_write_block(self: &Arc<Node>, block: Block) -> Result<()> {
        let local = LocalClient::new(self.clone());
        match block == Block::default() {
            true => drop(local.delete(COLLECTION, &doc! { "_id": (Value::from(GLOBAL)) }).await?),
            false => local.put(COLLECTION, &block.to_document()).await?,
        }
        self.exclusively(&Operation::internal(), || Ok(())).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_what_its_document_says() {
        for (new_ddl, writes, reason) in [(true, false, 0), (true, true, 2), (false, true, 1)] {
            let block = Block { new_ddl, writes, reason };
            let known = UserWrites::default();
            known.inserted(COLLECTION, block.to_document().to_doc_buf().doc());
            assert_eq!(known.block(), block);
            known.deleted(COLLECTION, block.to_document().to_doc_buf().doc());
            assert_eq!(known.block(), Block::default());
        }
        assert!(is_users("d.c") && is_users("d.system.views"));
        assert!(!is_users("d.system.profile") && !is_users("config.c") && !is_users("admin.system.users"));
    }
}
