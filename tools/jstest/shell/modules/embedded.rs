//! Modules that are part of this program, so that `import {ShardingTest} from "jstests/libs/shardingtest.js"` works
//! where there is no such file.

/// What the names of embedded modules begin with, so that no path is taken for one.
pub(super) const SCHEME: &str = "embedded:";

macro_rules! modules {
    ($($name:literal)*) => {
        &[$((concat!($name, ".js"), include_str!(concat!("../../prelude/modules/", $name, ".js")))),*]
    };
}

/// Every module as file name and source. A new file of `prelude/modules` needs its name here.
const MODULES: &[(&str, &str)] = modules!(
    "analyze_plan" "auto_retry_transaction_in_sharding" "check_cluster_helpers" "check_log"
    "check_metadata_consistency_helpers" "check_orphans_are_deleted_helpers"
    "check_routing_table_consistency_helpers" "check_shard_filtering_metadata_helpers"
    "chunk_bounds_util" "chunk_manipulation_util" "cleanup_orphaned_util" "collection_drop_recreate"
    "config_shard_util" "create_sharded_collection_util" "curop_helpers" "discover_topology"
    "fail_point_util" "feature_flag_util" "find_chunks_util" "fixture_helpers" "get_index_helpers"
    "index_catalog_helpers" "log" "namespace_utils" "os_helpers" "parallelTester"
    "parallel_shell_helpers" "profiler" "remove_shard_util" "replsettest" "retryable_writes_util"
    "rslib" "sbe_util" "server_types" "servers" "shard_versioning_util" "sharded_index_util" "shardingtest"
    "storage_engine_utils" "test_background_ops" "transactions_util" "ttl_util" "utils" "uuid_util" "wait_for_command"
    "write_concern_util"
);

/// The module of a `jstests/...` path, by its file name: a library has moved between directories from one release of
/// the tests to the next, and is the same.
pub(super) fn find(path: &str) -> Option<(&'static str, &'static str)> {
    let file = path.strip_prefix("jstests/").and_then(|rest| rest.rsplit('/').next()).unwrap_or(path);
    MODULES.iter().find(|(known, _)| *known == file).copied()
}

#[cfg(test)]
mod tests {
    use super::{MODULES, find};

    #[test]
    fn every_module_file_is_embedded() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../prelude/modules");
        for entry in std::fs::read_dir(directory).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(MODULES.iter().any(|(known, _)| *known == name), "{name} is not in the table");
        }
    }

    #[test]
    fn a_module_is_found_in_whatever_directory_of_tests() {
        assert_eq!(find("jstests/libs/shardingtest.js").unwrap().0, "shardingtest.js");
        assert_eq!(find("jstests/sharding/libs/find_chunks_util.js").unwrap().0, "find_chunks_util.js");
        assert!(find("other/libs/shardingtest.js").is_none());
        assert!(find("jstests/libs/no_such.js").is_none());
    }
}
