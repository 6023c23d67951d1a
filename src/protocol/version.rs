//! Placement versions as requests between nodes carry them.
//!
//! A *shard version* names the incarnation of a sharded collection (epoch and timestamp) and how far the placement
//! of its chunks has advanced (major, minor). A *database version* does the same for the primary of a database.

use document::{Doc, DocWriter, Document, ObjectId, Timestamp, Value, ValueRef, doc};
use std::cmp::Ordering;

/// `{e: epoch, t: timestamp, v: Timestamp(major, minor)}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ShardVersion {
    pub epoch: ObjectId,
    pub timestamp: Timestamp,
    /// `secs` is the major version, `inc` the minor.
    pub placement: Timestamp,
}

impl ShardVersion {
    /// The collection is not sharded: the request relies on the database version instead.
    pub const UNTRACKED: ShardVersion = ShardVersion {
        epoch: ObjectId([0; 12]),
        timestamp: Timestamp { secs: 0, inc: 0 },
        placement: Timestamp { secs: 0, inc: 0 },
    };
    /// The receiver skips the check.
    pub const IGNORED: ShardVersion = ShardVersion {
        epoch: ObjectId([0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]),
        timestamp: Timestamp::MAX,
        placement: Timestamp { secs: 0, inc: 0 },
    };

    pub fn new(epoch: ObjectId, timestamp: Timestamp, major: u32, minor: u32) -> ShardVersion {
        ShardVersion { epoch, timestamp, placement: Timestamp::new(major, minor) }
    }
    pub fn major(&self) -> u32 {
        self.placement.secs
    }
    pub fn minor(&self) -> u32 {
        self.placement.inc
    }
    /// The same generation with another placement.
    pub fn at(&self, placement: Timestamp) -> ShardVersion {
        ShardVersion { placement, ..*self }
    }
    pub fn same_generation(&self, other: &ShardVersion) -> bool {
        self.timestamp == other.timestamp && self.epoch == other.epoch
    }
    /// A request of version `self` may run where `wanted` is in force: same generation and same major version;
    /// minor differences (split, merge) never make a request stale.
    pub fn compatible_with(&self, wanted: &ShardVersion) -> bool {
        self.same_generation(wanted) && self.major() == wanted.major()
    }
    /// Newer is: a later generation, then a larger major, then a larger minor. `None` when not comparable.
    pub fn partial_order(&self, other: &ShardVersion) -> Option<Ordering> {
        for v in [self, other] {
            if *v == ShardVersion::IGNORED || *v == ShardVersion::UNTRACKED {
                return None;
            }
        }
        Some((self.timestamp, self.placement).cmp(&(other.timestamp, other.placement)))
    }
    /// `None` when the members are not of the right types.
    pub fn parse(doc: Doc<'_>) -> Option<ShardVersion> {
        let (mut epoch, mut timestamp, mut placement) = (None, None, None);
        for e in doc.iter() {
            match (e.name_bytes(), e.value()) {
                (b"e", ValueRef::ObjectId(v)) => epoch = Some(v),
                (b"t", ValueRef::Timestamp(v)) => timestamp = Some(v),
                (b"v", ValueRef::Timestamp(v)) => placement = Some(v),
                _ => {}
            }
        }
        Some(ShardVersion { epoch: epoch?, timestamp: timestamp?, placement: placement? })
    }
    pub fn from_document(d: &Document) -> Option<ShardVersion> {
        Some(ShardVersion {
            epoch: d.get("e")?.as_object_id()?,
            timestamp: d.get("t")?.as_timestamp()?,
            placement: d.get("v")?.as_timestamp()?,
        })
    }
    pub fn to_document(&self) -> Document {
        doc! { "e": self.epoch, "t": self.timestamp, "v": self.placement }
    }
    pub fn write(&self, w: &mut DocWriter<'_>, name: &str) {
        w.document_with(name, |w| {
            w.object_id("e", self.epoch);
            w.timestamp("t", self.timestamp);
            w.timestamp("v", self.placement);
        });
    }
    /// `major|minor||epoch||timestamp`, as log lines and messages spell it.
    pub fn log_form(&self) -> String {
        let t = self.timestamp;
        format!("{}|{}||{}||Timestamp({}, {})", self.major(), self.minor(), self.epoch.hex(), t.secs, t.inc)
    }
}

/// `{uuid, timestamp, lastMod}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DatabaseVersion {
    pub uuid: [u8; 16],
    pub timestamp: Timestamp,
    pub last_mod: i32,
}

impl DatabaseVersion {
    pub fn parse(doc: Doc<'_>) -> Option<DatabaseVersion> {
        let (mut uuid, mut timestamp, mut last_mod) = (None, None, None);
        for e in doc.iter() {
            match e.name_bytes() {
                b"uuid" => uuid = e.value().as_uuid(),
                b"timestamp" => timestamp = e.value().as_timestamp(),
                b"lastMod" => last_mod = e.value().as_i64(),
                _ => {}
            }
        }
        Some(DatabaseVersion { uuid: uuid?, timestamp: timestamp?, last_mod: i32::try_from(last_mod?).ok()? })
    }
    pub fn from_document(d: &Document) -> Option<DatabaseVersion> {
        DatabaseVersion::parse(d.to_doc_buf().doc())
    }
    pub fn to_document(&self) -> Document {
        doc! { "uuid": Value::uuid(self.uuid), "timestamp": self.timestamp, "lastMod": self.last_mod }
    }
    pub fn write(&self, w: &mut DocWriter<'_>, name: &str) {
        w.document_with(name, |w| {
            w.uuid("uuid", &self.uuid);
            w.timestamp("timestamp", self.timestamp);
            w.i32("lastMod", self.last_mod);
        });
    }
    /// A later timestamp is newer; within one, a larger lastMod.
    pub fn order(&self, other: &DatabaseVersion) -> Ordering {
        (self.timestamp, self.last_mod).cmp(&(other.timestamp, other.last_mod))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(t: u32, major: u32, minor: u32) -> ShardVersion {
        ShardVersion::new(ObjectId([t as u8; 12]), Timestamp::new(t, 0), major, minor)
    }

    #[test]
    fn a_minor_difference_is_compatible_and_a_major_or_generation_difference_is_not() {
        assert!(version(1, 3, 1).compatible_with(&version(1, 3, 9)));
        assert!(!version(1, 3, 1).compatible_with(&version(1, 4, 1)));
        assert!(!version(1, 3, 1).compatible_with(&version(2, 3, 1)));
    }

    #[test]
    fn versions_survive_the_wire() {
        let v = version(7, 2, 5);
        assert_eq!(ShardVersion::parse(v.to_document().to_doc_buf().doc()), Some(v));
        let d = DatabaseVersion { uuid: [3; 16], timestamp: Timestamp::new(9, 1), last_mod: 2 };
        assert_eq!(DatabaseVersion::parse(d.to_document().to_doc_buf().doc()), Some(d));
    }

    #[test]
    fn untracked_and_ignored_are_not_comparable() {
        assert_eq!(version(1, 1, 0).partial_order(&ShardVersion::UNTRACKED), None);
        assert_eq!(ShardVersion::IGNORED.partial_order(&version(1, 1, 0)), None);
        assert_eq!(version(1, 1, 0).partial_order(&version(1, 1, 1)), Some(Ordering::Less));
    }
}
