//! Catching up: a member that has won an election fetches what others have and it lacks, before it writes its first entry.
//!
//! An election needs a majority, and a minority may have entries that were acknowledged with less than a majority. They would be
//! rolled back; a short wait keeps them.
//!
//! ```text
//! won -> the positions of all members that are up, as of now -> nobody is ahead: done
//!                                                            -> fetched from the one that has the newest entry
//! ends     nobody is ahead; catchUpTimeoutMillis; replSetAbortPrimaryCatchUp; a higher term; an entry that does not fit
//! ```
//! Where it could get stuck: it waits for positions at most [`POSITIONS_LIMIT`], and then goes by what is known.

use super::fetch::End;
use crate::Node;
use document::{Result, bail, doc};
use protocol::replication::metrics::CatchUp;
use std::sync::Arc;
use std::time::Duration;

/// How long to wait until everybody has said how far it is.
const POSITIONS_LIMIT: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(20);

impl Node {
    /// Returns when there is nothing more to fetch, or no reason to.
    pub(super) async fn catch_up(self: &Arc<Self>) {
        let replication = &self.replication;
        let limit = replication.look(|m| m.config().and_then(|c| c.catch_up_timeout_ms()));
        let decides_alone = replication.look(|m| m.config().is_none_or(|c| c.vote_majority() == 1));
        if decides_alone || limit == Some(0) {
            let how = if decides_alone { CatchUp::AlreadyCaughtUp } else { CatchUp::Skipped };
            replication.with(|m, _, _| m.end_catch_up(how, 0));
            return;
        }
        let mut reigns = replication.commit.reigns();
        // It may be aborted as soon as it is known of.
        let aborted = replication.abort_catch_up.notified();
        replication.with(|m, _, _| m.begin_catch_up());
        let before = replication.metrics.applied.get();
        let mut misfit = None;
        let whole = async {
            self.await_positions().await;
            self.fetch_what_is_ahead(&mut misfit).await
        };
        let limited = async {
            match limit {
                Some(ms) => {
                    let done = tokio::time::timeout(Duration::from_millis(ms), whole).await;
                    done.unwrap_or(CatchUp::TimedOut)
                }
                None => whole.await,
            }
        };
        let how = tokio::select! {
            how = limited => how,
            () = aborted => CatchUp::Aborted,
            _ = reigns.changed() => CatchUp::FailedWithNewTerm,
        };
        self.unset_source();
        let operations = replication.metrics.applied.get() - before;
        replication.with(|m, _, _| m.end_catch_up(how, operations));
        if how.was_behind() {
            replication.note("Exited primary catch-up mode", doc! { "outcome": how.text() });
        }
        if let Some(reason) = misfit {
            self.give_up_lead(&reason).await;
        }
    }

    /// What the set has acknowledged does not fit what is here: whoever copies that from others must not be who they copy from.
    async fn give_up_lead(self: &Arc<Self>, reason: &str) {
        let attributes = doc! { "error": reason };
        self.replication.note(
            "An entry of others cannot be applied; stepping down and copying everything anew",
            attributes,
        );
        let actions = self.replication.with(|m, now, offset| m.step_aside(now, offset));
        self.perform_quietly(actions).await;
        if let Err(error) = self.start_copy("an entry did not fit") {
            self.replication.note("A copy cannot begin", doc! { "error": error.message });
        }
    }

    pub(super) async fn await_positions(self: &Arc<Self>) {
        let since = self.replication.now();
        let mut progress = self.replication.progress();
        let known = async {
            while !self.replication.look(|m| m.knows_positions_since(since)) {
                self.replication.ask_members_now();
                drop(tokio::time::timeout(PAUSE, progress.changed()).await);
            }
        };
        drop(tokio::time::timeout(POSITIONS_LIMIT, known).await);
    }

    /// `misfit` is why an entry that was fetched does not fit what is here.
    async fn fetch_what_is_ahead(self: &Arc<Self>, misfit: &mut Option<String>) -> CatchUp {
        let mut level = CatchUp::AlreadyCaughtUp;
        loop {
            let actions = self.positions();
            self.perform_quietly(actions).await;
            let Some(index) = self.replication.with(|m, _, _| m.aim_catch_up()) else { return level };
            level = CatchUp::Succeeded;
            let Some(host) = self.replication.standing().host(index) else { return level };
            if self.failpoint("stopReplProducer") {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            let end = tokio::select! {
                end = self.fetch_from(&host) => end,
                () = self.reached_all() => continue,
            };
            match end {
                Ok(End::Changed) | Err(_) => {}
                Ok(End::Misfit(reason)) => {
                    *misfit = Some(reason);
                    return CatchUp::FailedWithError;
                }
                Ok(End::Held | End::Diverged | End::TooStale) => return CatchUp::FailedWithError,
            }
            // It may have less than it had when it told.
            self.replication.ask_members_now();
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn reached_all(&self) {
        let mut progress = self.replication.progress();
        while self.replication.look(|m| m.ahead()).is_some() {
            drop(progress.changed().await);
        }
    }

    /// `replSetAbortPrimaryCatchUp`.
    ///
    /// # Errors
    /// IllegalOperation (20) when this member does not catch up.
    pub fn abort_catch_up(&self) -> Result<()> {
        if !self.replication.look(|m| m.is_catching_up()) {
            bail!(ILLEGAL_OPERATION, "The node is not in catch-up mode.");
        }
        self.replication.abort_catch_up.notify_waiters();
        Ok(())
    }
}
