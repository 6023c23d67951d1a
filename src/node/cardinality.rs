//! Whether the cluster has several shards: the cluster parameter `shardedClusterCardinalityForDirectConns`.

use crate::cluster_parameters::Copied;
use document::Document;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

pub const PARAMETER: &str = "shardedClusterCardinalityForDirectConns";
pub const FIELD: &str = "hasTwoOrMoreShards";

#[derive(Default)]
pub struct Cardinality {
    several: AtomicBool,
}

impl Copied for Cardinality {
    fn name(&self) -> &'static str {
        PARAMETER
    }
    fn learn(&self, parameter: &Document) {
        self.several.store(parameter.get_bool(FIELD) == Some(true), Relaxed);
    }
}

impl Cardinality {
    /// False where the config server has not said so yet.
    pub fn several_shards(&self) -> bool {
        self.several.load(Relaxed)
    }
}
