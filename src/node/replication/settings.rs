//! What the parameters say of replication.

use crate::parameters::Parameters;
use protocol::replication::source::Preference;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// How far apart in time, in milliseconds, the oldest and the newest entry may be that a rollback takes back.
    pub(super) rollback_max_ms: i64,
    /// Whether a rollback keeps what it takes back in files.
    pub(super) keeps_rolled_back: bool,
    /// How many entries, and how many bytes of them, are applied before readers see any.
    pub(super) batch_entries: usize,
    pub(super) batch_bytes: usize,
    /// After how many copies that have failed this member gives up.
    pub(super) copy_attempts: u32,
    /// How often, a second apart, an attempt looks for a member to copy from.
    pub(super) copy_looks: u32,
    /// Whether sources send the entries that follow by themselves.
    pub(super) streams: bool,
    /// How long a source that cannot be reached is asked again for more of its copy.
    pub(super) copy_retry: Duration,
    /// How long the first find on an oplog may take, in milliseconds.
    pub(super) first_find_ms: i64,
    /// How many seconds behind others a source may be.
    pub(super) source_lag_secs: u64,
    /// Whether a primary that steps down has another member stand at once.
    pub(super) hands_over: bool,
    /// Share of the election timeout by which its timer is put off at random.
    pub(super) offset_fraction: f64,
    /// Whom it copies from; `None` leaves it to the configuration.
    pub(super) copy_from: Option<Preference>,
}

impl Settings {
    pub fn of(parameters: &Parameters) -> Settings {
        let count = |name| usize::try_from(parameters.int(name)).unwrap_or(0).max(1);
        let seconds = |name| u64::try_from(parameters.int(name)).unwrap_or(0);
        Settings {
            rollback_max_ms: parameters.int("rollbackTimeLimitSecs").saturating_mul(1000),
            keeps_rolled_back: parameters.bool("createRollbackDataFiles"),
            batch_entries: count("replBatchLimitOperations"),
            batch_bytes: count("replBatchLimitBytes"),
            copy_attempts: u32::try_from(parameters.int("numInitialSyncAttempts")).unwrap_or(1),
            copy_looks: u32::try_from(parameters.int("numInitialSyncConnectAttempts")).unwrap_or(1),
            streams: parameters.bool("oplogFetcherUsesExhaust"),
            copy_retry: Duration::from_secs(seconds("initialSyncTransientErrorRetryPeriodSeconds")),
            first_find_ms: parameters.int("oplogInitialFindMaxSeconds").max(1).saturating_mul(1000),
            source_lag_secs: seconds("maxSyncSourceLagSecs"),
            hands_over: parameters.bool("enableElectionHandoff"),
            offset_fraction: parameters.double("replElectionTimeoutOffsetLimitFraction"),
            copy_from: Preference::named(&parameters.text("initialSyncSourceReadPreference")),
        }
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings::of(&Parameters::default())
    }
}
