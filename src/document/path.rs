//! Dotted paths through documents and arrays.
//!
//! Arrays on the way are entered implicitly: `a.b` of `{a: [{b: 1}, {b: 2}, 3]}` is 1 and 2. Only documents in the
//! array are entered, one level deep: an array directly inside an array is not. A numeric name is also a position:
//! `a.0` is the first element, besides the field "0" of every document in the array.
//!
//! The matcher and the index keys differ. The matcher gives every value it meets, `None` where a document has none.
//! An index has for each value of the array one key, in which several paths through the *same* array advance together;
//! two different arrays in one document are refused.

use crate::compare::compare;
use crate::validate::DEPTH_BETWEEN_NODES;
use crate::{Doc, Result, ValueRef, err, key_string, meter};
use std::cmp::Ordering;
use std::collections::HashMap;

/// A value by dotted path through documents only; an array on the way ends it (a last array is returned).
pub fn get<'a>(doc: Doc<'a>, path: &str) -> Option<ValueRef<'a>> {
    let mut doc = doc;
    let mut path = path;
    loop {
        match split(path) {
            (last, None) => return doc.get(last),
            (head, Some(rest)) => {
                doc = doc.get_document(head)?;
                path = rest;
            }
        }
    }
}

fn split(path: &str) -> (&str, Option<&str>) {
    match path.split_once('.') {
        Some((head, rest)) => (head, Some(rest)),
        None => (path, None),
    }
}

/// Whether a name can be an array position, as the server sees it: digits, no sign, no leading zero but "0" itself.
pub fn is_position(name: &str) -> bool {
    let digits = !name.is_empty() && name.len() <= 10 && name.bytes().all(|b| b.is_ascii_digit());
    digits && (name == "0" || !name.starts_with('0'))
}

/// Receives a value, `None` where there is none; true stops the walk.
type Visitor<'f, 'a> = dyn FnMut(Option<ValueRef<'a>>) -> Result<bool> + 'f;

/// Every value the matcher sees at `path`, arrays on the way and at the end expanded; at the end the array itself
/// comes last. A missing value is `None`. `f` returns true to stop; the result says whether it did. What a path of many
/// positions leads to in several ways may come once only.
///
/// # Errors
/// Those of `f` and of [`meter::spend`].
pub fn for_each_value<'a>(doc: Doc<'a>, path: &str, f: &mut Visitor<'_, 'a>) -> Result<bool> {
    Walk { expand: true, visited: None, f }.document(doc, path, 0)
}

/// As [`for_each_value`] but an array at the end is given whole only (`$exists`, `$size`, `$elemMatch`, ...).
///
/// # Errors
/// Those of `f` and of [`meter::spend`].
pub fn for_each_leaf<'a>(doc: Doc<'a>, path: &str, f: &mut Visitor<'_, 'a>) -> Result<bool> {
    Walk { expand: false, visited: None, f }.document(doc, path, 0)
}

/// The arrays that a walk along a path has been through, and with how much of the path.
///
/// Below an array a position is looked for in two ways, as the name of a field in each of its documents and as the position itself, and
/// either leads on to the arrays below. So the ways to an array grow like Fibonacci's numbers with its depth, while there are only as
/// many places in the path to reach it with as it is deep. A walk that has come that way before finds nothing new.
pub struct Visited(Option<HashMap<*const u8, Places>>);

/// A bit for each place in the path; places further apart than bits never lead to the same array.
type Places = [u64; 4];

impl Visited {
    /// For a path with so many names that can be positions: a walk by few of them notes nothing.
    pub fn by_positions(positions: usize) -> Visited {
        Visited((positions > POSITIONS_FEW).then(HashMap::new))
    }
    /// Notes that the walk enters an array at this place in the path; false where it has before.
    pub fn enter(&mut self, array: Doc<'_>, place: usize) -> bool {
        let Some(arrays) = &mut self.0 else { return true };
        let places = arrays.entry(array.bytes().as_ptr()).or_default();
        let (word, bit) = (place / 64 % places.len(), 1 << (place % 64));
        let is_new = places[word] & bit == 0;
        places[word] |= bit;
        is_new
    }
}

/// With no more positions in a path an array is reached in a few ways at most.
const POSITIONS_FEW: usize = 4;
const _: () = assert!(DEPTH_BETWEEN_NODES <= 256, "an array has a bit for each of its places in the path");

struct Walk<'f, 'a> {
    /// Whether the elements of an array at the end are visited, before the array itself.
    expand: bool,
    /// Set at the first array.
    visited: Option<Visited>,
    f: &'f mut Visitor<'f, 'a>,
}

impl<'a> Walk<'_, 'a> {
    /// `at` names of the path are behind.
    fn document(&mut self, mut doc: Doc<'a>, mut path: &str, mut at: usize) -> Result<bool> {
        loop {
            let (head, rest) = split(path);
            let value = doc.get(head);
            let Some(rest) = rest else { return self.leaf(value) };
            at += 1;
            match value {
                Some(ValueRef::Document(inner)) => {
                    doc = inner;
                    path = rest;
                }
                Some(ValueRef::Array(items)) => return self.items(items, rest, at),
                _ => return (self.f)(None),
            }
        }
    }

    fn leaf(&mut self, value: Option<ValueRef<'a>>) -> Result<bool> {
        if let (Some(ValueRef::Array(items)), true) = (value, self.expand) {
            for e in items {
                meter::spend(1)?;
                if (self.f)(Some(e.value()))? {
                    return Ok(true);
                }
            }
        }
        (self.f)(value)
    }

    /// `rest` is the path behind the array. A position gives the element as it is, not expanded.
    fn items(&mut self, items: Doc<'a>, rest: &str, at: usize) -> Result<bool> {
        let positions = || rest.split('.').filter(|name| is_position(name)).count();
        if !self.visited.get_or_insert_with(|| Visited::by_positions(positions())).enter(items, at) {
            return Ok(false);
        }
        let (head, behind) = split(rest);
        let position = is_position(head);
        for e in items {
            meter::spend(1)?;
            let value = e.value();
            if let ValueRef::Document(d) = value
                && self.document(d, rest, at)?
            {
                return Ok(true);
            }
            if !position || e.name_bytes() != head.as_bytes() {
                continue;
            }
            let stopped = match (behind, value) {
                (None, value) => (self.f)(Some(value))?,
                // An array reached by position is read as a document of positions, hence not entered implicitly.
                (Some(behind), ValueRef::Document(d) | ValueRef::Array(d)) => {
                    self.document(d, behind, at + 1)?
                }
                _ => false,
            };
            if stopped {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Whether an array lies on the path or at its end.
pub fn traverses_array(doc: Doc<'_>, path: &str) -> bool {
    let mut doc = doc;
    let mut path = path;
    loop {
        let (head, rest) = split(path);
        match (doc.get(head), rest) {
            (Some(ValueRef::Array(_)), _) => return true,
            (Some(ValueRef::Document(inner)), Some(rest)) => {
                doc = inner;
                path = rest;
            }
            _ => return false,
        }
    }
}

/// The keys of one document in one compound index.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IndexKeys<'a> {
    /// Each key: one value for each path, null for missing, undefined for an empty array. Not sorted; no two equal.
    pub keys: Vec<Vec<ValueRef<'a>>>,
    /// For each path the positions of those of its names whose value was an array.
    pub multikey: Vec<Vec<usize>>,
    /// For each path: nothing was found at it in any key (sparse indexes skip a document when all are).
    pub missing: Vec<bool>,
}

impl IndexKeys<'_> {
    pub fn is_multikey(&self) -> bool {
        self.multikey.iter().any(|p| !p.is_empty())
    }
    pub fn all_missing(&self) -> bool {
        self.missing.iter().all(|m| *m)
    }
}

/// The keys of `doc` in an index on `paths`. Errors: CannotIndexParallelArrays; 16746 for a numeric name that is both
/// a position and a field.
pub fn index_keys<'a>(doc: Doc<'a>, paths: &[&str]) -> Result<IndexKeys<'a>> {
    if let Some(result) = single_key(doc, paths) {
        return Ok(result);
    }
    let count = paths.len();
    let mut builder = Builder {
        result: IndexKeys {
            keys: Vec::with_capacity(1),
            multikey: vec![Vec::new(); count],
            missing: vec![true; count],
        },
        paths,
    };
    let cursors = (0..count).map(|i| Cursor::At { doc, rest: paths[i], depth: 0 }).collect();
    builder.expand(cursors)?;
    let mut result = builder.result;
    if result.keys.len() > 1 {
        remove_equal(&mut result.keys);
    }
    Ok(result)
}

/// The keys of a document in which no path meets an array, by far the most common; `None` when one does.
fn single_key<'a>(doc: Doc<'a>, paths: &[&str]) -> Option<IndexKeys<'a>> {
    let mut key = Vec::with_capacity(paths.len());
    let mut missing = Vec::with_capacity(paths.len());
    for path in paths {
        let value = plain(doc, path)?;
        missing.push(value.is_none());
        key.push(value.unwrap_or(ValueRef::Null));
    }
    Some(IndexKeys { keys: vec![key], multikey: vec![Vec::new(); paths.len()], missing })
}

/// The value at `path`, `Some(None)` when it is missing; `None` when an array is on the path or at its end.
fn plain<'a>(doc: Doc<'a>, path: &str) -> Option<Option<ValueRef<'a>>> {
    let mut doc = doc;
    let mut path = path;
    loop {
        let (head, rest) = split(path);
        match (doc.get(head), rest) {
            (Some(ValueRef::Array(_)), _) => return None,
            (value, None) => return Some(value),
            (Some(ValueRef::Document(inner)), Some(rest)) => {
                doc = inner;
                path = rest;
            }
            _ => return Some(None),
        }
    }
}

/// Where one path of the index stands.
#[derive(Clone, Copy)]
enum Cursor<'a, 'p> {
    /// `rest` is still to be followed from `doc`; `depth` names are behind.
    At { doc: Doc<'a>, rest: &'p str, depth: usize },
    /// The end: `None` is missing.
    Done(Option<ValueRef<'a>>),
}

struct Builder<'a, 'p> {
    result: IndexKeys<'a>,
    paths: &'p [&'p str],
}

/// An array met by a path, to be expanded into keys.
struct Stop<'a, 'p> {
    array: Doc<'a>,
    /// What follows the array; `None` when the path ends at it.
    rest: Option<&'p str>,
    depth: usize,
}

impl<'a, 'p> Builder<'a, 'p> {
    /// Follows every cursor to its end or to an array; if there is an array, each of its elements makes keys.
    fn expand(&mut self, mut cursors: Vec<Cursor<'a, 'p>>) -> Result<()> {
        let mut stops: Vec<Option<Stop<'a, 'p>>> = Vec::with_capacity(cursors.len());
        let mut array: Option<(Doc<'a>, (usize, usize))> = None;
        for (i, cursor) in cursors.iter_mut().enumerate() {
            let stop = self.follow(i, cursor)?;
            if let Some(stop) = &stop {
                match array {
                    // The same array means the same bytes, not an equal one.
                    Some((other, first)) if !std::ptr::eq(other.bytes(), stop.array.bytes()) => {
                        return Err(self.parallel((i, stop.depth), first));
                    }
                    _ => array = array.or(Some((stop.array, (i, stop.depth)))),
                }
            }
            stops.push(stop);
        }
        let Some((array, _)) = array else {
            self.emit(&cursors);
            return Ok(());
        };
        for (i, stop) in stops.iter().enumerate() {
            if let Some(stop) = stop
                && !self.result.multikey[i].contains(&stop.depth)
            {
                self.result.multikey[i].push(stop.depth);
            }
        }
        if array.is_empty() {
            for (cursor, stop) in cursors.iter_mut().zip(&stops) {
                if let Some(stop) = stop {
                    *cursor = Cursor::Done(stop.rest.is_none().then_some(ValueRef::Undefined));
                }
            }
            return self.expand(cursors);
        }
        for e in array {
            let mut inner = cursors.clone();
            for (cursor, stop) in inner.iter_mut().zip(&stops) {
                if let Some(stop) = stop {
                    *cursor = stop.enter(e.value());
                }
            }
            self.expand(inner)?;
        }
        Ok(())
    }

    /// Moves one cursor through documents until it is done or an array stops it.
    fn follow(&mut self, path: usize, cursor: &mut Cursor<'a, 'p>) -> Result<Option<Stop<'a, 'p>>> {
        loop {
            let Cursor::At { doc, rest, depth } = *cursor else { return Ok(None) };
            let (head, behind) = split(rest);
            match (doc.get(head), behind) {
                (Some(ValueRef::Array(array)), None) => return Ok(Some(Stop { array, rest: None, depth })),
                (Some(ValueRef::Array(array)), Some(behind)) => {
                    let (next, after) = split(behind);
                    if !is_position(next) {
                        return Ok(Some(Stop { array, rest: Some(behind), depth }));
                    }
                    match position(array, next)? {
                        None => return Ok(Some(Stop { array, rest: Some(behind), depth })),
                        Some(element) => {
                            // By position the path goes on from one element; the array makes no further keys.
                            if !self.result.multikey[path].contains(&depth) {
                                self.result.multikey[path].push(depth);
                            }
                            match (element, after) {
                                (ValueRef::Array(array), None) => {
                                    return Ok(Some(Stop { array, rest: None, depth: depth + 1 }));
                                }
                                (ValueRef::Document(doc) | ValueRef::Array(doc), Some(rest)) => {
                                    *cursor = Cursor::At { doc, rest, depth: depth + 2 };
                                }
                                (_, Some(_)) => *cursor = Cursor::Done(None),
                                (value, None) => *cursor = Cursor::Done(Some(value)),
                            }
                        }
                    }
                }
                (Some(ValueRef::Document(doc)), Some(rest)) => {
                    *cursor = Cursor::At { doc, rest, depth: depth + 1 }
                }
                (_, Some(_)) => *cursor = Cursor::Done(None),
                (value, None) => *cursor = Cursor::Done(value),
            }
        }
    }

    fn emit(&mut self, cursors: &[Cursor<'a, 'p>]) {
        let mut key = Vec::with_capacity(cursors.len());
        for (i, cursor) in cursors.iter().enumerate() {
            let value = match cursor {
                Cursor::Done(value) => *value,
                Cursor::At { .. } => None,
            };
            self.result.missing[i] &= value.is_none();
            key.push(value.unwrap_or(ValueRef::Null));
        }
        self.result.keys.push(key);
    }

    /// Each array is given as the path that met it and the position of its name in that path.
    #[cold]
    fn parallel(&self, second: (usize, usize), first: (usize, usize)) -> crate::Error {
        let name = |(path, depth): (usize, usize)| self.paths[path].split('.').nth(depth).unwrap_or_default();
        err!(
            CANNOT_INDEX_PARALLEL_ARRAYS,
            "cannot index parallel arrays [{}] [{}]",
            name(second),
            name(first)
        )
    }
}

impl<'a, 'p> Stop<'a, 'p> {
    /// The cursor for one element of the array.
    fn enter(&self, element: ValueRef<'a>) -> Cursor<'a, 'p> {
        match (self.rest, element) {
            (None, value) => Cursor::Done(Some(value)),
            (Some(rest), ValueRef::Document(doc)) => Cursor::At { doc, rest, depth: self.depth + 1 },
            (Some(_), _) => Cursor::Done(None),
        }
    }
}

/// The element at a position; `None` when there is none. An array that has both it and documents with a field of that
/// name is refused.
fn position<'a>(array: Doc<'a>, name: &str) -> Result<Option<ValueRef<'a>>> {
    let Some(element) = array.get(name) else { return Ok(None) };
    let field = |e: crate::Element<'a>| match e.value() {
        ValueRef::Document(d) => d.element(name).is_some(),
        _ => false,
    };
    if array.iter().any(field) {
        return Err(err!(
            16746,
            "Ambiguous field name found in array (do not use numeric field names in embedded elements in an array), \
             field: '{name}' for array: {}",
            crate::shell::value(&ValueRef::Array(array).to_value())
        ));
    }
    Ok(Some(element))
}

/// Keeps the first of keys that compare equal.
fn remove_equal(keys: &mut Vec<Vec<ValueRef<'_>>>) {
    if keys.len() <= 8 {
        let mut kept = 0;
        for i in 0..keys.len() {
            if !keys[..kept].iter().any(|k| compare_keys(k, &keys[i]).is_eq()) {
                keys.swap(kept, i);
                kept += 1;
            }
        }
        return keys.truncate(kept);
    }
    let mut seen = std::collections::BTreeSet::new();
    keys.retain(|k| seen.insert(key_string::encode(k, &[])));
}

fn compare_keys(a: &[ValueRef<'_>], b: &[ValueRef<'_>]) -> Ordering {
    let mut orders = a.iter().zip(b).map(|(x, y)| compare(*x, *y));
    orders.find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
}

/// The key a document sorts by: of its index keys the least in the order of `pattern` (path, descending).
/// Errors: BadValue when two paths go through different arrays.
pub fn sort_key<'a>(
    doc: Doc<'a>,
    pattern: &[(&str, bool)],
    collation: &crate::Collation,
) -> Result<Vec<ValueRef<'a>>> {
    let simple: Option<Vec<_>> =
        pattern.iter().map(|(path, _)| plain(doc, path).map(|v| v.unwrap_or(ValueRef::Null))).collect();
    if let Some(key) = simple {
        return Ok(key);
    }
    let paths: Vec<&str> = pattern.iter().map(|(path, _)| *path).collect();
    let keys = index_keys(doc, &paths).map_err(|e| match e.code {
        crate::codes::CANNOT_INDEX_PARALLEL_ARRAYS => {
            err!(BAD_VALUE, "cannot sort with keys that are parallel arrays")
        }
        _ => e,
    })?;
    let order = |a: &Vec<ValueRef<'a>>, b: &Vec<ValueRef<'a>>| {
        let mut orders = a.iter().zip(b).zip(pattern).map(|((x, y), (_, descending))| {
            let order = collation.compare(*x, *y);
            if *descending { order.reverse() } else { order }
        });
        orders.find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
    };
    Ok(keys.keys.into_iter().min_by(order).unwrap_or_default())
}
