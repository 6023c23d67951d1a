//! Replica sets, protocol version 1: the decisions of one member, without I/O.
//!
//! ```text
//! config        the configuration document: checked, completed, compared
//! member        one member: term, vote, elections, liveness, positions of the others, commit point
//! flow_control  how many writes a primary admits while the majority lags
//! source        whom to fetch from, and whether the own log continues the source's
//! simulation    (tests) sets of such members over a network from a seed
//! ```
//! A member keeps a log of entries, each with an [`OpTime`]. Entries flow by being fetched: a secondary asks a member that is
//! ahead for what follows its newest entry, and reports how far it has come. An entry is committed once a majority of
//! voters has it and the newest counted entry is of the primary's own term; a committed entry is never rolled back, since
//! a candidate needs the votes of a majority and no voter votes for a log that is behind its own.
//!
//! Everything durable is an explicit action: a vote is stored before it is given ([`member::VoteAnswer::store`]), a term
//! with the vote for oneself before votes are asked for ([`member::Action::StoreVote`]).

pub mod config;
pub mod flow_control;
pub mod horizons;
pub mod member;
pub mod metrics;
#[cfg(test)]
mod simulation;
pub mod source;

/// Where an entry stands in the history of a set. Terms first: entries of a later term come after all of an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpTime {
    pub term: i64,
    pub ts: u64,
}

impl OpTime {
    /// Before every entry.
    pub const NONE: OpTime = OpTime { term: -1, ts: 0 };
    pub fn new(term: i64, ts: u64) -> OpTime {
        OpTime { term, ts }
    }
    pub fn is_none(self) -> bool {
        self.ts == 0
    }
}

impl Default for OpTime {
    fn default() -> OpTime {
        OpTime::NONE
    }
}
