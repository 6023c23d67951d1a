//! How long a client's read may take that does not say so itself: the cluster parameter `defaultMaxTimeMS`.

use crate::cluster_parameters::Copied;
use document::Document;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::Duration;

/// The parameter, in milliseconds; 0 is no limit.
#[derive(Default)]
pub struct DefaultTime {
    reads: AtomicI64,
}

impl Copied for DefaultTime {
    fn name(&self) -> &'static str {
        "defaultMaxTimeMS"
    }
    fn learn(&self, parameter: &Document) {
        self.reads.store(parameter.get_i64("readOperations").unwrap_or(0), Relaxed);
    }
}

impl DefaultTime {
    /// The limit of a read that gives none.
    pub fn of_reads(&self) -> Option<Duration> {
        let millis = u64::try_from(self.reads.load(Relaxed)).ok().filter(|n| *n > 0);
        millis.map(Duration::from_millis)
    }
}
