//! Moving a range of a sharded collection from one shard, the donor, to another, the recipient, while both serve.
//!
//! ```text
//! donor                                         recipient                       config server
//! coordinator + own pending task   (durable)
//! start ------------------------------------>   collection, indexes
//!                                               pending task, own record (durable)
//! snapshot of the range ------------------->    clone
//! difference of two snapshots ------------->    catch up, again and again
//! critical section: writes wait
//! last difference ------------------------->    everything durable, then answers
//! reads wait
//! commit ---------------------------------------------------------------------> chunk has a new owner
//! decision (durable)
//! refresh; section ends
//! own task ready, recipient's task gone (or the other way round when aborted)
//! coordinator gone
//! ```
//!
//! The config server's documents alone decide. A donor that does not know whether its commit was executed makes sure
//! that it cannot be executed any more, and then looks. A *task* is the permission to delete the range: both sides
//! hold one from before they have anything to lose until the outcome is known, and only the side that does not own the
//! range in the end has it made ready.

pub mod donor;
pub mod recipient;

/// How a migration ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    Committed,
    Aborted,
}

impl Decision {
    /// As the coordinator's document spells it. DO NOT CHANGE: it is on disk.
    pub fn name(self) -> &'static str {
        match self {
            Decision::Committed => "committed",
            Decision::Aborted => "aborted",
        }
    }
    pub fn parse(name: &str) -> Option<Decision> {
        match name {
            "committed" => Some(Decision::Committed),
            "aborted" => Some(Decision::Aborted),
            _ => None,
        }
    }
}
