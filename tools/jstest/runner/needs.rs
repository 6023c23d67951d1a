//! What tags ask of a fixture: the one table of it.
//!
//! A tag that is not here asks for nothing. The fixture `none` offers everything, since a test on it starts the servers
//! it wants; the other way round a test which starts servers of its own has no business on a fixture.

use super::kind::Kind;
use super::suite::Passthrough;

/// The feature compatibility version of the servers, as the digits of a `requires_fcv_` tag.
const VERSION: u32 = 80;

const ANY_SERVER: &[Kind] = &[Kind::Standalone, Kind::Set, Kind::Sharded];
const REPLICATED: &[Kind] = &[Kind::Set, Kind::Sharded];
const NOT_ROUTED: &[Kind] = &[Kind::Standalone, Kind::Set];

/// One tag, the fixtures that offer what it asks for, and the words for what that is.
struct Need {
    tag: &'static str,
    offered_by: &'static [Kind],
    what: &'static str,
}

const fn need(tag: &'static str, offered_by: &'static [Kind], what: &'static str) -> Need {
    Need { tag, offered_by, what }
}

const NEEDS: &[Need] = &[
    need("requires_own_servers", &[], "starts its own servers (fixture none)"),
    need("requires_standalone", &[Kind::Standalone], "needs a standalone node"),
    need("assumes_standalone_mongod", &[Kind::Standalone], "needs a standalone node"),
    need("requires_replication", REPLICATED, "needs replication"),
    need("requires_replica_set", &[Kind::Set], "needs a replica set of its own"),
    need("requires_sharding", &[Kind::Sharded], "needs a sharded cluster"),
    need("requires_mongos", &[Kind::Sharded], "needs a router"),
    need("assumes_against_mongod_not_mongos", NOT_ROUTED, "needs a node and no router"),
    need("uses_transactions", REPLICATED, "needs transactions"),
    need("uses_prepare_transaction", REPLICATED, "needs transactions"),
    need("uses_multi_shard_transaction", &[Kind::Sharded], "needs transactions over shards"),
    need("uses_snapshot_read_concern", REPLICATED, "needs snapshot reads"),
    need("uses_change_streams", REPLICATED, "needs change streams"),
    need("requires_majority_read_concern", REPLICATED, "needs majority reads"),
    need("requires_retryable_writes", REPLICATED, "needs retryable writes"),
];

/// Tags of tests that cannot run when collections are sharded behind their back.
const UNSHARDED: &[&str] = &[
    "assumes_unsharded_collection",
    "assumes_no_implicit_collection_creation_after_drop",
    "assumes_no_implicit_collection_creation_on_get_collection",
    "assumes_no_implicit_index_creation",
    "cannot_create_unique_index_when_using_hashed_shard_key",
    "expects_explicit_underscore_id_index",
];

/// Why a test with these tags is skipped on a fixture; `None` when it may run.
pub(super) fn unmet(tags: &[String], kind: Kind, passthrough: &[Passthrough]) -> Option<String> {
    tags.iter().find_map(|tag| unmet_by(tag, kind, passthrough))
}

fn unmet_by(tag: &str, kind: Kind, passthrough: &[Passthrough]) -> Option<String> {
    if let Some(digits) = tag.strip_prefix("requires_fcv_")
        && digits.parse::<u32>().is_ok_and(|version| version > VERSION)
    {
        return Some(format!("{tag}: needs a later version"));
    }
    if kind == Kind::None {
        return None;
    }
    if passthrough.contains(&Passthrough::ShardCollections) && UNSHARDED.contains(&tag) {
        return Some(format!("{tag}: needs unsharded collections"));
    }
    let need = NEEDS.iter().find(|n| n.tag == tag)?;
    (!need.offered_by.contains(&kind)).then(|| format!("{tag}: {}", need.what))
}

/// The smallest fixture that offers what these tags ask for. Contradictory tags get the standalone node, which skips
/// them with the reason.
pub(super) fn smallest_fixture(tags: &[String]) -> Kind {
    if tags.iter().any(|t| t == "requires_own_servers") {
        return Kind::None;
    }
    let fits = |kind: &&Kind| unmet(tags, **kind, &[]).is_none();
    ANY_SERVER.iter().find(fits).copied().unwrap_or(Kind::Standalone)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(names: &[&str]) -> Vec<String> {
        names.iter().map(|n| n.to_string()).collect()
    }

    #[test]
    fn a_test_without_tags_runs_everywhere() {
        assert!(Kind::ALL.iter().all(|&k| unmet(&[], k, &[]).is_none()));
        assert_eq!(smallest_fixture(&[]), Kind::Standalone);
    }

    #[test]
    fn needs_exclude_fixtures_that_do_not_offer_them() {
        let sharding = tags(&["requires_sharding"]);
        assert!(unmet(&sharding, Kind::Set, &[]).unwrap().contains("sharded cluster"));
        assert!(unmet(&sharding, Kind::Sharded, &[]).is_none());
        assert_eq!(smallest_fixture(&sharding), Kind::Sharded);
        assert_eq!(smallest_fixture(&tags(&["uses_transactions"])), Kind::Set);
    }

    #[test]
    fn own_servers_run_only_without_a_fixture() {
        let own = tags(&["requires_own_servers", "requires_sharding"]);
        assert!(ANY_SERVER.iter().all(|&k| unmet(&own, k, &[]).is_some()));
        assert!(unmet(&own, Kind::None, &[]).is_none());
        assert_eq!(smallest_fixture(&own), Kind::None);
    }

    #[test]
    fn later_versions_are_skipped() {
        assert!(unmet(&tags(&["requires_fcv_80"]), Kind::Set, &[]).is_none());
        assert!(unmet(&tags(&["requires_fcv_81"]), Kind::None, &[]).is_some());
        assert!(unmet(&tags(&["requires_fcv_100"]), Kind::Set, &[]).is_some());
    }

    #[test]
    fn implicit_sharding_skips_what_assumes_unsharded_collections() {
        let assumes = tags(&["assumes_unsharded_collection"]);
        assert!(unmet(&assumes, Kind::Sharded, &[]).is_none());
        assert!(unmet(&assumes, Kind::Sharded, &[Passthrough::ShardCollections]).is_some());
    }
}
