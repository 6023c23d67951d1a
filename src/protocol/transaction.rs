//! Which requests a session's transaction takes: the participant's state machine.
//!
//! ```text
//!              startTransaction            prepareTransaction
//!   None ─────────────────────▶ InProgress ──────────────────▶ Prepared
//!     ▲                          │      │                       │     │
//!     │ newer txnNumber   commit │      │ abort, error     commit│     │abort
//!     └───────────────────── Committed  Aborted ◀───────────────┴─────┘
//! ```
//!
//! A newer transaction number ends what is in progress; for what is prepared it waits, because only the coordinator
//! decides about that.

use crate::session::Session;
use document::{Result, bail};

/// What the newest number of a session has come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// No transaction: retryable writes, or nothing yet.
    #[default]
    None,
    InProgress,
    Prepared,
    Committed,
    Aborted,
    AbortedAfterPrepare,
}

impl Phase {
    /// As `config.transactions` shows it and checkpoints keep it. DO NOT CHANGE: it is on disk.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Phase::None => None,
            Phase::InProgress => Some("inProgress"),
            Phase::Prepared => Some("prepared"),
            Phase::Committed => Some("committed"),
            Phase::Aborted | Phase::AbortedAfterPrepare => Some("aborted"),
        }
    }
    pub fn from_name(name: &str) -> Phase {
        match name {
            "inProgress" => Phase::InProgress,
            "prepared" => Phase::Prepared,
            "committed" => Phase::Committed,
            "aborted" => Phase::AbortedAfterPrepare,
            _ => Phase::None,
        }
    }
}

/// What a request wants of the transaction it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// A first statement. A member of a cluster may begin again under the same number what it has aborted: its router
    /// sends a statement anew after a stale version.
    Start {
        may_restart: bool,
    },
    Continue,
    Prepare,
    Commit,
    Abort,
    /// From somebody who does not decide about what is prepared.
    AbortUnprepared,
}

/// What becomes of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// What is in progress under an older number is aborted, and a transaction begun.
    Begin,
    Continue,
    /// A repetition: the transaction is where the request would bring it.
    AlreadyDone,
    /// An older number is prepared: to be asked again once it has ended.
    Wait,
}

impl Session {
    /// What becomes of a request for transaction `number`. `session` names the session for a refusal.
    ///
    /// # Errors
    /// TransactionTooOld (225), ConflictingOperationInProgress (117), 50911, NoSuchTransaction (251),
    /// TransactionCommitted (256), PreparedTransactionInProgress (267).
    pub fn admit(
        &self,
        number: i64,
        request: Request,
        session: impl FnOnce() -> String,
    ) -> Result<Admission> {
        if number < self.txn_number {
            self.refuse_older(number, session)?;
        }
        match request {
            Request::Start { .. } if number > self.txn_number => Ok(match self.phase {
                Phase::Prepared => Admission::Wait,
                _ => Admission::Begin,
            }),
            Request::Start { may_restart } => self.admit_restart(number, may_restart),
            _ if number > self.txn_number => bail!(
                NO_SUCH_TRANSACTION,
                "Given transaction number {number} does not match any in-progress transactions. The active transaction number is {}",
                self.txn_number
            ),
            request => self.admit_known(number, request),
        }
    }

    fn admit_restart(&self, number: i64, may_restart: bool) -> Result<Admission> {
        let restartable = matches!(self.phase, Phase::None | Phase::Aborted) && self.executed.is_empty();
        match (may_restart, restartable) {
            (true, true) => Ok(Admission::Begin),
            (true, false) => bail!(
                50911,
                "Cannot start a transaction at given transaction number {number} a transaction with the same number is in state {}",
                self.phase.name().unwrap_or("none")
            ),
            (false, _) => bail!(
                CONFLICTING_OPERATION_IN_PROGRESS,
                "Only servers in a sharded cluster can start a new transaction at the active transaction number"
            ),
        }
    }

    fn admit_known(&self, number: i64, request: Request) -> Result<Admission> {
        match (self.phase, request) {
            (Phase::InProgress, _) | (Phase::Prepared, Request::Commit | Request::Abort) => {
                Ok(Admission::Continue)
            }
            (Phase::Prepared, Request::Prepare) | (Phase::Committed, Request::Commit) => {
                Ok(Admission::AlreadyDone)
            }
            (Phase::Prepared, _) => bail!(
                PREPARED_TRANSACTION_IN_PROGRESS,
                "Cannot call any operation other than abort, prepare or commit on a prepared transaction"
            ),
            (Phase::Committed, _) => {
                bail!(TRANSACTION_COMMITTED, "Transaction with {{ txnNumber: {number} }} has been committed.")
            }
            (Phase::Aborted | Phase::AbortedAfterPrepare, _) => {
                bail!(NO_SUCH_TRANSACTION, "Transaction with {{ txnNumber: {number} }} has been aborted.")
            }
            (Phase::None, _) => bail!(
                NO_SUCH_TRANSACTION,
                "Given transaction number {number} does not match any in-progress transactions. The active transaction number is {}",
                self.txn_number
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::EntryTime;
    use document::codes;

    fn at(phase: Phase) -> Session {
        Session { txn_number: 5, phase, ..Session::new() }
    }
    fn code(session: &Session, number: i64, request: Request) -> i32 {
        session.admit(number, request, String::new).err().map_or(0, |e| e.code)
    }
    const START: Request = Request::Start { may_restart: false };

    #[test]
    fn an_older_number_is_refused_and_a_newer_one_begins() {
        let s = at(Phase::InProgress);
        assert_eq!(code(&s, 4, START), codes::TRANSACTION_TOO_OLD);
        assert_eq!(s.admit(6, START, String::new), Ok(Admission::Begin));
        assert_eq!(code(&s, 6, Request::Continue), codes::NO_SUCH_TRANSACTION);
        assert_eq!(at(Phase::Prepared).admit(6, START, String::new), Ok(Admission::Wait));
    }

    #[test]
    fn the_active_number_begins_again_only_in_a_cluster_and_only_what_was_aborted() {
        let restart = Request::Start { may_restart: true };
        assert_eq!(code(&at(Phase::Aborted), 5, START), codes::CONFLICTING_OPERATION_IN_PROGRESS);
        assert_eq!(at(Phase::Aborted).admit(5, restart, String::new), Ok(Admission::Begin));
        assert_eq!(code(&at(Phase::Committed), 5, restart), 50911);
        assert_eq!(code(&at(Phase::InProgress), 5, restart), 50911);
    }

    #[test]
    fn an_ended_transaction_takes_no_statement_and_a_repeated_commit() {
        let done = at(Phase::Committed);
        assert_eq!(code(&done, 5, Request::Continue), codes::TRANSACTION_COMMITTED);
        assert_eq!(code(&done, 5, Request::Abort), codes::TRANSACTION_COMMITTED);
        assert_eq!(done.admit(5, Request::Commit, String::new), Ok(Admission::AlreadyDone));
        let aborted = at(Phase::Aborted);
        for request in [Request::Continue, Request::Commit, Request::Abort, Request::AbortUnprepared] {
            assert_eq!(code(&aborted, 5, request), codes::NO_SUCH_TRANSACTION);
        }
    }

    #[test]
    fn a_prepared_transaction_only_ends() {
        let s = at(Phase::Prepared);
        for request in [Request::Continue, Request::AbortUnprepared] {
            assert_eq!(code(&s, 5, request), codes::PREPARED_TRANSACTION_IN_PROGRESS);
        }
        assert_eq!(s.admit(5, Request::Prepare, String::new), Ok(Admission::AlreadyDone));
        assert_eq!(s.admit(5, Request::Commit, String::new), Ok(Admission::Continue));
    }

    #[test]
    fn the_number_of_a_transaction_is_no_retryable_writes() {
        let mut s = Session::new();
        s.apply_transaction(5, Phase::Committed, &[], EntryTime { ts: 10, term: 1 }, 1);
        assert_eq!(s.begin(5, String::new).unwrap_err().code, codes::INVALID_OPTIONS);
        s.begin(6, String::new).unwrap();
        assert_eq!(s.phase, Phase::None);
    }
}
