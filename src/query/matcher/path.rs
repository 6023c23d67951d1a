//! Dotted paths and the walk that finds what a predicate on a path looks at.
//!
//! A predicate `{"a.b": p}` holds when `p` holds for one of the values the path leads to. The walk goes through documents by
//! name. An array on the way is entered: each document in it is walked with the rest of the path, and a numeric component also
//! means the position (`a.0`). Where the path ends at an array the values are its elements and then the array itself.
//!
//! ```text
//! path a.b   {a: {b: 1}}            1
//!            {a: [{b: 1}, {b: 2}]}  1, 2
//!            {a: [{c: 1}, 7]}       missing            (one "missing" for each document without b; 7 yields nothing)
//!            {a: 7}                 missing
//!            {a: {b: [1, [2]]}}     1, [2], [1, [2]]
//! path a.0.b {a: [[{b: 1}]]}        1                  (an array at a position is entered as any other)
//! path a.0   {a: [{x: 1}, 2]}       missing, {x: 1}    ("0" as a name in the document, then as the position)
//! ```

use document::path::Visited;
use document::{Doc, Element, Result, meter};

pub const ARRAY: u8 = 0x04;
pub const DOCUMENT: u8 = 0x03;

/// One component of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub name: Box<str>,
    /// The array position it can also mean: decimal without leading zeros.
    pub index: Option<usize>,
}

/// A dotted path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    pub text: Box<str>,
    pub parts: Box<[Part]>,
}

/// The array position that `name` can mean: decimal, without sign or leading zeros.
pub fn array_index(name: &str) -> Option<usize> {
    let plain = !name.is_empty() && name.len() <= 9 && name.bytes().all(|b| b.is_ascii_digit());
    if !plain || (name.len() > 1 && name.starts_with('0')) {
        return None;
    }
    name.parse().ok()
}

impl Path {
    pub fn new(text: &str) -> Path {
        let parts =
            text.split('.').map(|name| Part { name: name.into(), index: array_index(name) }).collect();
        Path { text: text.into(), parts }
    }
}

/// What an array at the end of the path stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeafArrays {
    /// Its elements, then itself.
    Traverse,
    /// Only itself.
    Whole,
}

/// Finds a field without decoding the fields before it.
#[inline]
pub fn find<'d>(doc: Doc<'d>, name: &str) -> Option<Element<'d>> {
    doc.element(name)
}

/// Counts as work what was passed over on the way to a field, in a document where that may be much.
///
/// # Errors
/// Those of [`meter::spend`].
#[inline]
pub fn count_passed(doc: Doc<'_>, found: Option<&Element<'_>>) -> Result<()> {
    match doc.bytes().len() > LARGE_BYTES {
        true => meter::spend(units_passed(doc, found)),
        false => Ok(()),
    }
}

/// As [`count_passed`], where nothing can be refused.
#[inline]
pub fn charge_passed(doc: Doc<'_>, found: Option<&Element<'_>>) {
    if doc.bytes().len() > LARGE_BYTES {
        meter::charge(units_passed(doc, found));
    }
}

#[cold]
fn units_passed(doc: Doc<'_>, found: Option<&Element<'_>>) -> usize {
    let bytes = doc.bytes();
    let passed = found.map_or(bytes.len(), |e| e.whole().as_ptr() as usize - bytes.as_ptr() as usize);
    passed / BYTES_A_UNIT
}

/// Counts as work that a value is gone through so many times, where it is one for which that may be much.
///
/// # Errors
/// Those of [`meter::spend`].
#[inline]
pub fn count_value(e: &Element<'_>, times: usize) -> Result<()> {
    match e.value_bytes().len() {
        bytes if bytes > LARGE_BYTES => meter::spend(bytes / BYTES_A_UNIT * times),
        _ => Ok(()),
    }
}

/// In a document no larger a field is found as fast as one is compared.
const LARGE_BYTES: usize = 4096;
/// Bytes of a document that are passed over in the time of a unit of work, when its fields are small.
const BYTES_A_UNIT: usize = 256;

/// The document or array an element holds, as a document.
#[inline]
pub fn inner<'d>(e: &Element<'d>) -> Doc<'d> {
    Doc::from_validated(e.value_bytes())
}

/// Receives a value (`None`: the path leads nowhere) and the position in the outermost array crossed; true stops the walk.
pub type Visit<'v, 'd> = dyn FnMut(Option<Element<'d>>, Option<usize>) -> Result<bool> + 'v;

/// Visits the values of a path until the visitor returns true; returns whether it did. What a path of many positions leads to in
/// several ways may be visited once only.
///
/// # Errors
/// Those of the visitor and of [`meter::spend`].
pub fn walk<'d>(doc: Doc<'d>, parts: &[Part], leaf: LeafArrays, visit: &mut Visit<'_, 'd>) -> Result<bool> {
    Walk { leaf, visited: None, visit }.document(doc, parts, None)
}

/// Items of an array that are passed over in the time of a unit of work.
pub const ITEMS_A_UNIT: usize = 16;

struct Walk<'v, 'd> {
    leaf: LeafArrays,
    /// Set at the first array.
    visited: Option<Visited>,
    visit: &'v mut Visit<'v, 'd>,
}

impl<'d> Walk<'_, 'd> {
    fn document(&mut self, doc: Doc<'d>, parts: &[Part], outer: Option<usize>) -> Result<bool> {
        let (mut doc, mut parts) = (doc, parts);
        while let Some((first, rest)) = parts.split_first() {
            let found = find(doc, &first.name);
            count_passed(doc, found.as_ref())?;
            let Some(e) = found else { return (self.visit)(None, outer) };
            match e.tag() {
                ARRAY => return self.array(e, rest, outer),
                _ if rest.is_empty() => return (self.visit)(Some(e), outer),
                DOCUMENT => doc = inner(&e),
                _ => return (self.visit)(None, outer),
            }
            parts = rest;
        }
        (self.visit)(None, outer)
    }

    fn array(&mut self, array: Element<'d>, rest: &[Part], outer: Option<usize>) -> Result<bool> {
        let positions = || rest.iter().filter(|part| part.index.is_some()).count();
        let visited = self.visited.get_or_insert_with(|| Visited::by_positions(positions()));
        if !visited.enter(inner(&array), rest.len()) {
            return Ok(false);
        }
        if rest.is_empty() && self.leaf == LeafArrays::Whole {
            return (self.visit)(Some(array), outer);
        }
        for (i, item) in inner(&array).iter().enumerate() {
            if i % ITEMS_A_UNIT == ITEMS_A_UNIT - 1 {
                meter::spend(1)?;
            }
            let found = match rest {
                [] => (self.visit)(Some(item), outer.or(Some(i)))?,
                _ => self.item(item, i, rest, outer)?,
            };
            if found {
                return Ok(true);
            }
        }
        // A path that continues leads nowhere from the array itself.
        if rest.is_empty() { (self.visit)(Some(array), outer) } else { Ok(false) }
    }

    fn item(&mut self, item: Element<'d>, i: usize, rest: &[Part], outer: Option<usize>) -> Result<bool> {
        let here = rest[0].index == Some(i);
        if item.tag() == DOCUMENT && self.document(inner(&item), rest, outer.or(Some(i)))? {
            return Ok(true);
        }
        if !here {
            return Ok(false);
        }
        // A position written in the path is no position found.
        match (rest.len(), item.tag()) {
            (1, _) => (self.visit)(Some(item), outer),
            (_, DOCUMENT) => self.document(inner(&item), &rest[1..], outer),
            (_, ARRAY) => self.array(item, &rest[1..], outer),
            _ => Ok(false),
        }
    }
}
