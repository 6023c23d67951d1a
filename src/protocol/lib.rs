//! The decisions of every interruptible protocol, as state machines without I/O: events in, actions out.
//!
//! Invariant: this crate has no clock, no randomness, no network, no files and no runtime. A driver in `node` or
//! `sharding` performs the actions and feeds the outcomes back.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests run on the machine's clock")
)]

pub mod balancer;
pub mod coordinator;
pub mod ddl;
pub mod migration;
pub mod range_deletion;
pub mod refresh;
pub mod replication;
pub mod selection;
pub mod session;
pub mod transaction;
pub mod version;
