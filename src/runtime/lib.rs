//! Time, randomness, tasks and threads: everything in which two runs of the same program differ, in one place.
//!
//! A server runs on several threads, the machine's clock and the system's random numbers. A [`simulation`] runs a whole
//! cluster on one thread, on tokio's paused clock and on numbers from a seed. `clippy.toml` keeps every other crate of
//! the server from asking the system directly.
//!
//! These things belong to the thread that runs the world, as tokio's own clock does, and not to a handle of each node:
//! a handle would have to reach every timer, parser and metric, and there is never a reason for two nodes of one thread
//! to have different ones. What does differ between nodes (files, network, who owns a task) is handed to them. The wall clock may
//! differ: it goes with the [`Owner`] of a task.
//!
//! Outside simulations each of these functions costs one relaxed load more than what it replaces.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the place that the others are sent to"
)]

mod clock;
mod random;
pub mod simulation;
mod tasks;

pub use clock::{Instant, now_millis, pause_thread};
pub use random::{Randomness, random, random_range, rng, uuid};
pub use tasks::{Blocking, Owner, blocking, spawn, spawn_in, spawn_on};
