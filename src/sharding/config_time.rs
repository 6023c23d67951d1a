//! The config server's time: since when a node knows of the catalog.
//!
//! For some seconds two members of the config server's set may both believe that they lead it, and the one that is wrong answers with a
//! catalog of before. So every node keeps the newest time of the set that it has heard of, nodes name it to one another in
//! `$configTime`, and whoever reads the catalog asks for it as of that time, which a member that is behind cannot answer.
//!
//! ```text
//! config server                 shard                         router
//!    commits at 7, replies 7 -->  7: reads as of 7
//!                                   replies 7 ----------------->  7: reads as of 7
//! ```
//!
//! Invariant: who has learned of a change of the catalog, by a reply or by a request, reads nothing from before it. A shard's primary writes
//! the time down (`config.vectorClock`) in front of what follows from such a change, which are the decision of a migration, the phase of a
//! coordinator, the state of a resharding and what it has read of placement: so it holds after a restart, and for the next primary.

use document::{Document, Timestamp, Value, doc};
use std::sync::atomic::{AtomicU64, Ordering};

/// The field of requests and replies between nodes.
pub const FIELD: &str = "$configTime";

/// The newest time heard of; the default one until there is any.
#[derive(Default)]
pub struct ConfigTime(AtomicU64);

impl ConfigTime {
    pub fn get(&self) -> Timestamp {
        Timestamp::from_u64(self.0.load(Ordering::SeqCst))
    }
    pub fn hear(&self, time: Timestamp) {
        self.0.fetch_max(time.as_u64(), Ordering::SeqCst);
    }
    /// The read concern of whoever reads the catalog.
    pub fn read_concern(&self) -> Document {
        let mut concern = doc! { "level": "majority" };
        let time = self.get();
        if time != Timestamp::default() {
            concern.push("afterClusterTime", Value::Timestamp(time));
        }
        concern
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_are_as_of_the_newest_time_heard_of() {
        let time = ConfigTime::default();
        assert_eq!(time.read_concern(), doc! { "level": "majority" });
        let at = |secs| Timestamp { secs, inc: 1 };
        time.hear(at(7));
        time.hear(at(5));
        assert_eq!(
            time.read_concern(),
            doc! { "level": "majority", "afterClusterTime": (Value::Timestamp(at(7))) }
        );
    }
}
