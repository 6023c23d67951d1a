//! `_shardsvrParticipantBlock`: a critical section that a coordinator enters on a shard, for a collection or a database.
//!
//! A section is written to `config.collection_critical_sections` before it is entered and removed after it was left, so
//! a shard that restarts in between is as it was: `{_id: ns, reason, blockReads}`. Entering again for the same reason
//! succeeds; leaving a section that is not there does too.

use super::Ddl;
use crate::shard::critical_section::Phase;
use document::{Document, Result, Value, bail, doc};
use node::namespace::Exclusive;
use runtime::Instant;
use std::time::Duration;
use tokio::sync::OwnedRwLockWriteGuard;

/// DO NOT CHANGE: on disk.
pub const SECTIONS: &str = "config.collection_critical_sections";
const WAIT: Duration = Duration::from_secs(30);
const MULTI_WRITES_WAIT: Duration = Duration::from_secs(5);
const TRIES: usize = 300;
const BETWEEN: Duration = Duration::from_millis(100);

/// How much is blocked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockType {
    Unblock,
    Writes,
    ReadsAndWrites,
}

impl BlockType {
    pub fn name(self) -> &'static str {
        match self {
            BlockType::Unblock => "Unblock",
            BlockType::Writes => "Writes",
            BlockType::ReadsAndWrites => "ReadsAndWrites",
        }
    }
    pub fn parse(name: &str) -> Option<BlockType> {
        [BlockType::Unblock, BlockType::Writes, BlockType::ReadsAndWrites]
            .into_iter()
            .find(|b| b.name() == name)
    }
}

fn is_database(ns: &str) -> bool {
    !ns.contains('.')
}

impl Ddl {
    /// Sets what is blocked on `ns` (a collection or, without a dot, a database) for `reason`.
    ///
    /// # Errors
    /// ConflictingOperationInProgress (117) while another reason holds a section (a migration ends by itself, so it is
    /// waited for), LockTimeout (24).
    pub async fn set_block(&self, ns: &str, block: BlockType, reason: &Document) -> Result<()> {
        let held = self.role.local.find_one(SECTIONS, &doc! { "_id": ns })?;
        let own = held.as_ref().is_some_and(|d| d.get_document("reason") == Some(reason));
        match block {
            BlockType::Unblock if own => self.leave(ns).await,
            BlockType::Unblock => Ok(()),
            _ if own => self.strengthen(ns, block, reason).await,
            _ if held.is_some() => {
                bail!(
                    CONFLICTING_OPERATION_IN_PROGRESS,
                    "{ns} is already in the critical section of another operation"
                )
            }
            _ => {
                // Entered first: one that a migration holds is not ours to write down.
                self.enter(ns, block, reason).await?;
                let written = self.write_down(ns, block, reason).await;
                if written.is_err() && self.role.local.find_one(SECTIONS, &doc! { "_id": ns })?.is_none() {
                    // Nobody would find it to be left.
                    self.leave_in_memory(ns);
                }
                written
            }
        }
    }

    async fn write_down(&self, ns: &str, block: BlockType, reason: &Document) -> Result<()> {
        let reads = block == BlockType::ReadsAndWrites;
        let section = doc! { "_id": ns, "reason": reason.clone(), "blockReads": reads };
        self.role.local.put(SECTIONS, &section).await
    }

    async fn enter(&self, ns: &str, block: BlockType, reason: &Document) -> Result<()> {
        let text = document::extended_json::to_relaxed(&Value::Document(reason.clone()));
        let _ended = self.multi_writes_end(ns).await;
        let mut tries = 0;
        loop {
            let entered = match is_database(ns) {
                true => self.enter_database(ns, &text).await,
                false => self.role.enter_critical_section(ns, &text, WAIT).await,
            };
            match entered {
                Ok(()) => break,
                Err(e) if e.code == document::codes::CONFLICTING_OPERATION_IN_PROGRESS && tries < TRIES => {
                    tries += 1;
                    tokio::time::sleep(BETWEEN).await;
                }
                Err(e) => return Err(e),
            }
        }
        self.block_reads_if(ns, block);
        Ok(())
    }

    /// As [`ShardRole::enter_critical_section`](crate::shard::ShardRole::enter_critical_section) for a database: waits first for the
    /// transactions that have touched it, whose commits no section holds back.
    async fn enter_database(&self, db: &str, reason: &str) -> Result<()> {
        let ended = self.transactions_end(db).await?;
        self.role.refresh_database(db).await?;
        self.role.enter_database_section(db, Phase::CatchUp, reason)?;
        drop(ended);
        // Those that have come meanwhile, to what was made meanwhile.
        let last = self.transactions_end(db).await;
        if last.is_err() {
            self.role.leave_database_section(db);
        }
        last.map(drop)
    }

    /// Waits for the transactions that have touched collections of the database; others do not begin to while it is held.
    async fn transactions_end(&self, db: &str) -> Result<Vec<Exclusive>> {
        let slots = self.role.node.namespaces.of_database(db);
        let until = Instant::now() + WAIT;
        let mut ended = Vec::with_capacity(slots.len());
        for slot in slots {
            let left = until.saturating_duration_since(Instant::now());
            ended.push(self.role.node.intent_exclusive(&slot, left, "a change of the database").await?);
        }
        Ok(ended)
    }

    /// Waits for the updates and deletes of many documents that run, and keeps others from beginning: one that finds
    /// another version half-way comes again from its router, and does again what it has done. Long ones are not waited for.
    async fn multi_writes_end(&self, ns: &str) -> Vec<OwnedRwLockWriteGuard<()>> {
        let namespaces = &self.role.node.namespaces;
        let slots = if is_database(ns) { namespaces.of_database(ns) } else { vec![namespaces.slot(ns)] };
        let until = Instant::now() + MULTI_WRITES_WAIT;
        let mut ended = Vec::with_capacity(slots.len());
        for slot in slots {
            let left = until.saturating_duration_since(Instant::now());
            ended.extend(slot.let_ranges_go(left).await.ok());
        }
        ended
    }

    fn block_reads_if(&self, ns: &str, block: BlockType) {
        if block == BlockType::ReadsAndWrites {
            if is_database(ns) {
                self.role.block_database_reads(ns);
            } else {
                self.role.block_reads(ns);
            }
        }
    }

    async fn strengthen(&self, ns: &str, block: BlockType, reason: &Document) -> Result<()> {
        self.write_down(ns, block, reason).await?;
        self.block_reads_if(ns, block);
        Ok(())
    }

    async fn leave(&self, ns: &str) -> Result<()> {
        self.leave_in_memory(ns);
        self.role.local.delete(SECTIONS, &doc! { "_id": ns }).await.map(|_| ())
    }

    fn leave_in_memory(&self, ns: &str) {
        // What was known before the change is forgotten before anybody who waited may look.
        if is_database(ns) {
            self.role.clear_database(ns);
            self.role.leave_database_section(ns);
        } else {
            self.role.clear_placement(ns);
            self.role.leave_critical_section(ns);
        }
    }

    /// Enters the sections that were in force before the node stopped.
    pub(super) fn reenter_sections(&self) -> Result<()> {
        for section in self.role.local.find(SECTIONS, &Document::new())? {
            let Some(ns) = section.get_str("_id").filter(|id| *id != super::standstill::EVERYTHING) else {
                continue;
            };
            let reason = section.get("reason").map(document::extended_json::to_relaxed).unwrap_or_default();
            let reads = section.get_bool("blockReads").unwrap_or(true);
            let phase = if reads { Phase::Commit } else { Phase::CatchUp };
            if is_database(ns) {
                // It is entered already where this node was primary before.
                drop(self.role.enter_database_section(ns, phase, &reason));
                if reads {
                    self.role.block_database_reads(ns);
                }
            } else {
                // An undecided migration may have blocked it before; what the operation has begun outlasts that.
                self.role.block_instead(ns, phase, &reason);
            }
        }
        Ok(())
    }
}
