//! What a wildcard index holds of a document.
//!
//! The index has a key for each value at each path in its scope. Positions in arrays are no part of a path; an empty
//! document is a value of its own, an empty array stands as undefined, and an array directly inside an array is one value:
//!
//! ```text
//! {a: 1, b: {c: [2, {d: 3}], e: {}}, f: []}    →    a: 1   b.c: 2   b.c.d: 3   b.e: {}   f: undefined
//! ```
//!
//! Which paths cross arrays is remembered, because the planner may use less of the bounds there. What is remembered is
//! never forgotten while the index lives: a path too many costs speed, not results.

use crate::multikey::beginnings;
use crate::{Doc, Document, Value, ValueRef};
use parking_lot::RwLock;
use std::collections::{BTreeMap, HashSet};

/// The scope of a wildcard index, and the paths at which its documents have arrays.
#[derive(Debug)]
pub struct Wildcard {
    scope: Scope,
    arrays: RwLock<Arrays>,
}

#[derive(Debug, Default)]
struct Arrays {
    met: HashSet<Box<str>>,
    /// Paths of arrays with an array as an element.
    nested: HashSet<Box<str>>,
}

#[derive(Debug)]
enum Scope {
    Only(Names),
    Without(Names),
}

/// Names below one document; without any it is the end of a path.
#[derive(Debug, Default)]
struct Names(BTreeMap<String, Names>);

impl Names {
    fn insert(&mut self, path: &str) {
        let mut at = self;
        for name in path.split('.') {
            at = at.0.entry(name.to_string()).or_default();
        }
    }
    fn is_end(&self) -> bool {
        self.0.is_empty()
    }
}

/// What is indexed of the document at hand.
#[derive(Clone, Copy)]
enum Part<'a> {
    Everything,
    Only(&'a Names),
    Without(&'a Names),
}

impl<'a> Part<'a> {
    fn below(self, name: &str) -> Option<Part<'a>> {
        match self {
            Part::Everything => Some(Part::Everything),
            Part::Only(names) => {
                let inner = names.0.get(name)?;
                Some(if inner.is_end() { Part::Everything } else { Part::Only(inner) })
            }
            Part::Without(names) => match names.0.get(name) {
                None => Some(Part::Everything),
                Some(inner) if inner.is_end() => None,
                Some(inner) => Some(Part::Without(inner)),
            },
        }
    }
}

/// Where a value was found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Field,
    Element,
}

impl Wildcard {
    /// The scope of the path `$**` or `a.b.$**` with its projection, which includes or excludes paths and was checked by
    /// the caller. The `_id` is left out unless it is named.
    pub fn parse(path: &str, projection: Option<&Document>) -> Wildcard {
        let mut names = Names::default();
        let scope = match path.strip_suffix(".$**") {
            Some(root) => {
                names.insert(root);
                Scope::Only(names)
            }
            None => of_projection(projection.unwrap_or(const { &Document(Vec::new()) })),
        };
        Wildcard { scope, arrays: RwLock::default() }
    }

    /// Whether the values at `path` and all below it are in the index.
    pub fn covers(&self, path: &str) -> bool {
        self.part_at(path).is_some_and(|part| !matches!(part, Part::Only(_)))
    }

    /// Whether, moreover, nothing below `path` is left out: a document that is empty in the index is empty.
    pub fn covers_whole(&self, path: &str) -> bool {
        matches!(self.part_at(path), Some(Part::Everything))
    }

    /// Whether some path of the scope is `path`, below it or above it.
    pub fn touches(&self, path: &str) -> bool {
        self.part_at(path).is_some()
    }

    fn part_at(&self, path: &str) -> Option<Part<'_>> {
        path.split('.').try_fold(self.whole(), Part::below)
    }

    /// The beginnings of `path`, itself among them, at which a document has had an array.
    pub fn arrays_on<'p>(&self, path: &'p str) -> Vec<&'p str> {
        let arrays = self.arrays.read();
        beginnings(path).filter(|p| arrays.met.contains(*p)).collect()
    }

    /// Whether a document has had an array at `path` with an array as an element.
    pub fn is_nested(&self, path: &str) -> bool {
        self.arrays.read().nested.contains(path)
    }

    /// Calls `f` with each path and value; a pair may come more than once.
    pub fn for_each<'d>(&self, doc: Doc<'d>, f: &mut dyn FnMut(&str, ValueRef<'d>)) {
        self.fields(doc, self.whole(), &mut String::new(), f);
    }

    fn whole(&self) -> Part<'_> {
        match &self.scope {
            Scope::Only(names) => Part::Only(names),
            Scope::Without(names) => Part::Without(names),
        }
    }

    /// True when the part has something of the document.
    fn fields<'d>(
        &self,
        doc: Doc<'d>,
        part: Part<'_>,
        path: &mut String,
        f: &mut dyn FnMut(&str, ValueRef<'d>),
    ) -> bool {
        let mut any = false;
        for e in doc.iter() {
            let Some(inner) = part.below(e.name()) else { continue };
            let length = path.len();
            if length > 0 {
                path.push('.');
            }
            path.push_str(e.name());
            any |= self.value(e.value(), inner, Place::Field, path, f);
            path.truncate(length);
        }
        any
    }

    fn value<'d>(
        &self,
        value: ValueRef<'d>,
        part: Part<'_>,
        place: Place,
        path: &mut String,
        f: &mut dyn FnMut(&str, ValueRef<'d>),
    ) -> bool {
        match value {
            ValueRef::Document(inner) => {
                if !self.fields(inner, part, path, f) {
                    f(path, ValueRef::Document(Doc::empty()));
                }
                true
            }
            ValueRef::Array(items) if place == Place::Field => {
                self.note_array(path);
                let mut any = false;
                for item in items.iter() {
                    any |= self.value(item.value(), part, Place::Element, path, f);
                }
                if !any {
                    f(path, ValueRef::Undefined);
                }
                true
            }
            other => {
                if matches!(other, ValueRef::Array(_)) {
                    self.note_nested(path);
                }
                let taken = !matches!(part, Part::Only(_));
                if taken {
                    f(path, other);
                }
                taken
            }
        }
    }

    fn note_array(&self, path: &str) {
        if !self.arrays.read().met.contains(path) {
            self.arrays.write().met.insert(path.into());
        }
    }
    fn note_nested(&self, path: &str) {
        if !self.arrays.read().nested.contains(path) {
            self.arrays.write().nested.insert(path.into());
        }
    }
}

/// The scope of `$**` under a projection. Only `_id` may be named otherwise than the rest.
fn of_projection(projection: &Document) -> Scope {
    let mut paths = Vec::new();
    flatten("", projection, &mut paths);
    let kept = |path: &str| path == "_id" || path.starts_with("_id.");
    let rest = paths.iter().find(|(path, _)| !kept(path));
    let inclusion = rest.or(paths.first()).is_some_and(|(_, included)| *included);
    let mut names = Names::default();
    for (path, _) in paths.iter().filter(|(_, included)| *included == inclusion) {
        names.insert(path);
    }
    let names_id = paths.iter().any(|(path, _)| kept(path));
    match inclusion {
        true => Scope::Only(names),
        false => {
            if !names_id {
                names.insert("_id");
            }
            Scope::Without(names)
        }
    }
}

fn flatten(prefix: &str, projection: &Document, out: &mut Vec<(String, bool)>) {
    for (name, v) in projection.iter() {
        let path = if prefix.is_empty() { name.to_string() } else { format!("{prefix}.{name}") };
        match v {
            Value::Document(inner) => flatten(&path, inner, out),
            v => out.push((path, v.truthy())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doc;

    fn keys(wildcard: &Wildcard, d: Document) -> String {
        let mut out = Vec::new();
        wildcard
            .for_each(d.to_doc_buf().doc(), &mut |path, v| out.push(format!("{path}={:?}", v.to_value())));
        out.join(" ")
    }

    #[test]
    fn every_value_has_a_key_under_its_path_without_positions() {
        let all = Wildcard::parse("$**", None);
        let d = doc! {"_id": 7, "a": true, "b": {"c": [false, {"d": Value::Null}], "e": {}}, "f": [], "g": [[true]]};
        assert_eq!(
            keys(&all, d),
            "a=Boolean(true) b.c=Boolean(false) b.c.d=Null b.e=Document(Document([])) f=Undefined g=Array([Boolean(true)])"
        );
        assert_eq!(all.arrays_on("b.c.d"), ["b.c"]);
        assert!(all.arrays_on("b.e").is_empty());
        assert!(all.is_nested("g") && !all.is_nested("f"));
    }

    #[test]
    fn the_scope_is_a_path_or_a_projection() {
        let d = || doc! {"_id": true, "a": {"b": true, "c": false}, "d": Value::Null};
        let of = |projection: Document| keys(&Wildcard::parse("$**", Some(&projection)), d());
        assert_eq!(keys(&Wildcard::parse("a.$**", None), d()), "a.b=Boolean(true) a.c=Boolean(false)");
        assert_eq!(of(doc! {"a.b": 1}), "a.b=Boolean(true)");
        assert_eq!(of(doc! {"a": {"b": 1}, "_id": 1}), "_id=Boolean(true) a.b=Boolean(true)");
        assert_eq!(of(doc! {"a.b": 0}), "a.c=Boolean(false) d=Null");
        assert_eq!(of(doc! {"a": 0, "_id": 1}), "_id=Boolean(true) d=Null");
        assert_eq!(of(doc! {"_id": 1}), "_id=Boolean(true)");
        assert_eq!(of(doc! {"a.x": 1}), "a=Document(Document([]))", "the projected document is empty");
    }

    #[test]
    fn a_path_is_covered_with_all_below_it() {
        let some = Wildcard::parse("$**", Some(&doc! {"a.b": 1}));
        assert!(some.covers("a.b") && some.covers("a.b.c"));
        assert!(!some.covers("a") && !some.covers("a.c") && !some.covers("_id"));
        assert!(some.touches("a") && !some.touches("b"));
        let rest = Wildcard::parse("$**", Some(&doc! {"a.b": 0}));
        assert!(rest.covers("a") && rest.covers("a.c") && !rest.covers("a.b.c") && !rest.covers("_id"));
        assert!(rest.covers_whole("a.c") && rest.covers_whole("d") && !rest.covers_whole("a"));
        assert!(some.covers_whole("a.b") && !some.covers_whole("a") && !some.covers_whole("a.c"));
    }
}
