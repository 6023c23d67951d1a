//! Which index, which ranges, which stages.
use crate::matcher::Matcher;
use document::{DocBuf, Document, Result, Value};

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
    pub hidden: bool,
    pub partial_filter: Option<DocBuf>,
}

/// A range of encoded keys. Bounds are prefixes: an inclusive bound takes in every key that begins with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    pub lo: Vec<u8>,
    pub lo_inclusive: bool,
    pub hi: Vec<u8>,
    pub hi_inclusive: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Forward,
    Backward,
}

/// An index scan: the ranges in the order they are to be walked.
#[derive(Clone, Debug)]
pub struct IndexScan {
    pub index: String,
    pub key: Document,
    pub multikey: bool,
    pub direction: Direction,
    pub ranges: Vec<KeyRange>,
    /// `indexBounds` as explain prints them.
    pub bounds: Document,
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
    /// Scan, fetch, check `filter`. A multikey scan meets a record more than once: the executor drops repeats.
    Index {
        scan: IndexScan,
        filter: Matcher,
    },
    /// The union of the branches, a record once.
    Or(Vec<Plan>),
    /// A blocking sort of the input.
    Sort(Box<Plan>),
}

#[derive(Clone, Debug)]
pub enum Hint {
    Name(String),
    Key(Document),
    Natural(Direction),
}

/// What is asked of the planner.
pub struct Request<'a> {
    pub filter: &'a Matcher,
    pub sort: Option<&'a crate::sort::SortSpec>,
    pub hint: Option<&'a Hint>,
    pub indexes: &'a [IndexInfo],
}

/// The plan for a query; errors are the real server's (BadValue for a hint that names no index).
pub fn plan(request: &Request<'_>) -> Result<Plan> {
    Ok(Plan::CollScan { direction: Direction::Forward, filter: request.filter.clone() })
}
