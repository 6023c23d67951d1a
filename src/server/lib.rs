//! The shell of the processes: options, logs, listeners, connections, the command table and the dispatcher.
//!
//! ```text
//! listener -> connection -> dispatch -> commands/*        one task per connection, one request at a time on it
//! ```
//!
//! A [`service::Service`] is one process node (a `mongod` or a `mongos`); `tessera up` runs several in one process, so
//! nothing a command reads or sets is static: parameters, counters, log rings and fail points belong to the service.
//!
//! To add a command: one file under `commands/` with its rows in a `pub const ROWS: &[Command]`, and one line in
//! [`commands::TABLES`].

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests run on the machine's clock")
)]

mod api_versions;
pub mod ask;
pub mod auth;
pub mod commands;
#[cfg(test)]
mod compatibility;
mod concern_counters;
pub mod connection;
pub mod counters;
pub mod dispatch;
pub mod establishment;
pub mod flow_control;
pub mod listener;
pub mod log;
pub mod members;
pub mod memory;
pub mod operations;
mod operator_counters;
pub mod options;
pub mod peers;
pub mod process;
pub mod profile;
pub mod quiesce;
pub mod sampling;
pub mod script;
pub mod service;
pub mod session_cache;
pub mod session_refresh;
pub mod signed_time;
pub mod signing_keys;
pub mod status;
pub mod tls;

mod stage_counters;
pub mod step_down;
pub mod topology;
pub mod up;
mod web;

pub use dispatch::{Command, Context, Reply, Request, Roles};
pub use service::{Running, Service};
