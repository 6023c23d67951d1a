//! Collections that get another distribution: this shard as donor and as recipient.
//!
//! A resharding copies a collection under a temporary name to the shards that will own it and lets the copy take the
//! collection's place at one moment. The coordinator (`shard/ddl/reshard.rs`) leads; a shard only does what it is told:
//!
//! ```text
//! donor       donate    a snapshot is taken, and what is read of it is divided among the recipients
//!             fetch     a recipient asks for documents, then for what changed since, then for session histories
//!             confirm   writes wait by now; the collection is still defined as the recipients were told
//! recipient   prepare   the temporary collection is made, anew if it is there
//!             clone     all documents of all donors arrive
//!             catch up  one difference from each donor; drain: until there is none, and all is durable
//!             switch    the copy takes the collection's name, and what had it goes
//! ```
//! A copy that begins anew has a new number ([`attempt_of`]), and a donor hands out nothing to a recipient of an earlier one: what that one
//! took would be missing from the new copy.
//!
//! What a shard knows of a resharding lives in memory. After a restart it knows nothing, so the coordinator's next message is
//! refused, and it begins the copy anew or gives up; what is on disk then is the temporary collection only.

pub mod donor;
pub(crate) mod progress;
pub mod recipient;

pub use donor::Donor;
pub use recipient::Recipient;

use self::progress::{AllFigures, Progress};
use crate::chunk::Chunk;
use crate::key_pattern::ShardKeyPattern;
use crate::messages::ddl::FirstChunk;
use crate::routing::RoutingTable;
use crate::routing::table::CollectionInfo;
use crate::shard::ddl::fence::{self, Run};
use document::{Collation, Doc, Document, Error, ObjectId, Result, Timestamp, doc, err};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The reshardings that this shard takes part in, by the UUID of the copy: that of a resharding may be a client's choice.
#[derive(Default)]
pub struct Reshardings {
    donors: Mutex<BTreeMap<[u8; 16], Arc<Donor>>>,
    recipients: Mutex<BTreeMap<[u8; 16], Arc<Recipient>>>,
    /// Those that this shard coordinates.
    coordinated: Mutex<BTreeMap<[u8; 16], Arc<Progress>>>,
    pub(crate) figures: AllFigures,
}

impl Reshardings {
    pub(crate) fn donate(&self, uuid: [u8; 16], donor: Donor) {
        self.donors.lock().insert(uuid, Arc::new(donor));
    }
    pub(crate) fn receive(&self, uuid: [u8; 16], recipient: Arc<Recipient>) {
        self.recipients.lock().insert(uuid, recipient);
    }
    /// # Errors
    /// NoSuchReshardCollection (339): this shard has restarted since, or the resharding has ended.
    pub(crate) fn donor(&self, uuid: [u8; 16]) -> Result<Arc<Donor>> {
        self.donors.lock().get(&uuid).cloned().ok_or_else(unknown)
    }
    /// # Errors
    /// As [`Reshardings::donor`].
    pub(crate) fn recipient(&self, uuid: [u8; 16]) -> Result<Arc<Recipient>> {
        self.recipients.lock().get(&uuid).cloned().ok_or_else(unknown)
    }
    /// Makes what this shard receives for a resharding fail soon: it begins anew, or ends.
    pub(crate) fn cancel(&self, uuid: [u8; 16]) {
        if let Some(recipient) = self.recipients.lock().get(&uuid) {
            recipient.cancel();
        }
    }
    pub(crate) fn forget(&self, uuid: [u8; 16]) {
        self.donors.lock().remove(&uuid);
        self.recipients.lock().remove(&uuid);
    }
    pub(crate) fn forget_recipient(&self, uuid: [u8; 16]) {
        self.recipients.lock().remove(&uuid);
    }
    /// Forgets everything: the shard's tasks were ended.
    pub(crate) fn abandon(&self) {
        self.donors.lock().clear();
        self.recipients.lock().clear();
        self.coordinated.lock().clear();
    }
    /// What is known of the one that this shard coordinates; `new` makes that of one that is not known.
    pub(crate) fn coordinated(&self, uuid: [u8; 16], new: impl FnOnce() -> Progress) -> Arc<Progress> {
        self.coordinated.lock().entry(uuid).or_insert_with(|| Arc::new(new())).clone()
    }
    /// Forgets one that this shard has coordinated; whether it began here.
    pub(crate) fn has_ended(&self, uuid: [u8; 16]) -> bool {
        self.coordinated.lock().remove(&uuid).is_some_and(|p| p.has_entered("preparing-to-donate"))
    }
    /// Members of `shardingStatistics`.
    pub(crate) fn statistics(&self) -> Document {
        let (donors, recipients, coordinated) =
            (self.donors.lock(), self.recipients.lock(), self.coordinated.lock());
        let parts = donors.values().map(|d| &d.progress).chain(recipients.values().map(|r| &r.progress));
        let parts: Vec<&Progress> = parts.chain(coordinated.values().map(|c| &**c)).collect();
        self.figures.to_document(&parts)
    }
    /// Entries for `currentOp`.
    pub fn current_operations(&self) -> Vec<Document> {
        let donors: Vec<Document> = self.donors.lock().values().map(|d| d.current()).collect();
        let recipients: Vec<Document> = self.recipients.lock().values().map(|r| r.current()).collect();
        let coordinated = self.coordinated.lock();
        let coordinated = coordinated.values().map(|c| c.coordinator_row());
        donors.into_iter().chain(recipients).chain(coordinated).collect()
    }
}

fn unknown() -> Error {
    err!(NO_SUCH_RESHARD_COLLECTION, "this shard takes no part in such a resharding")
}

/// The chunks of a collection to come, as a routing table.
///
/// # Errors
/// ConflictingOperationInProgress (117) when they leave a gap; those of unreadable bounds.
pub fn table_of(ns: &str, key: &ShardKeyPattern, chunks: &[FirstChunk]) -> Result<RoutingTable> {
    let info = CollectionInfo {
        ns: ns.to_string(),
        uuid: [0; 16],
        epoch: ObjectId::default(),
        timestamp: Timestamp::default(),
        key: key.document().clone(),
        unique: false,
        default_collation: Collation::SIMPLE,
        allow_migrations: false,
        unsplittable: false,
        restored: Default::default(),
        series: None,
    };
    let chunks = chunks.iter().map(|c| {
        let c = doc! { "min": c.min.clone(), "max": c.max.clone(), "shard": c.shard.as_str(), "lastmod": Timestamp::new(1, 0) };
        Chunk::from_document(&c, key)
    });
    RoutingTable::build(&info, chunks.collect::<Result<Vec<_>>>()?)
}

/// Documents of an array member.
pub(crate) fn documents(d: &Document, name: &str) -> Vec<Document> {
    let list = d.get_array(name).into_iter().flatten();
    list.filter_map(|v| v.as_document().cloned()).collect()
}

/// What one donor has for one recipient: documents that the donor owns now and the recipient will own.
pub struct Part {
    /// The placement now; without one the collection is not tracked, and the donor owns all of it.
    pub now: Option<Arc<RoutingTable>>,
    pub donor: String,
    pub to_come: Arc<RoutingTable>,
    pub recipient: String,
    /// Why the collection cannot be distributed so: a document has no usable key.
    refused: Mutex<Option<Error>>,
}

impl Part {
    pub fn new(
        now: Option<Arc<RoutingTable>>,
        donor: &str,
        to_come: Arc<RoutingTable>,
        recipient: &str,
    ) -> Part {
        Part {
            now,
            donor: donor.to_string(),
            to_come,
            recipient: recipient.to_string(),
            refused: Mutex::default(),
        }
    }
    /// Whether a document is of this part. One without a usable key is not, and makes [`Part::check`] fail.
    pub fn contains(&self, doc: Doc<'_>) -> bool {
        if !owned(self.now.as_deref(), &self.donor, doc) {
            return false;
        }
        match self.to_come.key.key_of(doc) {
            Ok(key) => self.to_come.owns(&self.recipient, &key),
            Err(e) => {
                self.refused.lock().get_or_insert(e);
                false
            }
        }
    }
    /// # Errors
    /// ShardKeyNotFound (61) when a document of the donor has no key in the distribution to come.
    pub fn check(&self) -> Result<()> {
        match &*self.refused.lock() {
            Some(e) => Err(e.clone()),
            None => Ok(()),
        }
    }
}

/// Whether a shard owns a document; without a table it owns all.
fn owned(table: Option<&RoutingTable>, shard: &str, doc: Doc<'_>) -> bool {
    table.is_none_or(|t| t.key.key_of(doc).is_ok_and(|key| t.owns(shard, &key)))
}

/// The attempt at the copy that a coordinator's message is of.
pub(crate) fn attempt_of(body: &Document) -> Option<Run> {
    body.get_document(fence::MEMBER).and_then(Run::from_document)
}
