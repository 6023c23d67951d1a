//! Fail points: named places where a test can make a node wait, fail or behave otherwise.
//!
//! Always compiled in; while none is configured, asking costs one relaxed load. The registry belongs to a node, since
//! several nodes may share a process.
//!
//! ```text
//! mode "off" | "alwaysOn" | {times: n} | {skip: n} | {activationProbability: p}
//! ```
//! `times: n` is on for the next n passes, then turns itself off; `skip: n` lets n passes by, then stays on.

use crate::Operation;
use document::{Document, Result, Value, bail};
use futures::future::BoxFuture;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::watch;

/// When a fail point fires.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    Off,
    AlwaysOn,
    Times(i64),
    Skip(i64),
    Probability(f64),
}

impl Mode {
    /// Reads the `mode` field of `configureFailPoint`.
    pub fn parse(value: &Value) -> Result<Mode> {
        let document = match value {
            Value::String(s) if s == "off" => return Ok(Mode::Off),
            Value::String(s) if s == "alwaysOn" => return Ok(Mode::AlwaysOn),
            Value::String(s) => bail!(BAD_VALUE, "unknown mode: {s}"),
            Value::Document(d) => d,
            _ => bail!(TYPE_MISMATCH, "'mode' must be a string or JSON object"),
        };
        let count = |name: &str| match document.get(name) {
            None => Ok(None),
            Some(v) => match v.as_i64() {
                Some(n) if n < 0 => bail!(BAD_VALUE, "'{name}' option to 'mode' must be positive"),
                Some(n) => Ok(Some(n)),
                None => bail!(TYPE_MISMATCH, "'{name}' option to 'mode' must be a number"),
            },
        };
        if let Some(n) = count("times")? {
            return Ok(Mode::Times(n));
        }
        if let Some(n) = count("skip")? {
            return Ok(Mode::Skip(n));
        }
        match document.get("activationProbability").map(Value::as_f64) {
            Some(Some(p)) if (0.0..=1.0).contains(&p) => Ok(Mode::Probability(p)),
            Some(Some(p)) => {
                bail!(BAD_VALUE, "'activationProbability' must be between 0.0 and 1.0; found {p}")
            }
            _ => bail!(BAD_VALUE, "'mode' must be one of 'times', 'skip', 'activationProbability'"),
        }
    }
    fn to_document(self) -> (i32, i64) {
        match self {
            Mode::Off => (0, 0),
            Mode::AlwaysOn => (1, 0),
            Mode::Probability(p) => (2, (p * 2f64.powi(31)) as i64),
            Mode::Times(n) => (3, n),
            Mode::Skip(n) => (4, n),
        }
    }
}

/// The points that some place asks about. The command refuses other names: a test whose point nobody passes would
/// wait for ever, or prove nothing.
pub const NAMES: &[&str] = &[
    "ReconfigHangBeforeConfigValidationCheck",
    "WTWriteConflictException",
    "bgSyncHangAfterRunRollback",
    "blockHeartbeatReconfigFinish",
    "collModBeforeConfigServerUpdate",
    "disableMaxSyncSourceLagSecs",
    "doNotRefreshRecipientAfterCommit",
    "doNotRemoveNewlyAddedOnHeartbeats",
    "dropDatabaseCoordinatorPauseAfterConfigCommit",
    "dropDatabaseHangAfterAllCollectionsDrop",
    "dropDatabaseHangBeforeLog",
    "dummy",
    "failAllInserts",
    "failAllRemoves",
    "failAllUpdates",
    "failAndHangInitialSync",
    "failCollectionInserts",
    "failCommand",
    "failGetMoreAfterCursorCheckout",
    "failIndexBuildOnCommit",
    "failInitialSyncBeforeApplyingBatch",
    "failInitialSyncWithBadHost",
    "failMigrationCommit",
    "failMigrationOnRecipient",
    "forceBgSyncSyncSourceRetryWaitMS",
    "forceHeartbeatIntervalMS",
    "forceSyncSourceCandidate",
    "hangAfterCollectionInserts",
    "hangAfterDeletingCoordinatorDoc",
    "hangAfterDoingDeletion",
    "hangAfterIndexBuildDumpsInsertsFromBulk",
    "hangAfterIndexBuildDumpsInsertsFromBulkLock",
    "hangAfterIndexBuildFirstDrain",
    "hangAfterIndexBuildSecondDrain",
    "hangAfterInitializingIndexBuild",
    "hangAfterReconfigOnDrainComplete",
    "hangAfterSessionCheckOut",
    "hangAfterSettingUpIndexBuild",
    "hangAfterSettingUpIndexBuildUnlocked",
    "hangAfterStartingIndexBuild",
    "hangAfterStartingIndexBuildUnlocked",
    "hangBeforeAbortingTxn",
    "hangBeforeCloningData",
    "hangBeforeCommitingTxn",
    "hangBeforeDeletingCoordinatorDoc",
    "hangBeforeDoingDeletion",
    "hangBeforeDroppingListedCollections",
    "hangBeforeForgettingMigrationAfterAbortDecision",
    "hangBeforeForgettingMigrationAfterCommitDecision",
    "hangBeforeLinearizableReadConcern",
    "hangBeforeMakingAbortDecisionDurable",
    "hangBeforeMakingCommitDecisionDurable",
    "hangBeforeMovePrimaryCriticalSection",
    "hangBeforePostMigrationCommitRefresh",
    "hangBeforeProcessingSuccessfulBatch",
    "hangBeforeRSTLOnDrainComplete",
    "hangBeforeSendingAbort",
    "hangBeforeSendingAbortDecision",
    "hangBeforeSendingCommit",
    "hangBeforeSendingCommitDecision",
    "hangBeforeSendingPrepare",
    "hangBeforeSessionCheckOut",
    "hangBeforeStartingOplogFetcher",
    "hangBeforeWaitingForWriteConcern",
    "hangBeforeWritingDecision",
    "hangBeforeWritingParticipantList",
    "hangCreateIndexesBeforeStartingIndexBuild",
    "hangDropCollectionBeforeLockAcquisition",
    "hangDuringBatchInsert",
    "hangDuringBatchRemove",
    "hangDuringBatchUpdate",
    "hangInWritingLastVoteForDryRun",
    "hangIndexBuildBeforeAbortCleanUp",
    "hangIndexBuildBeforeCommit",
    "hangIndexBuildBeforeSignalPrimaryForCommitReadiness",
    "hangRefineCollectionShardKeyBeforeCommit",
    "hangRefineCollectionShardKeyBeforeUpdatingChunks",
    "hangTTLMonitorBetweenPasses",
    "hangTTLMonitorWithLock",
    "hangWhileBuildingDocumentSourceMergeBatch",
    "hangWhileBuildingDocumentSourceOutBatch",
    "hangWhileWaitingForHelloResponse",
    "holdStableTimestampAtSpecificTimestamp",
    "initialSyncHangAfterDataCloning",
    "initialSyncHangAfterGettingBeginFetchingTimestamp",
    "initialSyncHangBeforeChoosingSyncSource",
    "initialSyncHangBeforeCompletingOplogFetching",
    "initialSyncHangBeforeCopyingDatabases",
    "initialSyncHangBeforeCreatingOplog",
    "initialSyncHangBeforeFinish",
    "initialSyncHangBeforeSplittingControlFlow",
    "initialSyncHangCollectionClonerAfterHandlingBatchResponse",
    "initialSyncHangCollectionClonerBeforeEstablishingCursor",
    "initialSyncHangDuringCollectionClone",
    "maxTimeAlwaysTimeOut",
    "maxTimeNeverTimeOut",
    "migrateThreadHangAtStep1",
    "migrateThreadHangAtStep2",
    "migrateThreadHangAtStep3",
    "migrateThreadHangAtStep4",
    "migrateThreadHangAtStep5",
    "migrateThreadHangAtStep6",
    "migrateThreadHangAtStep7",
    "migrationCommitNetworkError",
    "migrationCommitVersionError",
    "moveChunkHangAtStep1",
    "moveChunkHangAtStep2",
    "moveChunkHangAtStep3",
    "moveChunkHangAtStep4",
    "moveChunkHangAtStep5",
    "moveChunkHangAtStep6",
    "omitConfigQuorumCheck",
    "onPrimaryTransactionalWrite",
    "overrideBalanceRoundInterval",
    "panicInPing",
    "participantReturnNetworkErrorForAbortAfterExecutingAbortLogic",
    "participantReturnNetworkErrorForCommitAfterExecutingCommitLogic",
    "participantReturnNetworkErrorForPrepareAfterExecutingPrepareLogic",
    "pauseCollectionValidationWithLock",
    "planExecutorAlwaysFails",
    "reshardingPauseCoordinatorBeforeBlockingWrites",
    "reshardingPauseCoordinatorBeforeCloning",
    "reshardingPauseCoordinatorBeforeCompletion",
    "reshardingPauseCoordinatorBeforeDecisionPersisted",
    "reshardingPauseCoordinatorBeforeInitializing",
    "reshardingPauseCoordinatorBeforeRemovingStateDoc",
    "reshardingPauseCoordinatorBeforeStartingErrorFlow",
    "reshardingPauseCoordinatorInCloning",
    "reshardingPauseRecipientBeforeCloning",
    "rollbackHangAfterTransitionToRollback",
    "rollbackHangBeforeFinish",
    "rollbackHangBeforeStart",
    "rollbackHangBeforeTransitioningToRollback",
    "rsDelayHeartbeatResponse",
    "rsSyncApplyStop",
    "setMaintenanceModeFailsWithNotSecondary",
    "setSmallOplogGetMoreMaxTimeMS",
    "setYieldAllLocksHang",
    "skipShardFilteringMetadataRefresh",
    "stepdownHangBeforeRSTLEnqueue",
    "stopReplProducer",
    "stopReplProducerOnDocument",
    "suspendRangeDeletion",
    "voteNoInElection",
    "voteYesInDryRunButNoInRealElection",
    "waitAfterCommandFinishesExecution",
    "waitAfterPinningCursorBeforeGetMoreBatch",
    "waitAfterReadCommandFinishesExecution",
    "waitBeforeUnpinningOrDeletingCursorAfterGetMoreBatch",
    "waitForHelloResponse",
    "waitInFindBeforeMakingBatch",
    "waitInHello",
    "waitWithPinnedCursorDuringGetMoreBatch",
];
/// And those of every phase of a coordinator of DDL, of every phase and step of a standstill.
pub const PREFIXES: &[&str] = &[
    "hangDdlCoordinatorBeforePersisting_",
    "hangDdlCoordinatorBeforeRunning_",
    "hangStandstillAfter_",
    "hangStandstillAt_",
    "hangStandstillBefore_",
];

/// Points of the real server which fixtures set on every member, whatever they test. No place here asks about them, because what they
/// speed up or repeat does not happen: a secondary does not wait for a batch to fill, and chooses whom to copy from at once.
const WITHOUT_PLACE: &[&str] = &["forceSyncSourceRetryWaitForInitialSync", "skipOplogBatcherWaitForData"];

/// Whether the point has nothing to act on here; whoever sets it should hear so.
pub fn is_without_place(name: &str) -> bool {
    WITHOUT_PLACE.contains(&name)
}

/// Whether the point may be set.
pub fn is_known(name: &str) -> bool {
    is_without_place(name)
        || NAMES.binary_search(&name).is_ok()
        || PREFIXES.iter().any(|p| name.starts_with(p))
}

#[derive(Clone, Debug)]
struct Point {
    mode: Mode,
    data: Document,
    /// How often the place was passed while the point fired, since the node started.
    entered: i64,
}

/// The fail points of one node.
pub struct FailPoints {
    /// How many points have a mode other than off: the fast path of [`FailPoints::should`].
    active: AtomicUsize,
    points: Mutex<BTreeMap<String, Point>>,
    /// Counts changes of any kind; who waits for one sleeps on it.
    changes: watch::Sender<u64>,
    /// Counts calls of [`FailPoints::configure`].
    configured: watch::Sender<u64>,
}

impl Default for FailPoints {
    fn default() -> Self {
        FailPoints {
            active: AtomicUsize::new(0),
            points: Mutex::default(),
            changes: watch::Sender::new(0),
            configured: watch::Sender::new(0),
        }
    }
}

impl FailPoints {
    pub fn new() -> FailPoints {
        FailPoints::default()
    }

    /// Sets the mode of `name` and returns how often it had been entered so far.
    pub fn configure(&self, name: &str, mode: Mode, data: Document) -> i64 {
        let entered = {
            let mut points = self.points.lock();
            let point = points.entry(name.to_string()).or_insert(Point {
                mode: Mode::Off,
                data: Document::new(),
                entered: 0,
            });
            point.mode = if mode == Mode::Times(0) { Mode::Off } else { mode };
            point.data = data;
            let entered = point.entered;
            self.recount(&points);
            entered
        };
        self.changed();
        self.configured.send_modify(|n| *n += 1);
        entered
    }
    /// Changes whenever a point is configured.
    pub fn configured(&self) -> watch::Receiver<u64> {
        self.configured.subscribe()
    }

    /// Whether the point fires at this passing.
    #[inline]
    pub fn should(&self, name: &str) -> bool {
        self.active.load(Ordering::Relaxed) != 0 && self.enter(name, |_| true).is_some()
    }

    /// The point's data if it fires at this passing and `applies` accepts the data; a passing that is not accepted
    /// uses up neither `times` nor `skip`.
    #[inline]
    pub fn should_with(&self, name: &str, applies: impl FnOnce(&Document) -> bool) -> Option<Document> {
        if self.active.load(Ordering::Relaxed) == 0 {
            return None;
        }
        self.enter(name, applies)
    }

    /// Whether no point is on: one load, for the path of every command.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.active.load(Ordering::Relaxed) == 0
    }

    /// Whether the point is on, without passing it.
    pub fn is_set(&self, name: &str) -> bool {
        self.active.load(Ordering::Relaxed) != 0
            && self.points.lock().get(name).is_some_and(|p| p.mode != Mode::Off)
    }

    /// Passes the place once; if the point fires, waits until it is off. Cancel-safe.
    pub async fn pause_while_set(&self, name: &str) {
        if self.should(name) {
            self.wait_off(name).await;
        }
    }

    /// As [`FailPoints::pause_while_set`], where `applies` accepts the point's data.
    pub async fn pause_while_set_with(&self, name: &str, applies: impl FnOnce(&Document) -> bool) {
        if self.should_with(name, applies).is_some() {
            self.wait_off(name).await;
        }
    }

    /// As [`FailPoints::pause_operation`], for the paths of single documents: while no point is configured it is one load.
    #[inline]
    pub fn hold<'a>(
        &'a self,
        op: &'a Operation,
        name: &'a str,
        ns: &'a str,
    ) -> Option<BoxFuture<'a, Result<()>>> {
        let configured = self.active.load(Ordering::Relaxed) != 0;
        configured.then(|| Box::pin(self.pause_operation(op, name, ns)) as BoxFuture<'a, Result<()>>)
    }

    /// Fails while the point fires, as the real server's points of this kind do.
    ///
    /// # Errors
    /// InternalError (1).
    #[inline]
    pub fn fail_if_set(&self, name: &str) -> Result<()> {
        match self.should(name) {
            true => bail!(INTERNAL_ERROR, "{name} failpoint active!"),
            false => Ok(()),
        }
    }

    /// Passes the place for an operation on `ns`. If the point fires and its data name no other namespace ([`NAMESPACE_FIELDS`]),
    /// waits until it is off; currentOp shows the operation as waiting there meanwhile.
    ///
    /// # Errors
    /// That of the operation's end, unless the data say `shouldContinueOnInterrupt`.
    pub async fn pause_operation(&self, op: &Operation, name: &str, ns: &str) -> Result<()> {
        self.pause_operation_with(op, name, |data| concerns(data, ns)).await
    }

    /// As [`FailPoints::pause_operation`], where `applies` accepts the point's data.
    ///
    /// # Errors
    /// As there.
    pub async fn pause_operation_with(
        &self,
        op: &Operation,
        name: &str,
        applies: impl FnOnce(&Document) -> bool,
    ) -> Result<()> {
        let Some(data) = self.should_with(name, applies) else { return Ok(()) };
        op.set_paused_at(Some(name));
        let waited = op.interruptible(self.wait_off(name)).await;
        op.set_paused_at(None);
        match waited {
            Err(_) if data.get_bool("shouldContinueOnInterrupt") == Some(true) => Ok(()),
            other => other,
        }
    }

    /// Fails with the `errorCode` of the point's data if it fires. Like `failCommand` it lets members of the cluster pass, such
    /// as those that follow this one, unless the data says `failInternalCommands`.
    ///
    /// # Errors
    /// That one.
    pub fn fail_with_code(&self, op: &Operation, name: &str) -> Result<()> {
        let member = op.client.internal.load(Ordering::Relaxed);
        let concerned = |data: &Document| !member || data.get_bool("failInternalCommands") == Some(true);
        let code = self.should_with(name, concerned).and_then(|data| data.get_i64("errorCode"));
        match code.and_then(|code| i32::try_from(code).ok()) {
            Some(code) => Err(document::Error::new(code, format!("Failing command via '{name}' failpoint"))),
            None => Ok(()),
        }
    }

    /// Returns when the point is off.
    pub async fn wait_off(&self, name: &str) {
        let mut changes = self.changes.subscribe();
        while self.is_set(name) {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Waits until the point has been entered `times` times since the node started.
    pub async fn wait_entered(&self, name: &str, times: i64) {
        let mut changes = self.changes.subscribe();
        while self.entered(name) < times {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    pub fn entered(&self, name: &str) -> i64 {
        self.points.lock().get(name).map_or(0, |p| p.entered)
    }

    /// `{mode, data, timesEntered}` of a point that was ever configured.
    pub fn describe(&self, name: &str) -> Option<Document> {
        let points = self.points.lock();
        let point = points.get(name)?;
        let (mode, _) = point.mode.to_document();
        Some(document::doc! { "mode": mode, "data": point.data.clone(), "timesEntered": point.entered })
    }

    /// The names that were ever configured.
    pub fn names(&self) -> Vec<String> {
        self.points.lock().keys().cloned().collect()
    }

    fn enter(&self, name: &str, applies: impl FnOnce(&Document) -> bool) -> Option<Document> {
        let data = {
            let mut points = self.points.lock();
            let point = points.get_mut(name)?;
            if point.mode == Mode::Off || !applies(&point.data) || !fires(&mut point.mode) {
                return None;
            }
            point.entered += 1;
            let data = point.data.clone();
            self.recount(&points);
            data
        };
        self.changed();
        Some(data)
    }
    fn recount(&self, points: &BTreeMap<String, Point>) {
        self.active.store(points.values().filter(|p| p.mode != Mode::Off).count(), Ordering::Relaxed);
    }
    fn changed(&self) {
        self.changes.send_modify(|n| *n += 1);
    }
}

/// Where a point's data name the namespace that it is about.
const NAMESPACE_FIELDS: [&str; 4] = ["nss", "namespace", "collectionNS", "sourceNamespace"];

/// Whether a point with these data is about `ns`: its own namespace, or any.
pub fn concerns(data: &Document, ns: &str) -> bool {
    let named = NAMESPACE_FIELDS.iter().find_map(|field| data.get_str(field));
    named.is_none_or(|wanted| wanted.is_empty() || wanted == ns)
}

fn fires(mode: &mut Mode) -> bool {
    match *mode {
        Mode::Off => false,
        Mode::AlwaysOn => true,
        Mode::Probability(p) => runtime::random::<f64>() < p,
        Mode::Times(n) => {
            *mode = if n <= 1 { Mode::Off } else { Mode::Times(n - 1) };
            n > 0
        }
        Mode::Skip(0) => {
            *mode = Mode::AlwaysOn;
            true
        }
        Mode::Skip(n) => {
            *mode = Mode::Skip(n - 1);
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::doc;

    #[test]
    fn times_turns_itself_off_and_skip_turns_itself_on() {
        let points = FailPoints::new();
        assert!(!points.should("p"));
        points.configure("p", Mode::Times(2), doc! {});
        assert_eq!([points.should("p"), points.should("p"), points.should("p")], [true, true, false]);
        points.configure("p", Mode::Skip(1), doc! {});
        assert_eq!([points.should("p"), points.should("p"), points.should("p")], [false, true, true]);
        assert_eq!(points.configure("p", Mode::Off, doc! {}), 4);
        assert!(!points.should("p"));
    }

    #[test]
    fn a_passing_that_does_not_apply_uses_nothing_up() {
        let points = FailPoints::new();
        points.configure("p", Mode::Times(1), doc! { "x": 1 });
        assert!(points.should_with("p", |d| d.get_i64("x") == Some(2)).is_none());
        assert!(points.should_with("p", |d| d.get_i64("x") == Some(1)).is_some());
        assert!(points.should_with("p", |_| true).is_none());
    }

    #[test]
    fn names_are_sorted_for_their_search() {
        assert!(NAMES.is_sorted() && is_known("failCommand") && !is_known("failComand"));
        assert!(is_known("hangDdlCoordinatorBeforeRunning_commit"));
    }

    #[tokio::test]
    async fn an_operation_waits_only_for_its_namespace_and_says_where() {
        let points = std::sync::Arc::new(FailPoints::new());
        points.configure("p", Mode::AlwaysOn, doc! { "nss": "d.c" });
        let op = std::sync::Arc::new(Operation::internal());
        points.pause_operation(&op, "p", "d.other").await.unwrap();
        let waiting = runtime::spawn({
            let (points, op) = (points.clone(), op.clone());
            async move { points.pause_operation(&op, "p", "d.c").await }
        });
        points.wait_entered("p", 1).await;
        assert_eq!(op.paused_at().as_deref(), Some("p"));
        op.kill(document::codes::INTERRUPTED);
        assert_eq!(waiting.await.unwrap().unwrap_err().code, document::codes::INTERRUPTED);
        assert_eq!((op.paused_at(), points.entered("p")), (None, 1));
    }

    #[tokio::test]
    async fn pausing_ends_when_the_point_is_turned_off() {
        let points = std::sync::Arc::new(FailPoints::new());
        points.configure("p", Mode::AlwaysOn, doc! {});
        let waiting = runtime::spawn({
            let points = points.clone();
            async move { points.pause_while_set("p").await }
        });
        points.wait_entered("p", 1).await;
        assert!(!waiting.is_finished());
        points.configure("p", Mode::Off, doc! {});
        waiting.await.unwrap();
    }
}
