//! Sharding: placement of chunks, the router, what a shard adds to a node, the config server, the balancer.
//!
//! [`routing`] is what every node knows of placement: a cache, with versions, of the config server's documents, which
//! alone are the truth. [`key_pattern`] turns documents into shard keys; router and shard use this one code, so they
//! cannot disagree about where a document belongs.
//!
//! Invariant: every request between nodes carries a shard version or a database version, and the receiver checks it
//! under the latch of the data it then reads or writes.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests run on the machine's clock")
)]

pub mod analysis;
pub mod balancer;
pub mod chunk;
pub mod config;
pub mod config_time;
mod driver;
pub mod key_pattern;
pub mod messages;
pub mod remote;
pub mod router;
pub mod routing;
pub mod sessions;
pub mod sets;
pub mod shard;
