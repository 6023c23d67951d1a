//! One data-bearing process: write path, reads, cursors, sessions, catalog, oplog, replica set of one.
//!
//! Entry points: [`Node::open`] recovers a data directory; [`write`] changes data; [`read`] and [`cursor`] answer
//! queries; [`ddl`] changes the catalog; [`local::LocalClient`] is what a node uses for its own metadata.
//!
//! Invariant: nothing here knows of routing tables, chunks or the network. What a shard adds comes in through the
//! traits of [`namespace`] (placement, ownership filter) and [`observer`].

pub mod namespace;
pub mod operation;
pub mod view;

pub use operation::Operation;
