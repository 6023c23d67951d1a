//! What an opening directory tells of how far it has come.

use runtime::Instant;

use std::time::Duration;

/// What a start does, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Reading the images of the checkpoint; counted in bytes.
    Images,
    /// Replaying the log; counted in frames, of which nobody knows how many there are.
    Replay,
    /// Filling indexes; counted in collections.
    Indexes,
}

/// How far a stage has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub stage: Stage,
    /// Of what the stage counts.
    pub done: u64,
    /// `None` where it is not known.
    pub total: Option<u64>,
}

/// A long stage is told of this often.
const EVERY: Duration = Duration::from_secs(1);

/// Says when it is time to tell.
pub(super) struct Ticker(Instant);

impl Ticker {
    pub(super) fn new() -> Ticker {
        Ticker(Instant::now())
    }
    pub(super) fn is_due(&mut self) -> bool {
        let due = self.0.elapsed() >= EVERY;
        if due {
            self.0 = Instant::now();
        }
        due
    }
}
