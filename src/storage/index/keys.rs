//! The keys of one document in one index.
//!
//! A path that meets no array gives one component: the value, or null where nothing is found. A path that meets an
//! array gives one key for each element, and every other path through the *same* array takes the same element in that
//! key; two different arrays are refused (CannotIndexParallelArrays). An empty array gives undefined at its own path
//! and null below it. Only the outermost array of nested ones is taken apart. A number as a name picks the array
//! element at that position, if there is one.

use document::key_values::Kinds;
use document::multikey::MultikeyPaths;
use document::{Doc, Document, Result, Value, ValueRef, bail, hash, key_string, meter};

use super::places;
use super::spec::{FieldKind, IndexSpec, KeyField};
use std::sync::Arc;

/// Keys laid one after the other in one buffer, so that a write allocates once whatever the number of keys.
#[derive(Clone, Debug, Default)]
pub struct KeyBuffer {
    pub(crate) bytes: Vec<u8>,
    pub(crate) keys: Vec<Key>,
}

/// One key in a [`KeyBuffer`]: the index it belongs to and where its bytes are. Eight bytes after `end` are left free
/// for the record id.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    pub(crate) slot: usize,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// What the documents of an index have shown of it; only ever grows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Met {
    /// Some document had more than one key, or an array, on an indexed path.
    pub multikey: bool,
    /// Where the arrays were; of texts and in wildcard indexes this is not told here.
    pub arrays: MultikeyPaths,
    /// The types of the values.
    pub kinds: Kinds,
}

impl Met {
    /// Arrays on the paths of plain fields.
    pub(super) fn of_arrays(arrays: MultikeyPaths) -> Met {
        Met { multikey: !arrays.is_empty(), arrays, ..Met::default() }
    }
    pub(crate) fn merge(&mut self, other: &Met) {
        self.multikey |= other.multikey;
        self.arrays.merge(&other.arrays);
        self.kinds.merge(other.kinds);
    }
    pub(crate) fn holds(&self, other: &Met) -> bool {
        (self.multikey || !other.multikey)
            && self.arrays.holds(&other.arrays)
            && self.kinds.holds(other.kinds)
    }
}

/// Whose keys they are, which decides whether they may be too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// Of a document or an index that a client offers, which may be refused.
    Offered {
        /// `indexMaxNumGeneratedKeysPerDocument`, which limits the keys of places only.
        places_max: usize,
    },
    /// Of a document that is in an index, or that the log says was accepted. It is removed or put in again whatever it has.
    Accepted,
}

impl Keys {
    /// Whether they may be refused.
    pub(super) fn are_offered(self) -> bool {
        matches!(self, Keys::Offered { .. })
    }
}

/// The keys of one document in one index, which are asked for.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// The index. Its partial filter is not asked.
    pub spec: &'a Arc<IndexSpec>,
    pub doc: Doc<'a>,
    pub keys: Keys,
}

impl Asked<'_> {
    /// Appends the keys, sorted and without repetition, as those of the index at `slot`; what was met on the way.
    ///
    /// # Errors
    /// Those of [`for_each_key`]; of those offered also CannotBuildIndexKeys (201) for too many, and in a text index 16732 and 16733; those of
    /// [`meter::spend`]. What was appended before stays.
    pub fn compute(&self, slot: usize, out: &mut KeyBuffer) -> Result<Met> {
        let each =
            &mut |push: &mut EmitAny<'_>| for_each_of_kind(self.spec, self.doc, self.keys, push).map(Some);
        Ok(out.append(slot, (self.spec, self.doc, self.keys), each)?.unwrap_or_default())
    }
}

/// Where a collection has the keys of documents from.
pub trait KeySource {
    /// As [`Asked::compute`].
    ///
    /// # Errors
    /// Those of [`Asked::compute`].
    fn keys(&self, asked: Asked<'_>, slot: usize, out: &mut KeyBuffer) -> Result<Met>;
}

/// They are computed on the spot. The work is not broken off where the operation's time ends: what takes keys out must find all that were
/// put in.
pub struct Computed;

impl KeySource for Computed {
    fn keys(&self, asked: Asked<'_>, slot: usize, out: &mut KeyBuffer) -> Result<Met> {
        meter::unbroken(|| asked.compute(slot, out))
    }
}

/// Receives the components of a key. An error ends the search for further keys.
pub(super) type Emit<'e, 'd> = dyn FnMut(&[ValueRef<'d>]) -> Result<()> + 'e;
/// The same, of components that live no longer than the call.
pub(super) type EmitAny<'e> = dyn FnMut(&[ValueRef<'_>]) -> Result<()> + 'e;

/// Bytes that the keys of a document may take in one index: an array has a key for each element, and each repeats the other fields.
const KEY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Work that a key is, besides its bytes.
const UNITS_A_KEY: usize = 4;
/// Bytes encoded, or compared, for one unit of work.
const BYTES_A_UNIT: usize = 64;

/// Room for the record id after each key.
pub(crate) const RECORD_ID_ROOM: usize = 8;

impl KeyBuffer {
    /// Forgets the keys and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.keys.clear();
    }
    /// The number of keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }
    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
    /// Each key with the slot of its index.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &[u8])> {
        self.keys.iter().map(|k| (k.slot, self.key(*k)))
    }
    pub(crate) fn key(&self, key: Key) -> &[u8] {
        &self.bytes[key.start..key.end]
    }
    pub(crate) fn push(&mut self, slot: usize, key: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let end = self.bytes.len();
        self.bytes.extend_from_slice(&[0; RECORD_ID_ROOM]);
        self.keys.push(Key { slot, start, end });
    }
    /// The key followed by the record id, for trees that hold both.
    pub(crate) fn key_with_record(&mut self, key: Key, record: u64) -> &[u8] {
        self.bytes[key.end..key.end + RECORD_ID_ROOM].copy_from_slice(&record.to_be_bytes());
        &self.bytes[key.start..key.end + RECORD_ID_ROOM]
    }

    /// Appends those of another buffer, which are of one index, as those of the index at `slot`.
    pub fn extend(&mut self, slot: usize, other: &KeyBuffer) {
        let by = self.bytes.len();
        self.bytes.extend_from_slice(&other.bytes);
        self.keys.extend(other.keys.iter().map(|k| Key { slot, start: k.start + by, end: k.end + by }));
    }

    /// As [`Computed`] does, but only those keys of `new` that `old` may lack; `None`, and nothing is appended, where they are not
    /// told from the others.
    pub(crate) fn append_grown_keys(
        &mut self,
        slot: usize,
        spec: &IndexSpec,
        (old, new): (Doc<'_>, Doc<'_>),
        keys: Keys,
    ) -> Result<Option<Met>> {
        let Some(layout) = spec.layout().filter(|_| !spec.unique()) else { return Ok(None) };
        let each = &mut |push: &mut EmitAny<'_>| places::for_each_grown_key(spec, layout, (old, new), push);
        meter::unbroken(|| self.append(slot, (spec, new, keys), each))
    }

    fn append(
        &mut self,
        slot: usize,
        (spec, doc, keys): (&IndexSpec, Doc<'_>, Keys),
        each: &mut dyn FnMut(&mut EmitAny<'_>) -> Result<Option<Met>>,
    ) -> Result<Option<Met>> {
        let (first, first_byte) = (self.keys.len(), self.bytes.len());
        let mut kinds = Kinds::default();
        let mut push = |components: &[ValueRef<'_>]| {
            components.iter().enumerate().for_each(|(i, v)| kinds.note(i, *v));
            let start = self.bytes.len();
            encode(spec, components, &mut self.bytes);
            let end = self.bytes.len();
            self.bytes.extend_from_slice(&[0; RECORD_ID_ROOM]);
            self.keys.push(Key { slot, start, end });
            meter::spend(UNITS_A_KEY + (end - start) / BYTES_A_UNIT)?;
            match keys {
                Keys::Offered { places_max } => {
                    let places = self.keys.len() - first;
                    check_room(spec, doc, (places, places_max), self.bytes.len() - first_byte)
                }
                Keys::Accepted => Ok(()),
            }
        };
        let met = each(&mut push)?;
        let appended = self.keys.len() - first;
        if appended > 1 {
            let bytes_a_key = (self.bytes.len() - first_byte) / appended;
            let compared = UNITS_A_KEY / 2 + bytes_a_key / BYTES_A_UNIT;
            meter::spend(appended * appended.ilog2() as usize * compared)?;
            let bytes = &self.bytes;
            let of = |k: &Key| &bytes[k.start..k.end];
            self.keys[first..].sort_unstable_by(|a, b| of(a).cmp(of(b)));
            let mut kept = first + 1;
            for at in first + 1..self.keys.len() {
                if of(&self.keys[at]) != of(&self.keys[kept - 1]) {
                    self.keys[kept] = self.keys[at];
                    kept += 1;
                }
            }
            self.keys.truncate(kept);
        }
        Ok(met.map(|met| Met { kinds, ..met }))
    }
}

/// Whether a document may have so many keys, with so many bytes, in an index.
fn check_room(
    spec: &IndexSpec,
    doc: Doc<'_>,
    (keys, places_max): (usize, usize),
    bytes: usize,
) -> Result<()> {
    if keys > places_max && spec.layout().is_some() {
        bail!(
            CANNOT_BUILD_INDEX_KEYS,
            "Insert of geo object exceeded maximum number of generated keys: {}",
            document::shell::document(&doc.to_document())
        );
    }
    if bytes > KEY_BYTES_MAX {
        let id = doc.get("_id").map_or(Value::Null, |id| id.to_value());
        bail!(
            CANNOT_BUILD_INDEX_KEYS,
            "the keys of one document in index '{}' take more than {KEY_BYTES_MAX} bytes: _id {}",
            spec.name(),
            document::shell::value(&id)
        );
    }
    Ok(())
}

/// Whether a document that the index covers has keys in it.
///
/// # Errors
/// Those with which it would be refused when it is written, and those of [`meter::spend`].
pub fn check(spec: &IndexSpec, doc: Doc<'_>) -> Result<()> {
    for_each_of_kind(spec, doc, Keys::Offered { places_max: usize::MAX }, &mut |_| Ok(())).map(drop)
}

/// Calls `f` with the components of each key of `doc`, whatever the kind of the index.
fn for_each_of_kind(spec: &IndexSpec, doc: Doc<'_>, keys: Keys, f: &mut EmitAny<'_>) -> Result<Met> {
    let several = Met { multikey: true, ..Met::default() };
    match (spec.text(), spec.wildcard()) {
        (Some(index), _) => super::text::for_each_key(spec, index, doc, keys, f).map(|()| several),
        (_, Some(wildcard)) => wildcard.for_each_key(doc, f).map(|()| several),
        _ => for_each_key(spec, doc, &mut |components| f(components)),
    }
}

/// The key of `doc` whose bytes are `key`, as a document of the index's fields; `None` where it has no such key.
pub fn shown(spec: &IndexSpec, doc: Doc<'_>, key: &[u8]) -> Option<Document> {
    let (mut found, mut bytes) = (None, Vec::new());
    let look = &mut |components: &[ValueRef<'_>]| {
        bytes.clear();
        encode(spec, components, &mut bytes);
        if found.is_none() && bytes == key {
            found = Some(named(spec, components));
        }
        Ok(())
    };
    for_each_of_kind(spec, doc, Keys::Accepted, look).ok()?;
    found
}

/// The components of a key under the names of their fields; those of a wildcard are its path and the value there.
fn named(spec: &IndexSpec, components: &[ValueRef<'_>]) -> Document {
    let (mut out, mut components) = (Document::new(), components.iter());
    for (i, field) in spec.fields().iter().enumerate() {
        let mut name = field.path.as_str();
        if spec.wildcard().is_some_and(|w| w.at == i)
            && let Some(ValueRef::String(path)) = components.next()
        {
            out.push("$_path", *path);
            name = path;
        }
        let Some(value) = components.next() else { break };
        out.push(
            name,
            if field.kind == FieldKind::Hashed {
                Value::Int64(hashed(spec, *value))
            } else {
                value.to_value()
            },
        );
    }
    out
}

/// Appends the encoding of one key's components.
pub fn encode(spec: &IndexSpec, components: &[ValueRef<'_>], out: &mut Vec<u8>) {
    let collation = spec.collation();
    if let Some(wildcard) = spec.wildcard() {
        return wildcard.encode(spec.fields(), collation, components, out);
    }
    for (field, value) in spec.fields().iter().zip(components) {
        match field.kind {
            FieldKind::Ascending | FieldKind::Place | FieldKind::MeasuredPlace | FieldKind::Text => {
                collation.append_key(out, *value, false)
            }
            FieldKind::Descending => collation.append_key(out, *value, true),
            FieldKind::Hashed => key_string::append(out, ValueRef::Int64(hashed(spec, *value)), false),
        }
    }
}

/// What stands for a value in a hashed field: strings are hashed by their sort keys where there is a collation.
pub(crate) fn hashed(spec: &IndexSpec, value: ValueRef<'_>) -> i64 {
    match spec.collation().is_simple() {
        true => hash::hash64(value),
        false => hash::hash64_value(&spec.collation().comparable(&value.to_value())),
    }
}

/// Calls `f` with the components of each key of `doc`; a key may come more than once. Tells of the arrays met.
/// Keys that a sparse index leaves out do not come. Errors: CannotIndexParallelArrays (171), 16766 for an array in a
/// hashed field, 16746 for a number that is both a position and a field name.
pub(super) fn for_each_key<'d>(spec: &IndexSpec, doc: Doc<'d>, f: &mut Emit<'_, 'd>) -> Result<Met> {
    match spec.layout() {
        Some(layout) => places::for_each_key(spec, layout, doc, f),
        None => for_each_plain_key(spec.fields(), spec.sparse(), doc, f).map(Met::of_arrays),
    }
}

/// The same for fields whose values are their components.
pub(super) fn for_each_plain_key<'d>(
    fields: &[KeyField],
    sparse: bool,
    doc: Doc<'d>,
    f: &mut Emit<'_, 'd>,
) -> Result<MultikeyPaths> {
    if let [field] = fields
        && let [name] = field.names.as_slice()
    {
        let value = doc.get(name);
        if !matches!(value, Some(ValueRef::Array(_))) {
            if value.is_some() || !sparse {
                f(&[value.unwrap_or(ValueRef::Null)])?;
            }
            return Ok(MultikeyPaths::default());
        }
    }
    let mut walk = Walk { fields, sparse, emit: f, arrays: MultikeyPaths::default() };
    walk.expand(doc, vec![Progress::At(0); fields.len()], 0)?;
    Ok(walk.arrays)
}

/// How far one field has come.
#[derive(Clone, Copy)]
enum Progress<'d> {
    /// The name at this position of its path is next.
    At(usize),
    /// Its component is known.
    Fixed(ValueRef<'d>),
}

enum Found<'d> {
    Missing,
    Value(ValueRef<'d>),
    /// An array, its name, and the position of the name that follows it.
    Array(Doc<'d>, &'d str, usize),
}

struct Walk<'w, 'd> {
    fields: &'w [KeyField],
    sparse: bool,
    emit: &'w mut Emit<'w, 'd>,
    arrays: MultikeyPaths,
}

impl<'d> Walk<'_, 'd> {
    fn expand(&mut self, doc: Doc<'d>, mut fields: Vec<Progress<'d>>, mut missing: usize) -> Result<()> {
        let mut array: Option<(Doc<'d>, &'d str)> = None;
        let mut through = Vec::new();
        for (i, field) in self.fields.iter().enumerate() {
            let Progress::At(at) = fields[i] else { continue };
            match descend(doc, &field.names, at)? {
                Found::Missing => {
                    fields[i] = Progress::Fixed(ValueRef::Null);
                    missing += 1;
                }
                Found::Value(value) => fields[i] = Progress::Fixed(value),
                Found::Array(..) if self.fields.iter().any(|f| f.kind == FieldKind::Hashed) => bail!(
                    16766,
                    "hashed indexes do not currently support array values. Found array at path: {}",
                    field.path
                ),
                Found::Array(found, name, next) => {
                    match array {
                        Some((first, first_name)) if !std::ptr::eq(first.bytes(), found.bytes()) => bail!(
                            CANNOT_INDEX_PARALLEL_ARRAYS,
                            "cannot index parallel arrays [{name}] [{first_name}]"
                        ),
                        _ => array = Some((found, name)),
                    }
                    fields[i] = Progress::At(next);
                    through.push(i);
                }
            }
        }
        match array {
            None => self.finish(&fields, missing),
            Some((array, _)) => self.expand_array(array, &fields, &through, missing),
        }
    }

    fn expand_array(
        &mut self,
        array: Doc<'d>,
        fields: &[Progress<'d>],
        through: &[usize],
        missing: usize,
    ) -> Result<()> {
        for &i in through {
            if let Progress::At(next) = fields[i] {
                self.arrays.note(i, next - 1);
            }
        }
        if array.is_empty() {
            return self.expand_element(ValueRef::Undefined, fields, through, missing);
        }
        for element in array.iter() {
            self.expand_element(element.value(), fields, through, missing)?;
        }
        Ok(())
    }

    fn expand_element(
        &mut self,
        element: ValueRef<'d>,
        fields: &[Progress<'d>],
        through: &[usize],
        missing: usize,
    ) -> Result<()> {
        let mut fields = fields.to_vec();
        for &i in through {
            if let Progress::At(at) = fields[i]
                && at == self.fields[i].names.len()
            {
                fields[i] = Progress::Fixed(element);
            }
        }
        let inside = element.as_document().unwrap_or(Doc::empty());
        self.expand(inside, fields, missing)
    }

    fn finish(&mut self, fields: &[Progress<'d>], missing: usize) -> Result<()> {
        if self.sparse && missing == fields.len() {
            return Ok(());
        }
        let component = |p: &Progress<'d>| match p {
            Progress::Fixed(value) => *value,
            Progress::At(_) => ValueRef::Null,
        };
        match fields {
            [a] => (self.emit)(&[component(a)]),
            [a, b] => (self.emit)(&[component(a), component(b)]),
            more => (self.emit)(&more.iter().map(component).collect::<Vec<_>>()),
        }
    }
}

/// Follows `names` from position `at` until they end, nothing is found, or an array is met.
fn descend<'d>(mut doc: Doc<'d>, names: &[String], mut at: usize) -> Result<Found<'d>> {
    loop {
        let Some(element) = names.get(at).and_then(|name| doc.element(name)) else {
            return Ok(Found::Missing);
        };
        let mut element = element;
        at += 1;
        while element.tag() == 0x04
            && let Some(name) = names.get(at)
            && let ValueRef::Array(array) = element.value()
        {
            match positional(array, name)? {
                Some(picked) => element = picked,
                None => break,
            }
            at += 1;
        }
        match element.value() {
            ValueRef::Array(array) => return Ok(Found::Array(array, element.name(), at)),
            value if at == names.len() => return Ok(Found::Value(value)),
            ValueRef::Document(inside) => doc = inside,
            _ => return Ok(Found::Missing),
        }
    }
}

/// The array element that `name` picks by its position.
fn positional<'d>(array: Doc<'d>, name: &str) -> Result<Option<document::Element<'d>>> {
    let number = name.bytes().all(|b| b.is_ascii_digit()) && !(name.len() > 1 && name.starts_with('0'));
    if !number || name.is_empty() {
        return Ok(None);
    }
    let Some(picked) = name.parse::<usize>().ok().and_then(|n| array.iter().nth(n)) else { return Ok(None) };
    let named = |e: document::Element<'d>| e.value().as_document().is_some_and(|d| d.element(name).is_some());
    if array.iter().any(named) {
        bail!(
            16746,
            "Ambiguous field name found in array (do not use numeric field names in embedded elements in an array), \
             field: '{name}' for array: {}",
            document::shell::value(&ValueRef::Array(array).to_value())
        );
    }
    Ok(Some(picked))
}

/// Whether no indexed path can give different keys in `a` and `b`, by comparing the bytes found at the paths.
pub(crate) fn same_at_paths(spec: &IndexSpec, a: Doc<'_>, b: Doc<'_>) -> bool {
    match spec.text().is_some() || spec.wildcard().is_some() {
        true => a.bytes() == b.bytes(),
        false => spec.fields().iter().all(|f| match f.kind {
            // The measurements of a bucket stand in one field, packed.
            FieldKind::MeasuredPlace => same_at_path(&f.names[..1], a, b),
            _ => same_at_path(&f.names, a, b),
        }),
    }
}

pub(super) fn same_at_path(names: &[String], mut a: Doc<'_>, mut b: Doc<'_>) -> bool {
    for name in names {
        match (a.element(name), b.element(name)) {
            (None, None) => return true,
            (Some(x), Some(y)) if x.tag() == y.tag() && x.value_bytes() == y.value_bytes() => return true,
            (Some(x), Some(y)) => match (x.value(), y.value()) {
                (ValueRef::Document(x), ValueRef::Document(y)) => (a, b) = (x, y),
                _ => return false,
            },
            _ => return false,
        }
    }
    false
}
