//! Storage: persistent trees, collections with their indexes, the one log, checkpoints and recovery.
//!
//! ```text
//! collection   records and indexes changed together; prepare may fail, apply cannot
//!   record_store   record id -> document bytes
//!   index/         definitions, keys, trees, builds under load
//!   snapshot       reading a collection, live or frozen, through one interface
//! entry        what one log frame says; its visible form in local.oplog.rs
//! recovery/    opening: newest checkpoint, then the log replayed by one function
//! checkpoint/  image segments and a manifest renamed into place
//! log/         the log: positions, timestamps, groups of commits, torn tails
//! tree/        copy-on-write B+trees
//! files/       files behind a trait, with a disk that can lose power
//! ```
//!
//! Invariants: nothing here knows the query language, sessions, or the network; nothing here takes the latch of a
//! namespace (its caller holds it); apply never fails.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests run on the machine's clock")
)]

pub mod catalog;
pub mod checkpoint;
pub mod collection;
pub mod entry;
mod error;
pub mod files;
pub mod index;
pub mod log;
mod parallel;
mod record_store;
pub mod recovery;
pub mod snapshot;
pub mod tree;

pub use catalog::{CollectionMeta, split_namespace};
pub use collection::{Collection, FrozenCollection, InsertPlan, UpdatePlan};
pub use error::StorageError;
pub use index::{IndexBuild, IndexCursor, IndexEntry, IndexSpec, Predicate};
pub use record_store::{RecordCursor, RecordId};
pub use snapshot::{CollectionSnapshot, CollectionView};
