//! Projections of find and findAndModify.
//!
//! ```text
//! {a: 1, "b.c": 1}      inclusion: what is named, and _id
//! {a: 0}                exclusion: all but what is named
//! {a: {$slice: 2}}      neither: all fields, with a cut
//! {x: {$add: [..]}}     inclusion with computed fields after the included ones
//! {"a.$": 1}            the element that the filter matched
//! {"a.b.$": 1}          the same of the first array on the path, be it a or a.b
//! ```
//!
//! Included fields keep the document's order; `$elemMatch` and computed fields follow in the order of the specification.

mod parse;
#[cfg(test)]
mod tests;

use crate::assignment::Assignment;
use crate::computed::Computed;
use crate::matcher::path::{ARRAY, DOCUMENT, Path, inner, walk};
use crate::matcher::{Matcher, path::LeafArrays};
use crate::names::Names;
use document::{Doc, DocBuf, DocWriter, Element, Result, ValueRef, bail, err, meter};

/// Bytes of a document that are written again in the time of a unit of work.
const BYTES_A_UNIT: usize = 256;

/// A parsed projection.
#[derive(Clone, Debug)]
pub struct Projection {
    kind: Kind,
    tree: Tree,
    /// Whether `_id` is kept.
    id: bool,
    /// Fields appended after those of the document.
    appended: Vec<Appended>,
    /// Arrays of which a part is left, once the fields are chosen.
    cuts: Cuts,
    positional: Option<Box<(Path, Matcher)>>,
    plain: Option<Plain>,
    spec: DocBuf,
}

/// An inclusion of whole fields of the document itself: few enough names to compare each with each field's.
#[derive(Clone, Debug)]
struct Plain {
    names: Vec<Box<[u8]>>,
    /// The first field of each name is enough.
    firsts: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Inclusion,
    Exclusion,
}

/// The fields named under one document. In an inclusion a leaf is kept, in an exclusion dropped.
#[derive(Clone, Debug, Default)]
struct Tree(Names<Branch>);

#[derive(Clone, Debug)]
enum Branch {
    Leaf,
    /// Kept, and cut afterwards.
    Cut,
    /// Computed afterwards: the document's own value does not count.
    Computed,
    Sub(Tree),
}

#[derive(Clone, Debug)]
enum Appended {
    ElemMatch {
        field: String,
        matcher: Matcher,
    },
    /// A dotted path and its expression.
    Computed {
        path: String,
        expression: Computed,
    },
}

/// The arrays named under one document that are cut.
#[derive(Clone, Debug, Default)]
struct Cuts(Names<Cut>);

#[derive(Clone, Debug)]
enum Cut {
    Slice(Slice),
    /// To the element that the filter matched.
    Positional,
    Sub(Cuts),
}

/// `$slice`: how many to skip (from the end when negative) and how many to return; a negative count alone takes the last ones.
#[derive(Clone, Copy, Debug)]
struct Slice {
    skip: i64,
    count: i64,
}

impl Projection {
    /// `filter` is what a positional `a.$` refers to. Errors are the real server's (31253, 31254, 31249, ...).
    pub fn parse(spec: Doc<'_>, filter: &Matcher, ctx: &crate::QueryContext) -> Result<Projection> {
        parse::projection(spec, filter, ctx)
    }
    /// Neither expressions nor operators: only fields kept or dropped.
    pub fn is_simple(&self) -> bool {
        self.appended.is_empty() && self.cuts.0.is_empty()
    }
    /// The same, and all of them fields of the document itself.
    pub fn is_shallow(&self) -> bool {
        self.is_simple() && self.tree.0.iter().all(|(_, branch)| !matches!(branch, Branch::Sub(_)))
    }
    /// The same for a reader that asks for fields by their names, and so never sees a second field of a name.
    pub fn first_of_each(mut self) -> Projection {
        self.plain.iter_mut().for_each(|plain| plain.firsts = true);
        self
    }
    /// Whether the document's own fields are dropped unless named.
    pub fn is_inclusion(&self) -> bool {
        self.kind == Kind::Inclusion
    }
    /// The paths the result depends on; `None` when it is the whole document.
    pub fn needed_fields(&self) -> Option<Vec<String>> {
        if self.kind == Kind::Exclusion || self.positional.is_some() {
            return None;
        }
        let mut out = Vec::new();
        self.tree.collect("", &mut out);
        if self.id {
            out.push("_id".to_string());
        }
        for a in &self.appended {
            match a {
                Appended::ElemMatch { field, .. } => out.push(field.clone()),
                Appended::Computed { expression, .. } => out.extend(expression.expression().needed_fields()?),
            }
        }
        Some(out)
    }
    /// The document it was parsed from.
    pub fn spec(&self) -> Doc<'_> {
        self.spec.doc()
    }
    /// Appends the projected document to `out`.
    pub fn apply(&self, doc: Doc<'_>, out: &mut Vec<u8>) -> Result<()> {
        if self.cuts.0.is_empty() {
            return self.apply_fields(doc, out);
        }
        meter::spend(doc.bytes().len() / BYTES_A_UNIT)?;
        let mut whole = Vec::with_capacity(doc.bytes().len());
        self.apply_fields(doc, &mut whole)?;
        let position = match self.positional.as_deref() {
            Some((path, matcher)) if meets_array(doc, path) => Some(matched_position(matcher, doc)?),
            _ => None,
        };
        let mut result = Ok(());
        DocWriter::write(out, |w| result = self.cuts.fields(Doc::from_validated(&whole), position, w));
        result
    }

    fn apply_fields(&self, doc: Doc<'_>, out: &mut Vec<u8>) -> Result<()> {
        if let Some(plain) = &self.plain {
            plain.apply(doc, out);
            return Ok(());
        }
        let mut result = Ok(());
        let start = out.len();
        DocWriter::write(out, |w| {
            let mut id_left = self.id;
            for e in doc {
                if id_left && e.name_bytes() == b"_id" {
                    w.element(&e);
                    id_left = false;
                } else if e.name_bytes() != b"_id" || self.tree.find("_id").is_some() {
                    self.field(&self.tree, &e, w);
                }
            }
            result = self.append_flat(doc, w);
        });
        result?;
        self.append_nested(doc, out, start)
    }

    fn field(&self, tree: &Tree, e: &Element<'_>, w: &mut DocWriter<'_>) {
        match (tree.find(e.name()), self.kind) {
            (None, Kind::Exclusion) | (Some(Branch::Leaf), Kind::Inclusion) => w.element(e),
            (Some(Branch::Cut), _) => w.element(e),
            (Some(Branch::Sub(sub)), _) => self.nested(sub, e, w),
            (Some(Branch::Computed), Kind::Exclusion) => self.elem_match_in_place(e, w),
            _ => {}
        }
    }

    /// In an exclusion `$elemMatch` cuts the array where it stands.
    fn elem_match_in_place(&self, e: &Element<'_>, w: &mut DocWriter<'_>) {
        for a in &self.appended {
            let Appended::ElemMatch { field, matcher } = a else { continue };
            if field != e.name() || e.tag() != ARRAY {
                continue;
            }
            let holder = DocWriter::build(|w| w.element(e));
            if let Ok((true, Some(at))) = matcher.matches_with_position(holder.doc())
                && let Some(item) = inner(e).iter().nth(at)
            {
                w.array_with(field, |w| w.element_as("0", &item));
            }
        }
    }

    /// A value under a path that continues: documents are projected, arrays element by element; a scalar stays only in an exclusion.
    fn nested(&self, sub: &Tree, e: &Element<'_>, w: &mut DocWriter<'_>) {
        match e.tag() {
            DOCUMENT => w.document_with(e.name(), |w| {
                for child in inner(e) {
                    self.field(sub, &child, w);
                }
            }),
            ARRAY => w.array_with(e.name(), |w| self.items(sub, inner(e), w)),
            _ if self.kind == Kind::Exclusion => w.element(e),
            _ => {}
        }
    }

    fn items(&self, sub: &Tree, array: Doc<'_>, w: &mut DocWriter<'_>) {
        let mut kept = 0;
        for item in array {
            match item.tag() {
                DOCUMENT => w.with_index(kept, |w, name| {
                    w.document_with(name, |w| {
                        for child in inner(&item) {
                            self.field(sub, &child, w);
                        }
                    })
                }),
                ARRAY => {
                    w.with_index(kept, |w, name| w.array_with(name, |w| self.items(sub, inner(&item), w)))
                }
                _ if self.kind == Kind::Exclusion => w.with_index(kept, |w, name| w.element_as(name, &item)),
                _ => continue,
            }
            kept += 1;
        }
    }

    /// `$elemMatch` and computed top-level fields, straight into the document being written.
    fn append_flat(&self, doc: Doc<'_>, w: &mut DocWriter<'_>) -> Result<()> {
        for a in &self.appended {
            match a {
                Appended::ElemMatch { .. } if self.kind == Kind::Exclusion => {}
                Appended::ElemMatch { field, matcher } => {
                    let Some(e) = doc.element(field).filter(|e| e.tag() == ARRAY) else { continue };
                    let (true, Some(at)) = matcher.matches_with_position(doc)? else { continue };
                    if let Some(item) = inner(&e).iter().nth(at) {
                        w.array_with(field, |w| w.element_as("0", &item));
                    }
                }
                Appended::Computed { path, expression } if !path.contains('.') => {
                    if let Some(v) = expression.eval(doc)? {
                        v.write(w, path);
                    }
                }
                Appended::Computed { .. } => {}
            }
        }
        Ok(())
    }

    /// Computed fields at dotted paths need the documents on the way, which may exist.
    fn append_nested(&self, doc: Doc<'_>, out: &mut Vec<u8>, start: usize) -> Result<()> {
        let dotted = |a: &&Appended| matches!(a, Appended::Computed { path, .. } if path.contains('.'));
        if !self.appended.iter().any(|a| dotted(&a)) {
            return Ok(());
        }
        let mut tree = Doc::from_validated(&out[start..]).to_document();
        for a in self.appended.iter().filter(dotted) {
            if let Appended::Computed { path, expression } = a {
                let parts: Vec<&str> = path.split('.').collect();
                let value = expression.eval(doc)?;
                Assignment::of(value.as_ref()).set(&mut tree, &parts)?;
            }
        }
        out.truncate(start);
        DocWriter::write(out, |w| tree.write_fields(w));
        Ok(())
    }
}

impl Plain {
    /// More names are looked for in another way.
    const NAMES_MAX: usize = 32;

    /// What a projection is where it is no more than this.
    fn of(p: &Projection) -> Option<Plain> {
        let whole = p.tree.0.iter().all(|(_, branch)| matches!(branch, Branch::Leaf));
        if p.kind != Kind::Inclusion || !p.is_simple() || !whole || p.tree.0.len() >= Plain::NAMES_MAX {
            return None;
        }
        let names = p.tree.0.iter().map(|(name, _)| name.as_str()).chain(p.id.then_some("_id"));
        Some(Plain { names: names.map(|name| name.as_bytes().into()).collect(), firsts: false })
    }

    fn apply(&self, doc: Doc<'_>, out: &mut Vec<u8>) {
        DocWriter::write(out, |w| {
            let mut missing = (1u64 << self.names.len()) - 1;
            for e in doc {
                let Some(at) = self.names.iter().position(|name| is_same(name, e.name_bytes())) else {
                    continue;
                };
                if self.firsts && missing & (1 << at) == 0 {
                    continue;
                }
                w.element(&e);
                missing &= !(1 << at);
                if self.firsts && missing == 0 {
                    break;
                }
            }
        });
    }
}

/// Compares short names, most of which differ in their first byte: a call to the general comparison costs more than that.
#[inline]
fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b)
}

impl Tree {
    fn find(&self, name: &str) -> Option<&Branch> {
        self.0.get(name)
    }
    fn collect(&self, prefix: &str, out: &mut Vec<String>) {
        for (name, branch) in self.0.iter() {
            let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
            match branch {
                Branch::Sub(sub) => sub.collect(&path, out),
                _ => out.push(path),
            }
        }
    }
}

fn matched_position(matcher: &Matcher, doc: Doc<'_>) -> Result<usize> {
    match matcher.matches_with_position(doc)? {
        (true, Some(at)) => Ok(at),
        _ => bail!(51246, "positional operator '.$' couldn't find a matching element in the array"),
    }
}

impl Cuts {
    /// Adds a cut at a path that neither begins with that of another nor is the beginning of one.
    fn insert(&mut self, path: &str, cut: Cut) {
        let Some((head, rest)) = path.split_once('.') else { return self.0.push(path.to_string(), cut) };
        if let Some(Cut::Sub(sub)) = self.0.get_mut(head) {
            return sub.insert(rest, cut);
        }
        let mut sub = Cuts::default();
        sub.insert(rest, cut);
        self.0.push(head.to_string(), Cut::Sub(sub));
    }

    /// Writes the fields of a document with what is left of the arrays; `position` is that of the element that the filter matched.
    fn fields(&self, doc: Doc<'_>, position: Option<usize>, w: &mut DocWriter<'_>) -> Result<()> {
        for e in doc {
            match self.0.get(e.name()) {
                None => w.element(&e),
                Some(cut) => cut.value(&e, position, w)?,
            }
        }
        Ok(())
    }

    /// Whether one of the cuts is that to the element that the filter matched.
    fn is_positional(&self) -> bool {
        self.0.iter().any(|(_, cut)| match cut {
            Cut::Slice(_) => false,
            Cut::Positional => true,
            Cut::Sub(sub) => sub.is_positional(),
        })
    }

    /// The same below each document of an array; arrays in it are left alone. The first array on the path of the positional cut is the one
    /// that it cuts, so nothing below an array is cut by position.
    fn items(&self, array: Doc<'_>, w: &mut DocWriter<'_>) -> Result<()> {
        array.iter().try_for_each(|item| self.item(&item, item.name(), w))
    }

    /// The same of one item, which gets this name.
    fn item(&self, item: &Element<'_>, name: &str, w: &mut DocWriter<'_>) -> Result<()> {
        let mut result = Ok(());
        match item.tag() {
            DOCUMENT => w.document_with(name, |w| result = self.fields(inner(item), None, w)),
            _ => w.element_as(name, item),
        }
        result
    }
}

impl Cut {
    fn value(&self, e: &Element<'_>, position: Option<usize>, w: &mut DocWriter<'_>) -> Result<()> {
        let mut result = Ok(());
        match (self, e.tag(), position) {
            (Cut::Slice(slice), ARRAY, _) => w.array_with(e.name(), |w| slice.write(inner(e), w)),
            (Cut::Positional, ARRAY, Some(at)) => {
                let item = matched_item(e, at)?;
                w.array_with(e.name(), |w| w.element_as("0", &item));
            }
            (Cut::Sub(sub), ARRAY, Some(at)) if sub.is_positional() => {
                let item = matched_item(e, at)?;
                w.array_with(e.name(), |w| result = sub.item(&item, "0", w));
            }
            (Cut::Sub(sub), DOCUMENT, _) => {
                w.document_with(e.name(), |w| result = sub.fields(inner(e), position, w))
            }
            (Cut::Sub(sub), ARRAY, _) => w.array_with(e.name(), |w| result = sub.items(inner(e), w)),
            _ => w.element(e),
        }
        result
    }
}

/// The element of an array that the filter matched.
fn matched_item<'d>(array: &Element<'d>, at: usize) -> Result<Element<'d>> {
    inner(array).iter().nth(at).ok_or_else(|| err!(51247, "positional operator '.$' element mismatch"))
}

impl Slice {
    fn write(&self, array: Doc<'_>, w: &mut DocWriter<'_>) {
        let length = array.iter().count() as i64;
        let start = if self.skip < 0 { (length + self.skip).max(0) } else { self.skip.min(length) };
        let end = start.saturating_add(self.count).min(length);
        let items = array.iter().skip(start as usize).take((end - start).max(0) as usize);
        for (i, item) in items.enumerate() {
            w.with_index(i, |w, name| w.element_as(name, &item));
        }
    }
}

/// Whether the path meets an array in `doc`.
pub(crate) fn meets_array(doc: Doc<'_>, path: &Path) -> bool {
    let mut met = false;
    // Nothing else in it fails than the end of the operation's time, which is seen elsewhere.
    let _ = meter::unbroken(|| {
        walk(doc, &path.parts, LeafArrays::Whole, &mut |e, outer| {
            met |= outer.is_some() || e.is_some_and(|e| matches!(e.value(), ValueRef::Array(_)));
            Ok(met)
        })
    });
    met
}
