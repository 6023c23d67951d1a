//! Is this document in a chunk this shard owns?

use crate::chunk::ShardId;
use crate::routing::RoutingTable;
use document::{Doc, DocBuf};
use node::namespace::OwnershipFilter;
use std::sync::Arc;

/// A routing table seen from one shard. Cursors keep the one they began with.
pub struct ShardFilter {
    pub table: Arc<RoutingTable>,
    pub shard: ShardId,
}

impl ShardFilter {
    /// Whether a chunk of this shard meets `min..max`.
    pub fn owns_part_of(&self, min: &[u8], max: &[u8]) -> bool {
        self.table.overlapping(min, max, false).any(|c| c.shard == self.shard)
    }
}

impl OwnershipFilter for ShardFilter {
    fn owns(&self, doc: Doc<'_>) -> bool {
        // A document without a valid key (an array in it) cannot have come through a router.
        self.table.key.key_of(doc).is_ok_and(|key| self.table.owns(&self.shard, &key))
    }
    fn paths(&self) -> Vec<String> {
        self.table.key.document().keys().map(str::to_string).collect()
    }
    fn same_key(&self, old: Doc<'_>, new: Doc<'_>) -> bool {
        matches!((self.table.key.key_of(old), self.table.key.key_of(new)), (Ok(a), Ok(b)) if a == b)
    }
    fn array_in_key(&self, doc: Doc<'_>) -> Option<String> {
        self.table.key.array_in(doc).map(str::to_string)
    }
    fn document_key(&self, doc: Doc<'_>) -> DocBuf {
        self.table.key.document_key_of(doc)
    }
}
