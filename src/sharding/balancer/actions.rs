//! The second loop: merges and measurements, issued without waiting for one another.
//!
//! It sleeps until it is woken: by a round that ended, a command, or an action that ended. Then it issues what the
//! defragmentation policy and the auto-merger have, choosing at random which of them to ask first, until neither has
//! anything, a throttle says wait, or [`OUTSTANDING_MAX`] actions are under way.

use crate::config::ConfigServer;
use document::error::{RETRIABLE, STALE_SHARD_VERSION};
use document::{Error, Result};
use protocol::balancer::Outcome;
use runtime::Instant;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Actions under way at a time.
const OUTSTANDING_MAX: usize = 50;
/// How long the loop sleeps when nothing wakes it.
const SLEEP_MAX: Duration = Duration::from_secs(10);
/// No pause is shorter, whatever a throttle says.
const SLEEP_MIN: Duration = Duration::from_millis(5);

/// What is to be done, by whose policy.
pub(super) enum Action {
    Defragmentation(super::defragment::Step),
    AutoMerge(protocol::balancer::auto_merger::Merge),
}

/// What a policy has.
pub(super) enum Next<A = Action> {
    Action(A),
    /// Something in so many milliseconds, if nothing happens before.
    In(i64),
    Nothing,
}

/// How an attempt ended for a policy.
pub(super) fn outcome_of<T>(result: &Result<T>) -> Outcome {
    match result {
        Ok(_) => Outcome::Done,
        Err(e) if is_passing(e) => Outcome::Retriable,
        Err(_) => Outcome::Failed,
    }
}

/// An error that says nothing about the request: the same may succeed later.
pub(super) fn is_passing(e: &Error) -> bool {
    use document::codes::{
        CHUNK_RANGE_CLEANUP_PENDING, CONFLICTING_OPERATION_IN_PROGRESS, LOCK_BUSY, LOCK_TIMEOUT,
    };
    e.is(RETRIABLE | STALE_SHARD_VERSION)
        || matches!(
            e.code,
            CONFLICTING_OPERATION_IN_PROGRESS | CHUNK_RANGE_CLEANUP_PENDING | LOCK_BUSY | LOCK_TIMEOUT
        )
}

impl ConfigServer {
    pub(super) fn start_actions(self: &Arc<Self>) {
        let config = Arc::downgrade(self);
        let actions = runtime::spawn(async move {
            let mut scanned: Option<Instant> = None;
            loop {
                let Some(config) = config.upgrade() else { return };
                if scanned.is_none_or(|at| at.elapsed() >= SLEEP_MAX) {
                    scanned = Some(Instant::now());
                    config.balancer.rescan.store(true, Ordering::SeqCst);
                }
                let wait = config.issue_actions().await;
                let wake = config.balancer.wake_actions.clone();
                drop(config);
                tokio::select! {
                    _ = tokio::time::sleep(wait.clamp(SLEEP_MIN, SLEEP_MAX)) => {}
                    _ = wake.notified() => {}
                }
            }
        });
        self.balancer.tasks.lock().push(actions);
    }

    /// Issues what may be issued now; returns how long to sleep. What is to be defragmented is read from the catalog only
    /// when `rescan` says so or a phase has ended: an action that has ended is no reason.
    async fn issue_actions(self: &Arc<Self>) -> Duration {
        let inside = self.balancer.enter();
        if self.ensure().await.is_err() || !self.balancing_now() {
            return SLEEP_MAX;
        }
        if self.balancer.rescan.swap(false, Ordering::SeqCst) || self.a_phase_has_ended() {
            self.refresh_defragmentations().await;
        }
        self.look_for_merges().await;
        drop(inside);
        let mut wait = SLEEP_MAX;
        while self.balancer.outstanding() < OUTSTANDING_MAX {
            let inside = self.balancer.enter();
            if !self.balancing_now() {
                return SLEEP_MAX;
            }
            let policies = [ConfigServer::next_defragmentation, ConfigServer::next_auto_merge];
            match ask(policies.map(|policy| move || policy(self)), runtime::random()) {
                Next::Action(action) => self.issue(action, inside),
                Next::In(ms) => {
                    wait = wait.min(Duration::from_millis(u64::try_from(ms).unwrap_or(0)));
                    break;
                }
                Next::Nothing => break,
            }
        }
        wait
    }

    fn issue(self: &Arc<Self>, action: Action, inside: super::Inside) {
        let config = self.clone();
        let outstanding = self.balancer.note_outstanding();
        let task = async move {
            match action {
                Action::Defragmentation(step) => config.perform_step(step).await,
                Action::AutoMerge(merge) => config.perform_auto_merge(merge).await,
            }
            drop((outstanding, inside));
            config.balancer.wake_actions.notify_one();
        };
        let mut actions = self.balancer.actions.lock();
        while actions.try_join_next().is_some() {}
        runtime::spawn_in(&mut actions, task);
    }
}

/// What two policies have, the second asked only when the first has no action; `swapped` makes the second the first.
fn ask<A>(policies: [impl Fn() -> Next<A>; 2], swapped: bool) -> Next<A> {
    let [mut first, mut second] = policies.each_ref();
    if swapped {
        std::mem::swap(&mut first, &mut second);
    }
    match first() {
        Next::Nothing => second(),
        Next::In(a) => match second() {
            Next::In(b) => Next::In(a.min(b)),
            Next::Nothing => Next::In(a),
            action @ Next::Action(_) => action,
        },
        action @ Next::Action(_) => action,
    }
}

#[cfg(test)]
mod tests {
    use super::{Next, ask};
    use std::cell::Cell;

    #[test]
    fn the_policy_that_is_asked_first_has_its_action_issued() {
        let asked = Cell::new((0, 0));
        let policies = || {
            [true, false].map(|defragments| {
                let asked = &asked;
                move || {
                    let (d, m) = asked.get();
                    asked.set(if defragments { (d + 1, m) } else { (d, m + 1) });
                    Next::Action(if defragments { "defragment" } else { "merge" })
                }
            })
        };
        assert!(matches!(ask(policies(), false), Next::Action("defragment")));
        assert!(matches!(ask(policies(), true), Next::Action("merge")));
        assert_eq!(asked.get(), (1, 1), "the other policy was asked in vain");
    }

    #[test]
    fn a_policy_that_waits_or_has_nothing_leaves_the_turn_to_the_other() {
        let of = |first: fn() -> Next<i32>, second: fn() -> Next<i32>| {
            [false, true].map(|swapped| match ask([first, second], swapped) {
                Next::Action(action) => (action, 0),
                Next::In(ms) => (0, ms),
                Next::Nothing => (0, 0),
            })
        };
        assert_eq!(of(|| Next::In(5), || Next::Action(1)), [(1, 0); 2]);
        assert_eq!(of(|| Next::Nothing, || Next::Action(1)), [(1, 0); 2]);
        assert_eq!(of(|| Next::In(5), || Next::In(3)), [(0, 3); 2]);
        assert_eq!(of(|| Next::In(5), || Next::Nothing), [(0, 5); 2]);
        assert_eq!(of(|| Next::Nothing, || Next::Nothing), [(0, 0); 2]);
    }
}
