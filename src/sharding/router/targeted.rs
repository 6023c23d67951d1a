//! How many shards commands concerned: `numHostsTargeted` in `shardingStatistics` of a router's serverStatus.

use crate::routing::RoutingTable;
use document::{Document, doc};
use node::stripe::Counter;

/// Commands of one kind, by what they concerned.
#[derive(Default)]
pub struct Spread {
    all: Counter,
    many: Counter,
    one: Counter,
    unsharded: Counter,
}

impl Spread {
    /// Counts a command that went to so many shards. A collection with chunks on one shard alone has commands for one.
    pub fn note(&self, table: Option<&RoutingTable>, shards: usize) {
        let counter = match (table, shards) {
            (None, _) => &self.unsharded,
            (Some(_), ..=1) => &self.one,
            (Some(table), _) if shards >= table.shards().count() => &self.all,
            (Some(_), _) => &self.many,
        };
        counter.increment();
    }
    fn shown(&self) -> Document {
        doc! {
            "allShards": self.all.get(), "manyShards": self.many.get(), "oneShard": self.one.get(),
            "unsharded": self.unsharded.get(),
        }
    }
}

/// The kinds of commands that are counted.
#[derive(Default)]
pub struct Targeted {
    pub find: Spread,
    pub insert: Spread,
    pub update: Spread,
    pub delete: Spread,
    pub aggregate: Spread,
    /// Updates by operators of one document that is named by its `_id` alone, and so may be on any shard.
    pub broadcast_by_id: Counter,
}

impl Targeted {
    pub fn shown(&self) -> Document {
        doc! {
            "find": self.find.shown(), "insert": self.insert.shown(), "update": self.update.shown(),
            "delete": self.delete.shown(), "aggregate": self.aggregate.shown(),
        }
    }
}
