//! What changed between two snapshots: a merge of two cursors that skips the subtrees and records both share.
//!
//! Shared means the same pointer, which works because both snapshots are alive during the walk. When both cursors stand
//! on the same entry of the same leaf, everything up to the end of the highest common node on their paths is equal. A
//! shared subtree is always met that way: its first entry is in both, and the merge reaches it in both at once.

use super::Snapshot;
use super::cursor::Cursor;
use std::cmp::Ordering;
use std::ops::Bound;

/// One key whose value differs between two snapshots; at least one side is present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change<'a> {
    pub key: &'a [u8],
    pub before: Option<&'a [u8]>,
    pub after: Option<&'a [u8]>,
}

/// The changes between two snapshots, in key order.
pub struct Difference<'a> {
    before: Cursor<'a>,
    after: Cursor<'a>,
    hi: Bound<Vec<u8>>,
}

/// What changed from `before` to `after` within the bounds, in key order. The cost is that of what the two do not share:
/// for snapshots of one lineage about the number of changes. A record rewritten with the same bytes is no change. To
/// resume, pass `Excluded` of the last key as `lo`.
pub fn difference<'a>(
    before: &'a Snapshot,
    after: &'a Snapshot,
    lo: Bound<&[u8]>,
    hi: Bound<&[u8]>,
) -> Difference<'a> {
    let (mut before, mut after) = (before.cursor(), after.cursor());
    before.seek_lower(lo);
    after.seek_lower(lo);
    Difference { before, after, hi: hi.map(<[u8]>::to_vec) }
}

impl Difference<'_> {
    fn is_beyond(&self, key: &[u8]) -> bool {
        match &self.hi {
            Bound::Unbounded => false,
            Bound::Included(hi) => key > hi.as_slice(),
            Bound::Excluded(hi) => key >= hi.as_slice(),
        }
    }
}

impl<'a> Iterator for Difference<'a> {
    type Item = Change<'a>;

    fn next(&mut self) -> Option<Change<'a>> {
        loop {
            if self.before.is_with(&self.after) {
                self.before.skip_shared(&mut self.after);
                continue;
            }
            let shared = self.before.record() == self.after.record();
            let (before, after) = (self.before.entry(), self.after.entry());
            let order = match (before, after) {
                (None, None) => return None,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(_), Some(_)) if shared => Ordering::Equal,
                (Some((b, _)), Some((a, _))) => b.cmp(a),
            };
            let (key, _) = if order == Ordering::Greater { after? } else { before? };
            if self.is_beyond(key) {
                return None;
            }
            if order != Ordering::Greater {
                self.before.next();
            }
            if order != Ordering::Less {
                self.after.next();
            }
            let before = before.filter(|_| order != Ordering::Greater).map(|(_, value)| value);
            let after = after.filter(|_| order != Ordering::Less).map(|(_, value)| value);
            if !shared && before != after {
                return Some(Change { key, before, after });
            }
        }
    }
}
