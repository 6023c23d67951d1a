//! The four things a test can run against.

use serde::{Deserialize, Serialize};

/// A fixture's shape. The name is what options, suites and reports call it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, clap::ValueEnum, Deserialize, Serialize,
)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    /// No servers: the test starts its own.
    None,
    /// One node without replication.
    Standalone,
    /// One replica set.
    Set,
    /// Two shards, a config server and a router.
    Sharded,
}

impl Kind {
    #[cfg(test)]
    pub(super) const ALL: [Kind; 4] = [Kind::None, Kind::Standalone, Kind::Set, Kind::Sharded];

    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::None => "none",
            Kind::Standalone => "standalone",
            Kind::Set => "set",
            Kind::Sharded => "sharded",
        }
    }
}
