//! A cluster in one process: a config server of few commands, shards on simulated disks, clients that retry.

mod cluster;
pub(crate) mod lifetime;
mod migration;
mod persisted;
mod range_deletion;

use crate::chunk::Chunk;
use crate::key_pattern::ShardKeyPattern;
use crate::routing::RoutingTable;
use crate::routing::table::CollectionInfo;
use document::{Document, ObjectId, Timestamp, Value, doc};
use std::sync::Arc;

fn bound(v: Option<i32>, end: Value) -> Document {
    doc! { "x": v.map_or(end, Value::Int32) }
}

/// A node on a disk of its own.
pub(crate) fn open_node(host: &str) -> Arc<node::Node> {
    cluster::open(&storage::files::SimulatedDisk::new(), host, true).0
}

/// A table over `{x: 1}` with these chunks, in versions 1|0, 1|1, ...
pub(crate) fn table_of(chunks: &[(Option<i32>, Option<i32>, &str)]) -> Arc<RoutingTable> {
    let info = CollectionInfo {
        ns: "d.c".into(),
        uuid: [1; 16],
        epoch: ObjectId([2; 12]),
        timestamp: Timestamp::new(5, 0),
        key: doc! { "x": 1 },
        unique: false,
        default_collation: document::Collation::SIMPLE,
        allow_migrations: true,
        unsplittable: false,
        restored: Default::default(),
        series: None,
    };
    let key = ShardKeyPattern::parse(&info.key).unwrap();
    let chunks = chunks.iter().enumerate().map(|(i, (lo, hi, shard))| {
        let d = doc! {
            "min": bound(*lo, Value::MinKey), "max": bound(*hi, Value::MaxKey), "shard": *shard,
            "lastmod": Timestamp::new(1, i as u32),
        };
        Chunk::from_document(&d, &key).unwrap()
    });
    Arc::new(RoutingTable::build(&info, chunks.collect()).unwrap())
}
