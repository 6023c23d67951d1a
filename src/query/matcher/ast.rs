//! A filter as a tree: what the matcher evaluates and the planner reads.

use crate::ParseContext;
use crate::matcher::expr::Expr;
use crate::matcher::ops::geo::Geo;
use crate::matcher::ops::schema::Schema;
use crate::matcher::path::Path;
use crate::matcher::pattern::Pattern;
use crate::script::Function;
use document::fts::TextQuery;
use document::{Collation, DocBuf, Document, Element, Result, Value, ValueRef, collation};
use std::fmt;
use std::sync::Arc;

/// A condition on a whole document.
#[derive(Clone, Debug)]
pub enum Node {
    And(Vec<Node>),
    Or(Vec<Node>),
    Nor(Vec<Node>),
    Not(Box<Node>),
    Leaf(Leaf),
    Expr(Expr),
    Schema(Arc<Schema>),
    Text(Arc<TextQuery>),
    /// `$_internalBucketGeoWithin`: of a bucket, that one of its measurements may have its place there. All buckets pass, since the
    /// measurements are looked at when they are unpacked; an index narrows them.
    MayHold(Leaf),
    /// `$where`.
    Script(Function),
    /// Keeps a document with this probability.
    SampleRate {
        rate: f64,
        seed: u64,
    },
    True,
    False,
}

/// A test of the values a path leads to: true when one of them passes.
#[derive(Clone, Debug)]
pub struct Leaf {
    pub path: Arc<Path>,
    pub test: Test,
}

/// A condition on one value, as `$not` and `$elemMatch` nest them.
#[derive(Clone, Debug)]
pub enum Condition {
    Test(Test),
    All(Vec<Condition>),
    Not(Box<Condition>),
}

/// What is asked of one value.
#[derive(Clone, Debug)]
pub enum Test {
    Compare(Comparison, Operand),
    In(InSet),
    Exists,
    Type(TypeSet),
    Regex(Arc<Pattern>),
    Size(i64),
    ElemMatchObject(Box<Node>),
    ElemMatchValue(Vec<Condition>),
    /// A test the planner cannot use.
    Other(Arc<dyn ElementTest>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Eq,
    Lt,
    Lte,
    Gt,
    Gte,
}

/// A test with its own type, never true of a missing value.
pub trait ElementTest: fmt::Debug + Send + Sync {
    /// Whether a value passes.
    ///
    /// # Errors
    /// Those of [`document::meter::spend`].
    fn matches(&self, e: &Element<'_>) -> Result<bool>;
    /// The work of matching a value, in units of the meter; what every test takes is counted already.
    fn units(&self, _e: &Element<'_>) -> usize {
        0
    }
    /// The operator and its argument, as explain prints them.
    fn describe(&self) -> Document;
    /// The test as one of a place.
    fn geo(&self) -> Option<&Geo> {
        None
    }
}

/// A constant of the filter, kept as bytes so that it is read as record values are.
#[derive(Clone, Debug)]
pub struct Operand {
    holder: DocBuf,
    pub(crate) tag: u8,
    pub(crate) fast: Fast,
    /// Simple too where the value holds no string, for which all collations are alike.
    pub(crate) collation: Collation,
    /// Whether every collation compares it alike.
    alike: bool,
}

/// The common constants, unpacked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fast {
    Integer(i64),
    Double(f64),
    String,
    Other,
}

impl Operand {
    pub fn new(value: &Value, collation: &Collation) -> Operand {
        let holder = value.to_holder();
        let alike = holder.doc().iter().all(|e| collation::compares_alike(e.value()));
        let collation = if alike { Collation::SIMPLE } else { collation.clone() };
        let fast = match value {
            Value::Int32(i) => Fast::Integer(*i as i64),
            Value::Int64(i) => Fast::Integer(*i),
            Value::Double(d) => Fast::Double(*d),
            Value::String(_) if collation.is_simple() => Fast::String,
            _ => Fast::Other,
        };
        Operand { holder, tag: value.tag(), fast, collation, alike }
    }
    pub fn of(e: &Element<'_>, collation: &Collation) -> Operand {
        Operand::new(&e.value().to_value(), collation)
    }
    /// The collation that its strings compare by; `None` when it holds none.
    pub fn string_collation(&self) -> Option<&Collation> {
        (!self.alike).then_some(&self.collation)
    }
    pub fn value(&self) -> ValueRef<'_> {
        self.holder.doc().iter().next().map_or(ValueRef::Null, |e| e.value())
    }
    /// The bytes of the value as they stand after the name in a document.
    pub(crate) fn bytes(&self) -> &[u8] {
        // The holder is {"": value}: 4 bytes of length, the tag, an empty name.
        let b = self.holder.bytes();
        b.get(6..b.len().saturating_sub(1)).unwrap_or(&[])
    }
    pub fn is_null(&self) -> bool {
        self.tag == 0x0A
    }
    pub fn is_nan(&self) -> bool {
        is_nan(self.value())
    }
}

/// Whether a number is not a number.
pub fn is_nan(v: ValueRef<'_>) -> bool {
    match v {
        ValueRef::Double(d) => d.is_nan(),
        // Combination field 11111 in the five bits below the sign.
        ValueRef::Decimal128(d) => d.0[15] & 0x7C == 0x7C,
        _ => false,
    }
}

/// The list of `$in`.
#[derive(Clone, Debug, Default)]
pub struct InSet {
    /// In the collation's order, without repeats.
    pub values: Vec<Operand>,
    pub patterns: Vec<Arc<Pattern>>,
    pub has_null: bool,
    pub collation: Collation,
}

/// The types `$type` accepts.
#[derive(Clone, Debug, Default)]
pub struct TypeSet {
    /// Each once.
    pub tags: Vec<u8>,
    /// The alias "number".
    pub any_number: bool,
}

impl TypeSet {
    pub fn insert(&mut self, tag: u8) {
        if !self.tags.contains(&tag) {
            self.tags.push(tag);
        }
    }
    pub fn contains(&self, tag: u8) -> bool {
        (self.any_number && matches!(tag, 0x01 | 0x10 | 0x12 | 0x13)) || self.tags.contains(&tag)
    }
}

impl Node {
    /// The same condition at another time. Only expressions ask for it.
    pub(super) fn at_time_of(&self, ctx: &ParseContext) -> Node {
        let all = |list: &[Node]| list.iter().map(|n| n.at_time_of(ctx)).collect();
        match self {
            Node::And(list) => Node::And(all(list)),
            Node::Or(list) => Node::Or(all(list)),
            Node::Nor(list) => Node::Nor(all(list)),
            Node::Not(inner) => Node::Not(Box::new(inner.at_time_of(ctx))),
            Node::Expr(e) => Node::Expr(e.at_time_of(ctx)),
            Node::Leaf(Leaf { path, test: Test::ElemMatchObject(inner) }) => {
                let test = Test::ElemMatchObject(Box::new(inner.at_time_of(ctx)));
                Node::Leaf(Leaf { path: path.clone(), test })
            }
            other => other.clone(),
        }
    }
    /// The conjunction of `nodes`, without needless nesting.
    pub fn and(nodes: Vec<Node>) -> Node {
        let mut flat = Vec::with_capacity(nodes.len());
        for node in nodes {
            match node {
                Node::And(inner) => flat.extend(inner),
                Node::True => {}
                other => flat.push(other),
            }
        }
        flat.sort_by(Node::order);
        match flat.len() {
            0 => Node::True,
            1 => flat.remove(0),
            _ => Node::And(flat),
        }
    }
    /// The order in which the real server evaluates siblings: by operator, then by path. The last array crossed decides what a positional
    /// `$` means, so the order can be seen.
    pub fn order(&self, other: &Node) -> std::cmp::Ordering {
        self.rank().cmp(&other.rank())
    }
    fn rank(&self) -> (u8, &str) {
        match self {
            Node::And(_) => (0, ""),
            Node::Or(_) => (1, ""),
            Node::Leaf(leaf) => (leaf.test.rank(), &leaf.path.text),
            Node::Not(_) => (20, ""),
            Node::Nor(_) => (21, ""),
            Node::True | Node::False => (23, ""),
            Node::Expr(_) | Node::Schema(_) | Node::Text(_) | Node::MayHold(_) | Node::SampleRate { .. } => {
                (24, "")
            }
            Node::Script(_) => (25, ""),
        }
    }
    /// The node's conjuncts: its children if it is a conjunction, else itself.
    pub fn conjuncts(&self) -> &[Node] {
        match self {
            Node::And(children) => children,
            Node::True => &[],
            other => std::slice::from_ref(other),
        }
    }
}

impl Test {
    fn rank(&self) -> u8 {
        match self {
            Test::ElemMatchObject(_) => 2,
            Test::ElemMatchValue(_) => 3,
            Test::Size(_) => 4,
            Test::Compare(Comparison::Eq, _) => 5,
            Test::Compare(Comparison::Lte, _) => 6,
            Test::Compare(Comparison::Lt, _) => 7,
            Test::Compare(Comparison::Gt, _) => 8,
            Test::Compare(Comparison::Gte, _) => 9,
            Test::Regex(_) => 10,
            Test::Exists => 12,
            Test::In(_) => 13,
            Test::Other(_) => 14,
            Test::Type(_) => 22,
        }
    }
}

impl Condition {
    /// The same condition asked of a path.
    pub fn at(self, path: &Arc<Path>) -> Node {
        match self {
            Condition::Test(test) => Node::Leaf(Leaf { path: path.clone(), test }),
            Condition::All(list) => Node::and(list.into_iter().map(|c| c.at(path)).collect()),
            Condition::Not(inner) => match inner.at(path) {
                Node::True => Node::False,
                node => Node::Not(Box::new(node)),
            },
        }
    }
    /// As [`Test::string_collation`].
    pub fn string_collation(&self) -> Option<&Collation> {
        match self {
            Condition::Test(test) => test.string_collation(),
            Condition::All(list) => list.iter().find_map(Condition::string_collation),
            Condition::Not(inner) => inner.string_collation(),
        }
    }
    /// Never true: `$all: []`.
    pub fn never() -> Condition {
        Condition::Test(Test::In(InSet::default()))
    }
    pub fn negated(self) -> Condition {
        Condition::Not(Box::new(self))
    }
}

/// Reads a filter's constant as the language's truth.
pub fn truth(v: ValueRef<'_>) -> Result<bool> {
    Ok(v.truthy())
}
