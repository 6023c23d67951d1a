//! Whether placement that was read from the config server replaces what a shard has installed.
//!
//! # Who may be waiting for whom
//!
//! ```text
//! who waits                                for whom                     how it ends
//! a request with a version that is news    the refresh of its shard     installed, or its error; the router then tries again
//! a refresh                                the one before it            one at a time for each namespace, so no older reading lands on a newer
//!                                          the config server            its answer; an error goes to all who wait and the next request asks anew
//! a request in a critical section          the section, not a refresh   it is released when the outcome is installed
//! a secondary                              its primary's refresh        the primary writes what it learned; the secondary knows it when it has applied that
//! ```
//! A refresh waits for no latch and no section, so those who wait for sections can refresh.

use crate::version::ShardVersion;

/// What is installed, or was read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Known {
    Unknown,
    Unsharded,
    /// The collection version.
    Sharded(ShardVersion),
}

/// Whether `read` takes the place of `installed`. Readings are made one after another, each after the last was
/// installed, so "not sharded" and another generation are news; within a generation only a newer version is.
pub fn replaces(installed: Known, read: Known) -> bool {
    match (installed, read) {
        (_, Known::Unknown) => false,
        (Known::Sharded(old), Known::Sharded(new)) => {
            !old.same_generation(&new) && new.timestamp >= old.timestamp
                || old.partial_order(&new).is_some_and(|o| o.is_lt())
        }
        (old, new) => old != new,
    }
}

/// Whether a request that was sent with `received` is news to a shard that has `installed`: then it has to refresh.
pub fn is_news(installed: Known, received: Option<ShardVersion>) -> bool {
    match (installed, received) {
        (Known::Unknown, _) | (_, None) => true,
        (Known::Unsharded, Some(v)) => v != ShardVersion::UNTRACKED,
        // The router believes that it is not sharded: it may have been dropped, so both look.
        (Known::Sharded(_), Some(v)) if v == ShardVersion::UNTRACKED => true,
        (Known::Sharded(own), Some(v)) => own.partial_order(&v).is_none_or(|o| o.is_lt()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::{ObjectId, Timestamp};

    fn v(t: u32, major: u32, minor: u32) -> ShardVersion {
        ShardVersion::new(ObjectId([t as u8; 12]), Timestamp::new(t, 0), major, minor)
    }

    #[test]
    fn placement_never_goes_back_within_a_generation() {
        assert!(replaces(Known::Sharded(v(1, 2, 0)), Known::Sharded(v(1, 2, 1))));
        assert!(!replaces(Known::Sharded(v(1, 2, 1)), Known::Sharded(v(1, 2, 1))));
        assert!(!replaces(Known::Sharded(v(1, 3, 0)), Known::Sharded(v(1, 2, 9))));
        assert!(replaces(Known::Sharded(v(1, 3, 0)), Known::Sharded(v(2, 1, 0))));
        assert!(!replaces(Known::Sharded(v(2, 1, 0)), Known::Sharded(v(1, 9, 0))));
        assert!(replaces(Known::Sharded(v(1, 3, 0)), Known::Unsharded));
        assert!(replaces(Known::Unknown, Known::Unsharded));
        assert!(!replaces(Known::Unsharded, Known::Unsharded));
    }

    #[test]
    fn a_shard_refreshes_for_what_it_does_not_know_and_not_for_what_is_old() {
        assert!(is_news(Known::Sharded(v(1, 2, 0)), Some(v(1, 3, 0))));
        assert!(!is_news(Known::Sharded(v(1, 3, 0)), Some(v(1, 2, 0))));
        assert!(is_news(Known::Unsharded, Some(v(1, 1, 0))));
        assert!(is_news(Known::Unknown, Some(v(1, 1, 0))));
    }
}
