//! Nodes in memory, for tests.

use crate::{Node, NodeOptions, Opened};
use std::path::PathBuf;
use std::sync::Arc;
use storage::files::MemoryFiles;
use storage::log::{LogOptions, RealClock, SyncPolicy};

/// A node over `files`, which outlive it.
pub(crate) fn open(set: Option<&str>, files: &MemoryFiles, adapt: impl FnOnce(&mut LogOptions)) -> Arc<Node> {
    let mut log = LogOptions { sync: SyncPolicy::Never, ..LogOptions::default() };
    adapt(&mut log);
    let options = NodeOptions {
        files: Arc::new(files.clone()),
        dir: PathBuf::from("/data"),
        log,
        clock: Arc::new(RealClock),
        replica_set: set.map(str::to_string),
        host: "h:1".to_string(),
    };
    let Opened { node, .. } = Node::open(options).unwrap();
    node
}

/// A set of one, of such a node.
pub(crate) fn config() -> crate::replication::SetConfig {
    let document = crate::replication::SetConfig::default_for("rs", "h:1");
    crate::replication::SetConfig::parse(&document).unwrap()
}

/// A fresh node.
pub(crate) fn node(set: Option<&str>) -> Arc<Node> {
    open(set, &MemoryFiles::default(), |_| {})
}
