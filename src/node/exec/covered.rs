//! Documents made of index keys, for plans that need no others.

use document::key_values::{self, Kinds};
use document::{Doc, DocWriter, key_string};
use query::planner::IndexScan;

/// What is read of a key.
pub(super) struct Covered {
    /// Of each field its path, whether it descends, and whether it is wanted.
    fields: Vec<(String, bool, bool)>,
}

impl Covered {
    /// `None` for a scan that leads to documents.
    pub(super) fn of(scan: &IndexScan) -> Option<Covered> {
        let fields = scan.key.keys().zip(scan.descending()).zip(&scan.covered);
        let fields: Vec<_> = fields.map(|((path, down), wanted)| (path.to_string(), down, *wanted)).collect();
        (!fields.is_empty()).then_some(Covered { fields })
    }
    /// The wanted fields in the order of the index, written in place of what `out` holds; `None` where the key does not tell
    /// one of them.
    pub(super) fn read<'o>(&self, key: &[u8], kinds: Kinds, out: &'o mut Vec<u8>) -> Option<Doc<'o>> {
        out.clear();
        let mut told = None;
        DocWriter::write(out, |w| told = self.write(key, kinds, w));
        told.map(|()| Doc::from_validated(out))
    }
    fn write(&self, mut key: &[u8], kinds: Kinds, w: &mut DocWriter<'_>) -> Option<()> {
        for (at, (path, descending, wanted)) in self.fields.iter().enumerate() {
            let length = match wanted {
                false => key_string::component_length(key, *descending)?,
                true if !kinds.tells(at) => return None,
                true => {
                    let (value, length) = key_values::read(key, *descending, kinds, at)?;
                    value?.write(w, path);
                    length
                }
            };
            key = key.get(length..)?;
        }
        Some(())
    }
}

/// Where to go on from a key so that some leading fields differ.
pub(super) struct Skip {
    descending: Vec<bool>,
}

impl Skip {
    pub(super) fn of(scan: &IndexScan) -> Option<Skip> {
        scan.skips_after.map(|fields| Skip { descending: scan.descending().take(fields).collect() })
    }
    /// The least key behind all that share the leading fields; `None` to go to the next key, where the last of them is null.
    pub(super) fn behind(&self, key: &[u8]) -> Option<Vec<u8>> {
        let mut at = 0;
        for (i, descending) in self.descending.iter().enumerate() {
            let rest = key.get(at..)?;
            if i + 1 == self.descending.len() && key_values::may_be_missing(rest, *descending) {
                return None;
            }
            at += key_string::component_length(rest, *descending)?;
        }
        storage::index::prefix_end(key.get(..at)?)
    }
}
