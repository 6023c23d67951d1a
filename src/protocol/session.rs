//! Bookkeeping of retryable writes: which statements of a session's current transaction number were executed.
//!
//! The table is *derived*: one function, [`Session::apply`], takes what a log entry says of its session, whether the
//! entry is being written, replayed at start-up or applied elsewhere. So a restart forgets nothing that the log
//! remembers, and a retried statement is answered from what it did the first time.
//!
//! # Who may be waiting for whom
//!
//! ```text
//! who waits                             for whom                                    how it ends
//! a statement of a session              the statement that has it checked out       with that statement
//! a write that a router has repeated    what another router began for it            found executed; or aborted after a moment; a prepared one is waited for
//! a recipient of a range                the histories of the donor's sessions       read after the last difference; a history that the log lost says so
//! ```
//! A session is checked out before any latch is taken and given back after the commit, so latches never wait for sessions.

use crate::transaction::Phase;
use document::{Result, bail};
use std::collections::BTreeMap;

/// Where a statement's log entry stands: its timestamp value and term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct EntryTime {
    pub ts: u64,
    pub term: i64,
}

/// The statement of an entry that says: of this number more was executed than the log can still show. DO NOT CHANGE: logs
/// hold it.
pub const INCOMPLETE_HISTORY: i32 = -1;

/// What one session has done under its newest transaction number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Session {
    /// The newest transaction number seen; -1 before the first.
    pub txn_number: i64,
    pub last_write: EntryTime,
    /// Wall-clock milliseconds of the newest write.
    pub last_write_date: i64,
    /// Executed statements of `txn_number`, with the entry that each made.
    pub executed: BTreeMap<i32, EntryTime>,
    /// The history of `txn_number` is not complete here: an unknown statement may have been executed elsewhere.
    pub incomplete: bool,
    /// What `txn_number` has come to as a transaction.
    pub phase: Phase,
    /// The first entry of a transaction that is not decided.
    pub start: Option<EntryTime>,
}

/// What to do with a statement that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statement {
    Execute,
    /// It was executed before; the entry says what it did.
    AlreadyExecuted(EntryTime),
}

impl Session {
    pub fn new() -> Session {
        Session { txn_number: -1, ..Session::default() }
    }

    /// Whether a command with this transaction number may run. `session` names the session for a refusal, and is asked
    /// only then: every retryable write comes through here.
    ///
    /// # Errors
    /// TransactionTooOld (225) when a newer number was used already; InvalidOptions (72) for the number of a transaction.
    pub fn begin(&mut self, txn_number: i64, session: impl FnOnce() -> String) -> Result<()> {
        if txn_number < self.txn_number {
            self.refuse_older(txn_number, session)?;
        }
        if txn_number > self.txn_number {
            self.advance(txn_number);
        }
        if self.phase != Phase::None {
            bail!(
                INVALID_OPTIONS,
                "Must specify autocommit=false on all operations of a multi-statement transaction."
            );
        }
        Ok(())
    }

    /// # Errors
    /// TransactionTooOld (225).
    pub fn refuse_older(&self, txn_number: i64, session: impl FnOnce() -> String) -> Result<()> {
        bail!(
            TRANSACTION_TOO_OLD,
            "Cannot start transaction with {{ txnNumber: {txn_number} }} on session {} because a newer transaction with txnNumberAndRetryCounter {{ txnNumber: {} }} has already started on this session.",
            session(),
            self.txn_number
        )
    }

    /// Takes in what a log entry says of a transaction; `stmts` are statements of the retryable write that it executes.
    pub fn apply_transaction(
        &mut self,
        txn_number: i64,
        phase: Phase,
        stmts: &[i32],
        at: EntryTime,
        wall_ms: i64,
    ) {
        self.apply(txn_number, stmts, at, wall_ms);
        if txn_number == self.txn_number {
            self.phase = phase;
            self.start = match phase {
                Phase::InProgress | Phase::Prepared => self.start.or(Some(at)),
                _ => None,
            };
        }
    }

    /// Notes what the number has come to without an entry of the log.
    pub fn set_phase(&mut self, txn_number: i64, phase: Phase) {
        if txn_number > self.txn_number {
            self.advance(txn_number);
        }
        self.phase = phase;
    }

    /// Whether statement `stmt` of the current number is to be executed.
    ///
    /// # Errors
    /// IncompleteTransactionHistory (217) when the answer is not known here.
    pub fn check(&self, stmt: i32) -> Result<Statement> {
        match self.executed.get(&stmt) {
            Some(at) => Ok(Statement::AlreadyExecuted(*at)),
            None if self.incomplete => bail!(
                INCOMPLETE_TRANSACTION_HISTORY,
                "Incomplete history detected for transaction {} on session",
                self.txn_number
            ),
            None => Ok(Statement::Execute),
        }
    }

    /// Takes in what a log entry says. Entries of older numbers than the current are history and change nothing.
    pub fn apply(&mut self, txn_number: i64, stmts: &[i32], at: EntryTime, wall_ms: i64) {
        if txn_number < self.txn_number {
            return;
        }
        if txn_number > self.txn_number {
            self.advance(txn_number);
        }
        for stmt in stmts {
            match *stmt {
                INCOMPLETE_HISTORY => self.incomplete = true,
                stmt => drop(self.executed.entry(stmt).or_insert(at)),
            }
        }
        if at.ts >= self.last_write.ts {
            self.last_write = at;
            self.last_write_date = wall_ms;
        }
    }

    fn advance(&mut self, txn_number: i64) {
        self.txn_number = txn_number;
        self.executed.clear();
        self.incomplete = false;
        self.phase = Phase::None;
        self.start = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::codes;

    fn at(ts: u64) -> EntryTime {
        EntryTime { ts, term: 1 }
    }

    #[test]
    fn a_statement_is_executed_once() {
        let mut s = Session::new();
        s.begin(5, String::new).unwrap();
        assert_eq!(s.check(0).unwrap(), Statement::Execute);
        s.apply(5, &[0], at(10), 1);
        assert_eq!(s.check(0).unwrap(), Statement::AlreadyExecuted(at(10)));
        assert_eq!(s.check(1).unwrap(), Statement::Execute);
    }

    #[test]
    fn every_statement_of_the_number_is_remembered_not_only_the_latest() {
        let mut s = Session::new();
        s.apply(5, &[0, 1], at(10), 1);
        s.apply(5, &[2], at(11), 1);
        assert_eq!(s.check(0).unwrap(), Statement::AlreadyExecuted(at(10)));
        assert_eq!(s.check(2).unwrap(), Statement::AlreadyExecuted(at(11)));
    }

    #[test]
    fn an_older_number_is_refused_and_its_entries_change_nothing() {
        let mut s = Session::new();
        s.begin(5, String::new).unwrap();
        assert_eq!(s.begin(4, String::new).unwrap_err().code, codes::TRANSACTION_TOO_OLD);
        s.apply(4, &[0], at(3), 1);
        assert_eq!(s.check(0).unwrap(), Statement::Execute);
    }

    #[test]
    fn a_newer_number_forgets_the_statements_of_the_older() {
        let mut s = Session::new();
        s.apply(5, &[0], at(10), 1);
        s.begin(6, String::new).unwrap();
        assert_eq!(s.check(0).unwrap(), Statement::Execute);
    }

    #[test]
    fn an_incomplete_history_is_never_run_again() {
        let mut s = Session { incomplete: true, txn_number: 3, ..Session::new() };
        s.begin(3, String::new).unwrap();
        assert_eq!(s.check(0).unwrap_err().code, codes::INCOMPLETE_TRANSACTION_HISTORY);
    }

    #[test]
    fn a_history_with_a_gap_answers_for_what_it_holds_and_for_nothing_else() {
        let mut s = Session::new();
        s.apply(3, &[0], at(5), 0);
        s.apply(3, &[INCOMPLETE_HISTORY], at(6), 0);
        assert_eq!(s.check(0).unwrap(), Statement::AlreadyExecuted(at(5)));
        assert_eq!(s.check(1).unwrap_err().code, codes::INCOMPLETE_TRANSACTION_HISTORY);
        s.apply(4, &[0], at(7), 0);
        assert_eq!(s.check(1).unwrap(), Statement::Execute);
    }
}
