//! Filters: parsed once into a tree, then asked of the raw bytes of many documents.
//!
//! ```text
//! {a: 1, "b.c": {$gt: 2, $ne: 5}}   parse    And[ a = 1, b.c > 2, Not[b.c = 5] ]
//! ```
//!
//! A leaf is true when one of the values its path leads to passes ([`path`]); `$ne`, `$nin`, `$not` and
//! `{$exists: false}` are negations of the whole leaf, so that they hold when no value passes. Nothing is decoded but the values asked for.

pub mod ast;
pub mod expr;
pub(crate) mod interruptible;
pub mod ops;
pub mod parse;
pub mod path;
pub mod pattern;
pub mod render;
#[cfg(test)]
mod tests;

pub use ast::{Comparison, Condition, Leaf, Node, Operand, Test};
pub use path::Path;

use crate::{ParseContext, QueryContext};
use document::fts::TextQuery;
use document::{Collation, Doc, DocBuf, Element, Result, ValueRef, bail, meter};
use ops::comparison::{compare_matches, compare_matches_missing};
use path::{ARRAY, DOCUMENT, ITEMS_A_UNIT, LeafArrays, count_passed, count_value, find, inner, walk};
use std::sync::Arc;

/// A parsed filter. A clone shares it.
#[derive(Clone, Debug)]
pub struct Matcher {
    root: Arc<Node>,
    filter: Arc<DocBuf>,
}

impl Default for Matcher {
    fn default() -> Matcher {
        Matcher::always()
    }
}

impl Matcher {
    /// Errors are the real server's: BadValue for an unknown operator or a malformed argument, NotImplemented for an operator that
    /// is known and not there yet.
    pub fn parse(filter: Doc<'_>, ctx: &QueryContext) -> Result<Matcher> {
        let root = parse::filter(filter, ctx)?;
        ops::geo::check_near(&root)?;
        ops::text::check(&root)?;
        Ok(Matcher::from_node(root, filter.to_owned()))
    }
    /// Parses the filter of a command, whose constant expressions must have a value even if there is no document.
    ///
    /// # Errors
    /// Those of [`Matcher::parse`] and of the expressions.
    pub fn parse_checked(filter: Doc<'_>, ctx: &QueryContext) -> Result<Matcher> {
        match ops::stands_in(filter, "$expr") {
            true => ctx.checked(|ctx| Matcher::parse(filter, ctx)),
            false => Matcher::parse(filter, ctx),
        }
    }
    /// Parses a filter of something else than a query: a validator, or the filter of a list. It knows no index and no sort, and
    /// runs no scripts.
    ///
    /// # Errors
    /// BadValue (2) for `$text` and `$where`, 5626500 for `$near`, and those of [`Matcher::parse`].
    pub fn parse_plain(filter: Doc<'_>, ctx: &QueryContext) -> Result<Matcher> {
        if let Some(name) = ["$text", "$where"].into_iter().find(|name| ops::stands_in(filter, name)) {
            bail!(BAD_VALUE, "{name} is not allowed in this context");
        }
        Matcher::parse_unsorted(filter, ctx)
    }
    /// Parses a filter where nothing sorts by distance, whatever is said of the distance.
    ///
    /// # Errors
    /// 5626500 for `$near`, and those of [`Matcher::parse`].
    pub fn parse_unsorted(filter: Doc<'_>, ctx: &QueryContext) -> Result<Matcher> {
        match ops::geo::names_near(filter) {
            true => Err(ops::geo::near_refused()),
            false => Matcher::parse(filter, ctx),
        }
    }
    /// Refuses `$near` where nothing sorts by distance.
    ///
    /// # Errors
    /// 5626500.
    pub fn refuse_near(&self) -> Result<()> {
        if self.near().is_some() {
            return Err(ops::geo::near_refused());
        }
        Ok(())
    }
    /// The near predicate, with its path: without a sort of its own a query returns the nearest first.
    pub fn near(&self) -> Option<(&str, &ops::geo::Near)> {
        self.root.conjuncts().iter().find_map(ops::geo::near_of_node)
    }
    /// The same filter with its near predicate reaching no farther than `greatest`, in the unit of its metric.
    pub fn reaching(&self, greatest: f64) -> Matcher {
        Matcher { root: Arc::new(ops::geo::reaching(&self.root, greatest)), filter: self.filter.clone() }
    }
    /// The same filter at the time of `ctx`: what `$$NOW` and `$$CLUSTER_TIME` are in it.
    pub fn at_time_of(&self, ctx: &ParseContext) -> Matcher {
        Matcher { root: Arc::new(self.root.at_time_of(ctx)), filter: self.filter.clone() }
    }
    /// Matches every document.
    pub fn always() -> Matcher {
        Matcher::from_node(Node::True, DocBuf::new())
    }
    /// A matcher of a part of another's tree; `filter` is what explain prints for it.
    pub fn from_node(root: Node, filter: DocBuf) -> Matcher {
        Matcher { root: Arc::new(root), filter: Arc::new(filter) }
    }
    pub fn matches(&self, doc: Doc<'_>) -> Result<bool> {
        eval(&self.root, doc, &mut None)
    }
    /// Whether it matches, and the array position that a positional `$` means.
    pub fn matches_with_position(&self, doc: Doc<'_>) -> Result<(bool, Option<usize>)> {
        let mut position = None;
        let matched = eval(&self.root, doc, &mut position)?;
        Ok((matched, position.filter(|_| matched)))
    }
    /// Whether one array element that is a document matches; `false` for other elements.
    pub fn matches_element(&self, element: ValueRef<'_>) -> Result<bool> {
        match element {
            ValueRef::Document(d) | ValueRef::Array(d) => self.matches(d),
            _ => Ok(false),
        }
    }
    pub fn is_always_true(&self) -> bool {
        matches!(*self.root, Node::True)
    }
    pub fn is_always_false(&self) -> bool {
        matches!(*self.root, Node::False)
    }
    pub fn root(&self) -> &Node {
        &self.root
    }
    /// The `$text` among the top-level conjuncts.
    pub fn text(&self) -> Option<&Arc<TextQuery>> {
        self.root.conjuncts().iter().find_map(|n| match n {
            Node::Text(q) => Some(q),
            _ => None,
        })
    }
    /// The document this was parsed from.
    pub fn filter(&self) -> Doc<'_> {
        self.filter.doc()
    }
    /// The top-level conjuncts that are tests of a path.
    pub fn leaves(&self) -> impl Iterator<Item = &Leaf> {
        self.root.conjuncts().iter().filter_map(|n| match n {
            Node::Leaf(leaf) => Some(leaf),
            _ => None,
        })
    }
    /// The tests that every match must pass at `path`.
    pub fn tests_of<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a Test> {
        self.leaves().filter(move |l| &*l.path.text == path).map(|l| &l.test)
    }
    /// The (path, value) pairs a match must equal, from equalities and one-value `$in`s among the top-level conjuncts.
    pub fn equalities(&self) -> Vec<(&str, ValueRef<'_>)> {
        self.leaves().filter_map(|l| Some((&*l.path.text, l.test.equality()?))).collect()
    }
    /// The value that `path` must equal.
    pub fn equality(&self, path: &str) -> Option<ValueRef<'_>> {
        self.leaves().find_map(|l| if &*l.path.text == path { l.test.equality() } else { None })
    }
}

impl Test {
    /// The single value that passes.
    pub fn equality(&self) -> Option<ValueRef<'_>> {
        match self {
            Test::Compare(Comparison::Eq, operand) => Some(operand.value()),
            Test::In(set) if set.patterns.is_empty() && set.values.len() == 1 => Some(set.values[0].value()),
            _ => None,
        }
    }
    /// The collation that the strings it asks for compare by; `None` when it asks for none, and every collation gives
    /// the same.
    pub fn string_collation(&self) -> Option<&Collation> {
        match self {
            Test::Compare(_, operand) => operand.string_collation(),
            Test::In(set) => set.values.iter().find_map(|o| o.string_collation()),
            Test::ElemMatchValue(list) => list.iter().find_map(Condition::string_collation),
            _ => None,
        }
    }
    fn leaf_arrays(&self) -> LeafArrays {
        match self {
            Test::Size(_) | Test::ElemMatchObject(_) | Test::ElemMatchValue(_) => LeafArrays::Whole,
            _ => LeafArrays::Traverse,
        }
    }
    fn matches_missing(&self) -> bool {
        match self {
            Test::Compare(op, operand) => compare_matches_missing(*op, operand),
            Test::In(set) => set.has_null,
            _ => false,
        }
    }
}

fn eval(node: &Node, doc: Doc<'_>, position: &mut Option<usize>) -> Result<bool> {
    meter::spend(1)?;
    match node {
        Node::Leaf(leaf) => eval_leaf(leaf, doc, position),
        Node::And(children) => {
            for child in children {
                if !eval(child, doc, position)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        Node::Or(children) => {
            for child in children {
                // The real server forgets the position below a disjunction.
                if eval(child, doc, &mut None)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        Node::Nor(children) => {
            for child in children {
                if eval(child, doc, &mut None)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        Node::Not(child) => Ok(!eval(child, doc, &mut None)?),
        Node::Expr(e) => e.computed.eval_bool(doc),
        Node::Schema(s) => {
            meter::spend(doc.bytes().len() / 32)?;
            s.matches(doc)
        }
        Node::Text(q) => {
            meter::spend(doc.bytes().len() / 8)?;
            q.matches(doc)
        }
        Node::Script(function) => function.test(doc),
        Node::SampleRate { rate, seed } => Ok(sample(*seed, doc) < *rate),
        Node::True | Node::MayHold(_) => Ok(true),
        Node::False => Ok(false),
    }
}

fn eval_leaf(leaf: &Leaf, doc: Doc<'_>, position: &mut Option<usize>) -> Result<bool> {
    // Most predicates are on a top-level field that is no array.
    if let [part] = &*leaf.path.parts {
        let found = find(doc, &part.name);
        count_passed(doc, found.as_ref())?;
        match found {
            None => return Ok(leaf.test.matches_missing()),
            Some(e) if e.tag() != ARRAY => return eval_test(&leaf.test, &e, &mut None),
            Some(_) => {}
        }
    }
    let mut found = None;
    let matched = walk(doc, &leaf.path.parts, leaf.test.leaf_arrays(), &mut |e, outer| {
        meter::spend(1)?;
        let mut own = None;
        let passed = match e {
            None => leaf.test.matches_missing(),
            Some(e) => eval_test(&leaf.test, &e, &mut own)?,
        };
        if passed {
            found = outer.or(own);
        }
        Ok(passed)
    })?;
    if matched && found.is_some() {
        *position = found;
    }
    Ok(matched)
}

/// Whether one value passes; `$elemMatch` leaves the position of the element it found in `own`.
fn eval_test(test: &Test, e: &Element<'_>, own: &mut Option<usize>) -> Result<bool> {
    match test {
        Test::Compare(op, operand) => {
            count_value(e, 1)?;
            Ok(compare_matches(*op, operand, e))
        }
        Test::In(set) => {
            // As often as the list is halved.
            count_value(e, 1 + set.values.len().checked_ilog2().unwrap_or(0) as usize)?;
            set.matches(e)
        }
        Test::Exists => Ok(true),
        Test::Type(types) => Ok(types.contains(e.tag())),
        Test::Regex(p) => {
            p.spend(e.value_bytes().len())?;
            p.matches(e)
        }
        Test::Size(n) => has_size(e, *n),
        Test::ElemMatchObject(node) => elem_match(e, own, |item| match item.tag() {
            DOCUMENT | ARRAY => eval(node, inner(item), &mut None),
            _ => Ok(false),
        }),
        Test::ElemMatchValue(list) => elem_match(e, own, |item| eval_all(list, item)),
        Test::Other(test) => {
            meter::spend(test.units(e))?;
            test.matches(e)
        }
    }
}

/// Whether it is an array of so many elements.
fn has_size(e: &Element<'_>, size: i64) -> Result<bool> {
    let Ok(size) = usize::try_from(size) else { return Ok(false) };
    if e.tag() != ARRAY {
        return Ok(false);
    }
    // No more are counted than would be too many.
    meter::spend(size.min(e.value_bytes().len()) / ITEMS_A_UNIT)?;
    Ok(inner(e).iter().take(size.saturating_add(1)).count() == size)
}

fn elem_match(
    array: &Element<'_>,
    own: &mut Option<usize>,
    mut accepts: impl FnMut(&Element<'_>) -> Result<bool>,
) -> Result<bool> {
    if array.tag() != ARRAY {
        return Ok(false);
    }
    for (i, item) in inner(array).iter().enumerate() {
        meter::spend(1)?;
        if accepts(&item)? {
            *own = Some(i);
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether one value, taken by itself, passes every condition.
pub fn eval_all(list: &[Condition], e: &Element<'_>) -> Result<bool> {
    for condition in list {
        if !eval_condition(condition, e)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn eval_condition(condition: &Condition, e: &Element<'_>) -> Result<bool> {
    match condition {
        Condition::Test(test) => eval_test(test, e, &mut None),
        Condition::All(list) => eval_all(list, e),
        Condition::Not(inner) => Ok(!eval_condition(inner, e)?),
    }
}

/// A number in [0, 1) that depends on the seed and the document.
fn sample(seed: u64, doc: Doc<'_>) -> f64 {
    let mut h = seed ^ 0xcbf2_9ce4_8422_2325;
    for b in doc.bytes().iter().take(64) {
        h = (h ^ *b as u64).wrapping_mul(0x0000_0100_0000_01b3);
    }
    h ^= h >> 31;
    h = h.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    h ^= h >> 29;
    (h >> 11) as f64 / (1u64 << 53) as f64
}
