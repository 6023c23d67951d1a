//! Which index, which ranges, which stages.
//!
//! ```text
//! filter ──bounds──> intervals of each index field ──ranges──> byte ranges of encoded keys
//!        ──candidates──> one for each index that helps ──rank──> Plan
//! ```
//!
//! Every plan is right whatever the estimate: what the ranges do not decide stays in the plan's filter. Here plans are ordered by rule (equality
//! prefix, sort provided, range); where several are left, their user may try them and remember which did best.

pub mod bounds;
mod candidates;
mod cover;
mod distinct;
mod partial;
mod places;
mod ranges;
mod rank;
#[cfg(test)]
mod scripts;
mod show;
#[cfg(test)]
mod tests;
pub(crate) mod text;
pub mod wildcard;

pub use bounds::{Interval, Intervals};
pub use cover::cover;
pub use distinct::{Distinct, Skips, distinct};
pub use places::Rings;
pub use ranges::KeyRange;
pub use show::Bounds;

use crate::matcher::{Matcher, Node};
use crate::sort::SortSpec;
use candidates::SCANS_MAX;
use document::key_values::Kinds;
use document::multikey::MultikeyPaths;
use document::wildcard::Wildcard;
use document::{Collation, DocBuf, Document, Result, Value, ValueRef, bail, meter};
use geo::cells::Layout;
use std::sync::Arc;

/// What the planner knows of an index.
#[derive(Clone, Debug, Default)]
pub struct IndexInfo {
    pub name: String,
    /// Paths to 1, -1 or a kind such as "hashed".
    pub key: Document,
    pub unique: bool,
    pub sparse: bool,
    /// Some document has an array along one of the key paths.
    pub multikey: bool,
    /// Where the arrays are.
    pub arrays: MultikeyPaths,
    /// What the fields have held, which says whether keys tell their values exactly.
    pub kinds: Kinds,
    pub hidden: bool,
    pub partial_filter: Option<DocBuf>,
    /// How its strings are ordered.
    pub collation: Collation,
    /// How an index on places keeps them.
    pub layout: Option<Layout>,
    /// The collection is scanned in its order; what users call it.
    pub clustered: Option<String>,
    pub wildcard: Option<WildcardInfo>,
    /// Set where this is a wildcard index, taken for one on a single path.
    pub expansion: Option<wildcard::Expansion>,
}

impl IndexInfo {
    /// Whether it is told of each field where the arrays are: not of places, which have several keys without any, and not of wildcards.
    fn tells_arrays(&self) -> bool {
        self.layout.is_none() && self.wildcard.is_none() && !self.arrays.is_empty()
    }
    /// Whether a document may have several keys that differ in the field at this position.
    fn repeats_at(&self, field: usize) -> bool {
        self.multikey && (!self.tells_arrays() || self.arrays.any_on(field))
    }
}

/// What a wildcard index holds.
#[derive(Clone, Debug)]
pub struct WildcardInfo {
    /// The position of the wildcard in the key pattern.
    pub at: usize,
    pub scope: Arc<Wildcard>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Forward,
    Backward,
}

impl Direction {
    pub fn reversed(self) -> Direction {
        match self {
            Direction::Forward => Direction::Backward,
            Direction::Backward => Direction::Forward,
        }
    }
}

/// An index scan: the ranges in the order they are to be walked, each from its low end (forward) or its high end (backward).
#[derive(Clone, Debug)]
pub struct IndexScan {
    pub index: String,
    pub key: Document,
    pub unique: bool,
    pub sparse: bool,
    pub partial: bool,
    pub collation: Collation,
    pub multikey: bool,
    /// Where documents have the arrays.
    pub arrays: MultikeyPaths,
    /// The scan can meet a record more than once; the executor drops repeats.
    pub repeats: bool,
    /// Where it is one of a wildcard index.
    pub wildcard: Option<Arc<Wildcard>>,
    pub direction: Direction,
    /// Disjoint.
    pub ranges: Vec<KeyRange>,
    /// What the ranges were made of, for explain.
    pub bounds: Bounds,
    /// The collection itself is walked, in the order of its clustered index.
    pub clustered: bool,
    /// Of each field, whether it is read from the key; empty where the scan leads to documents.
    pub covered: Vec<bool>,
    /// Set where each key leads to the next one that differs in its leading fields.
    pub skips: Option<Skips>,
}

impl IndexScan {
    /// A scan of no key of the index.
    fn of(index: &IndexInfo) -> IndexScan {
        IndexScan {
            index: index.name.clone(),
            key: index.key.clone(),
            unique: index.unique,
            sparse: index.sparse,
            partial: index.partial_filter.is_some(),
            collation: index.collation.clone(),
            multikey: index.multikey,
            arrays: index.arrays.clone(),
            repeats: index.multikey,
            wildcard: None,
            direction: Direction::Forward,
            ranges: Vec::new(),
            bounds: Bounds::Given(Document::new()),
            clustered: index.clustered.is_some(),
            covered: Vec::new(),
            skips: None,
        }
    }
    /// Of each field of the index whether it descends.
    pub fn descending(&self) -> impl Iterator<Item = bool> {
        self.key.iter().map(|(_, v)| ranges::FieldKind::of(v) == Some(ranges::FieldKind::Descending))
    }
}

/// A tree of stages; the executor adds projection, skip and limit.
#[derive(Clone, Debug)]
pub enum Plan {
    /// No document can match.
    Eof,
    CollScan {
        direction: Direction,
        filter: Matcher,
    },
    /// One document by `_id` equality; `filter` is what remains to check.
    IdHack {
        id: Value,
        filter: Matcher,
    },
    /// Scan, fetch, check `filter`.
    Index {
        scan: IndexScan,
        filter: Matcher,
    },
    /// The union of the branches, a record once.
    Or(Vec<Plan>),
    /// The union of branches that each have this order, in that order; a record once.
    Merge {
        branches: Vec<Plan>,
        order: SortSpec,
    },
    /// The input in the order of its distance from the point of the filter's near predicate.
    Near {
        /// A scan of all that is near enough.
        input: Box<Plan>,
        order: SortSpec,
        /// The same in parts, from near to far.
        rings: Arc<Rings>,
    },
    /// A blocking sort of the input by the request's sort, whose pattern this is.
    Sort {
        input: Box<Plan>,
        pattern: Document,
    },
}

impl Plan {
    /// Whether the plan ends in a blocking sort.
    pub fn needs_sort(&self) -> bool {
        matches!(self, Plan::Sort { .. } | Plan::Near { .. })
    }
    /// Whether it reads no documents.
    pub fn is_covered(&self) -> bool {
        matches!(self, Plan::Index { scan, .. } if !scan.covered.is_empty())
    }
    /// Whether it leads to one record for each value of a field.
    pub fn is_distinct(&self) -> bool {
        matches!(self, Plan::Index { scan, .. } if scan.skips.is_some())
    }
    /// Below the sort, if there is one.
    pub fn access(&self) -> &Plan {
        match self {
            Plan::Sort { input, .. } | Plan::Near { input, .. } => input.access(),
            other => other,
        }
    }
    /// The key pattern of the one index that the plan reads, by however many scans.
    pub fn key_pattern(&self) -> Option<&Document> {
        match self.access() {
            Plan::Index { scan, .. } => Some(&scan.key),
            Plan::Or(branches) | Plan::Merge { branches, .. } => {
                let (first, others) = branches.split_first()?;
                let key = first.key_pattern()?;
                others.iter().all(|b| b.key_pattern().is_some_and(|k| same_key(k, key))).then_some(key)
            }
            _ => None,
        }
    }
    /// What tells it from the other plans of the same query, if it reads one index.
    pub fn identity(&self) -> Option<String> {
        match self.access() {
            Plan::Index { scan, .. } => {
                let path = scan.key.keys().collect::<Vec<_>>().join(" ");
                Some(format!("{} {path} {:?} {}", scan.index, scan.direction, self.needs_sort()))
            }
            Plan::Merge { branches, .. } => {
                let parts: Option<Vec<String>> = branches.iter().map(Plan::identity).collect();
                Some(format!("merge of {}", parts?.join(", ")))
            }
            _ => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Hint {
    Name(String),
    Key(Document),
    Natural(Direction),
}

impl Hint {
    /// As [`Hint::parse`]; an empty document names none.
    pub fn given(v: ValueRef<'_>) -> Result<Option<Hint>> {
        match v {
            ValueRef::Document(d) if d.is_empty() => Ok(None),
            v => Hint::parse(v).map(Some),
        }
    }
    /// The `hint` of a command: an index's name, its key pattern, or `{$natural: 1 | -1}`.
    pub fn parse(v: ValueRef<'_>) -> Result<Hint> {
        match v {
            ValueRef::String(name) => Ok(Hint::Name(name.to_string())),
            ValueRef::Document(d) => match d.get("$natural") {
                Some(_) if d.iter().nth(1).is_some() => {
                    bail!(BAD_VALUE, "$natural hint cannot be combined with other fields")
                }
                Some(n) => match document::number::to_i64_exact(&n.to_value()) {
                    Some(1) => Ok(Hint::Natural(Direction::Forward)),
                    Some(-1) => Ok(Hint::Natural(Direction::Backward)),
                    _ => bail!(BAD_VALUE, "$natural hint must be 1 or -1"),
                },
                None => Ok(Hint::Key(d.to_document())),
            },
            _ => bail!(FAILED_TO_PARSE, "Hint must be a string or an object"),
        }
    }
}

/// What is asked of the planner.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    pub filter: &'a Matcher,
    pub sort: Option<&'a SortSpec>,
    pub hint: Option<&'a Hint>,
    pub indexes: &'a [IndexInfo],
    /// The query's: what `min` and `max` are read in.
    pub collation: &'a Collation,
    /// The collection's: that of its index on `_id`.
    pub id_collation: &'a Collation,
    /// Inclusive lower and exclusive upper bounds on the hinted index's key; both empty in almost every query.
    pub min: Option<&'a Document>,
    pub max: Option<&'a Document>,
}

impl<'a> Request<'a> {
    pub fn new(filter: &'a Matcher, indexes: &'a [IndexInfo]) -> Request<'a> {
        let simple = const { &Collation::SIMPLE };
        Request {
            filter,
            sort: None,
            hint: None,
            indexes,
            collation: simple,
            id_collation: simple,
            min: None,
            max: None,
        }
    }
}

/// The best plan for a query by rule; errors are the real server's (BadValue for a hint that names no index).
pub fn plan(request: &Request<'_>) -> Result<Plan> {
    Ok(plans(request)?.into_iter().next().unwrap_or(Plan::Eof))
}

/// The plans worth trying, the best by rule first; never none.
pub fn plans(request: &Request<'_>) -> Result<Vec<Plan>> {
    if let Some(plan) = settled(request)? {
        return Ok(vec![plan]);
    }
    let sort = request.sort.filter(|s| !s.is_empty());
    let found = rank::ordered(candidates::all(request.filter, sort, request.indexes));
    if !found.is_empty() {
        return found.into_iter().map(|c| c.into_plan(sort)).collect();
    }
    if let Some(sort) = sort
        && let Some(merged) = merge(request, sort)
    {
        return Ok(vec![merged]);
    }
    let plan = match union(request, usize::MAX)? {
        Some(plan) => plan,
        None if text::is_nested(request.filter.root()) => bail!(
            NO_QUERY_EXECUTION_PLANS,
            "error processing query: planner returned error :: caused by :: Failed to produce a solution for TEXT under OR - other non-TEXT clauses under OR have to be indexed as well."
        ),
        None => scan(request, Direction::Forward),
    };
    Ok(vec![with_sort(plan, sort)?])
}

/// The plan where the request leaves no choice.
fn settled(request: &Request<'_>) -> Result<Option<Plan>> {
    let sort = request.sort.filter(|s| !s.is_empty());
    let natural = request.sort.and_then(|s| s.natural());
    if request.min.is_some() || request.max.is_some() {
        return with_sort(candidates::min_max(request)?, sort).map(Some);
    }
    if let Some(query) = text::query_of(request) {
        if natural.is_some() {
            bail!(BAD_VALUE, "text expression not allowed with $natural sort order");
        }
        return with_sort(text::plan(request, query)?, sort).map(Some);
    }
    let hinted = match request.hint {
        Some(Hint::Natural(_)) if request.filter.near().is_some() => {
            bail!(BAD_VALUE, "a $natural hint excludes the index that a query by distance needs")
        }
        Some(Hint::Natural(direction)) => return with_sort(scan(request, *direction), sort).map(Some),
        Some(hint) => Some(hinted_index(hint, request.indexes)?),
        None => None,
    };
    if request.filter.is_always_false() {
        return Ok(Some(Plan::Eof));
    }
    if request.filter.near().is_some() {
        return places::near(request, sort, hinted).map(Some);
    }
    if let Some(index) = hinted.filter(|index| index.wildcard.is_some()) {
        return by_wildcard(request, sort, index).map(Some);
    }
    if let Some(index) = hinted {
        return candidates::forced(request.filter, sort, index).map(Some);
    }
    if let Some(direction) = natural {
        return Ok(Some(scan(request, direction)));
    }
    Ok(by_id(request.filter, request.id_collation))
}
/// The plan of a query for which a wildcard index is hinted, which must hold all that can match.
fn by_wildcard(request: &Request<'_>, sort: Option<&SortSpec>, index: &IndexInfo) -> Result<Plan> {
    let indexes = std::slice::from_ref(index);
    if let Some(best) = rank::best(candidates::all(request.filter, sort, indexes)) {
        return best.into_plan(sort);
    }
    match union(&Request { indexes, ..*request }, usize::MAX)? {
        Some(plan) => with_sort(plan, sort),
        None => bail!(
            NO_QUERY_EXECUTION_PLANS,
            "error processing query: planner returned error :: caused by :: No query solutions"
        ),
    }
}

fn scan(request: &Request<'_>, direction: Direction) -> Plan {
    let filter = request.filter.clone();
    match request.indexes.iter().find(|i| i.clustered.is_some()) {
        Some(index) => Plan::Index { scan: candidates::whole(index, direction), filter },
        None => Plan::CollScan { direction, filter },
    }
}

fn with_sort(plan: Plan, sort: Option<&SortSpec>) -> Result<Plan> {
    Ok(match sort {
        Some(s) if !matches!(plan, Plan::Eof) => {
            Plan::Sort { input: Box::new(plan), pattern: s.to_document() }
        }
        _ => plan,
    })
}

fn hinted_index<'a>(hint: &Hint, indexes: &'a [IndexInfo]) -> Result<&'a IndexInfo> {
    let found = indexes.iter().find(|i| match hint {
        Hint::Name(name) => i.clustered.as_ref().unwrap_or(&i.name) == name,
        Hint::Key(key) => same_key(&i.key, key),
        Hint::Natural(_) => false,
    });
    match found {
        Some(index) if !index.hidden => Ok(index),
        _ => bail!(
            BAD_VALUE,
            "error processing query: planner returned error :: caused by :: hint provided does not correspond to an existing index"
        ),
    }
}

/// Whether two key patterns are the same, whatever types their numbers have.
pub fn same_key(a: &Document, b: &Document) -> bool {
    document::compare::compare_documents(a, b).is_eq()
}

/// The plan of a query for one `_id`, which needs no list of indexes: a caller may ask this before making one. Sorting one document is
/// no work. Only right without a hint. Where strings compare otherwise than in the collection's index on `_id`, whose
/// collation is given, one `_id` may be that of many documents.
pub fn by_id(filter: &Matcher, of_index: &Collation) -> Option<Plan> {
    let conjuncts = filter.root().conjuncts();
    for (i, node) in conjuncts.iter().enumerate() {
        let Node::Leaf(leaf) = node else { continue };
        if &*leaf.path.text != "_id" {
            continue;
        }
        let Some(value) = leaf.test.equality() else { continue };
        if matches!(value, ValueRef::Array(_) | ValueRef::Regex(..)) {
            continue;
        }
        if leaf.test.string_collation().is_some_and(|c| c != of_index) {
            continue;
        }
        let filter = match conjuncts.len() {
            1 => Matcher::always(),
            _ => residual(conjuncts, |j| j != i),
        };
        return Some(Plan::IdHack { id: value.to_value(), filter });
    }
    None
}

/// The conjunction of those conjuncts whose position `keep` accepts.
fn residual(conjuncts: &[Node], keep: impl Fn(usize) -> bool) -> Matcher {
    let kept: Vec<Node> =
        conjuncts.iter().enumerate().filter(|(i, _)| keep(*i)).map(|(_, n)| n.clone()).collect();
    Matcher::from_node(Node::and(kept), DocBuf::new())
}

/// The disjunctions among the conjuncts, with their places there.
fn disjunctions(root: &Node) -> impl Iterator<Item = (usize, &[Node])> {
    root.conjuncts().iter().enumerate().filter_map(|(i, n)| match n {
        Node::Or(branches) => Some((i, branches.as_slice())),
        _ => None,
    })
}

/// The filter of a branch of the disjunction at a place, with everything else that is asked: the disjunctions of the branch stand first.
/// `None`: nothing matches it.
fn disjunct(filter: &Matcher, at: usize, branch: &Node) -> Option<Matcher> {
    let others = filter.root().conjuncts().iter().enumerate().filter(|(i, _)| *i != at);
    let nodes = std::iter::once(branch).chain(others.map(|(_, n)| n)).cloned().collect();
    Some(Matcher::from_node(Node::and(nodes), DocBuf::new())).filter(|filter| !filter.is_always_false())
}

/// A disjunction whose every branch an index delivers in the order asked for, in a bounded number of scans.
fn merge(request: &Request<'_>, sort: &SortSpec) -> Option<Plan> {
    let (at, of) = disjunctions(request.filter.root()).next()?;
    if sort.by_score() || of.len() > SCANS_MAX {
        return None;
    }
    let mut branches = Vec::new();
    let filters: Vec<Matcher> = of.iter().filter_map(|branch| disjunct(request.filter, at, branch)).collect();
    let mut left = filters.len();
    for filter in filters {
        left -= 1;
        // Every branch to come is one scan at least.
        let room = SCANS_MAX.checked_sub(branches.len() + left)?;
        let found = candidates::all_within(&filter, Some(sort), request.indexes, room);
        let best = rank::best(found.into_iter().filter(|c| c.provides_sort && c.is_bounded()).collect())?;
        match best.into_plan(Some(sort)).ok()? {
            Plan::Merge { branches: inner, .. } => branches.extend(inner),
            plan => branches.push(plan),
        }
    }
    match branches.len() {
        0 | 1 => branches.pop(),
        _ => Some(Plan::Merge { branches, order: sort.clone() }),
    }
}

/// The plan of a disjunction whose every branch an index answers, among the first `own` of the filter. A branch is divided further by
/// the disjunctions in it, and not by those beside it: one of those serves all branches alike, or none.
///
/// # Errors
/// Those of [`meter::spend`].
fn union(request: &Request<'_>, own: usize) -> Result<Option<Plan>> {
    for (at, branches) in disjunctions(request.filter.root()).take(own) {
        if let Some(plan) = union_of(request, at, branches)? {
            return Ok(Some(plan));
        }
    }
    Ok(None)
}

fn union_of(request: &Request<'_>, at: usize, branches: &[Node]) -> Result<Option<Plan>> {
    let mut plans = Vec::with_capacity(branches.len());
    for branch in branches {
        meter::spend(CONJUNCT_UNITS * request.filter.root().conjuncts().len())?;
        let Some(filter) = disjunct(request.filter, at, branch) else { continue };
        let own = disjunctions(branch).count();
        match branch_plan(&Request { filter: &filter, ..*request }, own)? {
            Some(plan) => plans.push(plan),
            None => return Ok(None),
        }
    }
    Ok(match plans.len() {
        0 => Some(Plan::Eof),
        1 => plans.pop(),
        _ => Some(Plan::Or(plans)),
    })
}

/// What a condition costs to be copied and to be looked at for each index, in units of the meter.
const CONJUNCT_UNITS: usize = 5;

fn branch_plan(request: &Request<'_>, own: usize) -> Result<Option<Plan>> {
    if let Some(query) = request.filter.text() {
        return Ok(text::plan(request, query).ok());
    }
    if let Some(plan) = by_id(request.filter, request.id_collation).filter(|_| request.hint.is_none()) {
        return Ok(Some(plan));
    }
    match rank::best(candidates::all(request.filter, None, request.indexes)) {
        Some(best) => Ok(Some(Plan::Index { scan: best.scan, filter: best.filter })),
        None => union(request, own),
    }
}
