//! Documents made of index keys, for plans that need no others.

use document::key_values::{self, Kinds};
use document::{Doc, DocWriter, Value, key_string};
use query::planner::{Direction, IndexScan, Skips};

/// What is read of a key.
pub(super) struct Covered {
    /// Of each field whether it descends, and whether it is wanted.
    fields: Vec<(bool, bool)>,
    /// The documents that the wanted fields make.
    shape: Vec<(String, Part)>,
}

/// What stands under a name of a document.
enum Part {
    /// The value of the field at this position of the index.
    Field(usize),
    Document(Vec<(String, Part)>),
}

/// Space for a document made of a key.
#[derive(Default)]
pub(super) struct Made {
    values: Vec<Value>,
    bytes: Vec<u8>,
}

impl Covered {
    /// `None` for a scan that leads to documents.
    pub(super) fn of(scan: &IndexScan) -> Option<Covered> {
        let fields: Vec<_> = scan.descending().zip(scan.covered.iter().copied()).collect();
        let mut shape = Vec::new();
        for (at, (path, _)) in
            scan.key.keys().zip(&scan.covered).enumerate().filter(|(_, (_, wanted))| **wanted)
        {
            place(&mut shape, path, at);
        }
        (!fields.is_empty()).then_some(Covered { fields, shape })
    }
    /// The wanted fields in the order of the index; `None` where the key does not tell one of them.
    pub(super) fn read<'o>(&self, mut key: &[u8], kinds: Kinds, made: &'o mut Made) -> Option<Doc<'o>> {
        made.values.clear();
        for (at, (descending, wanted)) in self.fields.iter().enumerate() {
            let (value, length) = match wanted {
                false => (Value::Null, key_string::component_length(key, *descending)?),
                true if !kinds.tells(at) => return None,
                true => {
                    let (value, length) = key_values::read(key, *descending, kinds, at)?;
                    (value?, length)
                }
            };
            made.values.push(value);
            key = key.get(length..)?;
        }
        made.bytes.clear();
        DocWriter::write(&mut made.bytes, |w| write(&self.shape, &made.values, w));
        Some(Doc::from_validated(&made.bytes))
    }
}

/// Puts the field at position `at` of the index under its path.
fn place(parts: &mut Vec<(String, Part)>, path: &str, at: usize) {
    let Some((name, rest)) = path.split_once('.') else {
        return parts.push((path.to_string(), Part::Field(at)));
    };
    let there = parts.iter_mut().find_map(|(own, part)| match part {
        Part::Document(inner) if own == name => Some(inner),
        _ => None,
    });
    if let Some(inner) = there {
        return place(inner, rest, at);
    }
    let mut inner = Vec::new();
    place(&mut inner, rest, at);
    parts.push((name.to_string(), Part::Document(inner)));
}

fn write(parts: &[(String, Part)], values: &[Value], w: &mut DocWriter<'_>) {
    for (name, part) in parts {
        match part {
            Part::Field(at) => values.get(*at).into_iter().for_each(|v| v.write(w, name)),
            Part::Document(inner) => w.document_with(name, |w| write(inner, values, w)),
        }
    }
}

/// Where to go on from a key so that some leading fields differ.
pub(super) struct Skip {
    descending: Vec<bool>,
    /// Whether keys are skipped whose last such field is null.
    nulls: bool,
    direction: Direction,
}

/// Where a scan goes on.
pub(super) enum Behind {
    /// At the first key from here.
    From(Vec<u8>),
    /// At the last key before this one.
    Before(Vec<u8>),
}

impl Skip {
    /// `None` where each key differs from the next one anyway.
    pub(super) fn of(scan: &IndexScan) -> Option<Skip> {
        let Skips { fields, nulls } = scan.skips.filter(|s| !scan.unique || s.fields < scan.key.len())?;
        Some(Skip { descending: scan.descending().take(fields).collect(), nulls, direction: scan.direction })
    }
    /// Behind all keys that share the leading fields; `None` to go to the next key, where the last of them is null or nothing is behind.
    pub(super) fn behind(&self, key: &[u8]) -> Option<Behind> {
        let mut at = 0;
        for (i, descending) in self.descending.iter().enumerate() {
            let rest = key.get(at..)?;
            let last = i + 1 == self.descending.len();
            if last && !self.nulls && key_values::may_be_missing(rest, *descending) {
                return None;
            }
            at += key_string::component_length(rest, *descending)?;
        }
        let prefix = key.get(..at)?;
        match self.direction {
            Direction::Forward => storage::index::prefix_end(prefix).map(Behind::From),
            Direction::Backward => Some(Behind::Before(prefix.to_vec())),
        }
    }
}
