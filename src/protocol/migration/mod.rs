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
//!
//! # Who may be waiting for whom
//!
//! ```text
//! who waits                          for whom                            how it ends
//! a router's or balancer's request   the donor                           with the migration; the migration outlives the request
//! the donor, before the section      the recipient, to be level          level, failed, or the donation is stopped by a catalog change
//! the recipient, at its start        deletions of the same range         done, or receiveChunkWaitForRangeDeleterTimeoutMS
//! the donor, entering the section    transactions, writes of many        they end, or the migration gives up (LockTimeout)
//! writes, then reads, of the donor   the section                         commit known, or abort: both release it
//! the donor, in the section          the recipient's last difference     durable there, or failed: abort
//! the donor, after a lost commit     the config server                   repeated until it answers: the section stays, nobody owns the range for sure
//! the recipient, level               commit, release or abort            a donor that is gone is taken up again by its next primary, which tells it
//! a catalog change                   migrations of its collection        those that have not begun to commit are stopped, the others finish
//! ```
//! No side waits for the other while it holds a latch, and the donor calls the recipient, never the recipient the donor's section.

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
