//! Plans in the shape of the real server's explain.

use crate::matcher::{Comparison, Matcher, Node, Test, render};
use crate::planner::{self, Direction, IndexScan, Plan};
use crate::projection::Projection;
use document::fts::TextQuery;
use document::{Document, Value, doc};

/// What the executor does beyond the plan.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extras<'a> {
    pub projection: Option<&'a Projection>,
    /// The paths that are read where no projection says so: shown where an index holds them all.
    pub needed: Option<&'a [String]>,
    /// Of documents that are fetched only these top-level fields are kept.
    pub narrowed: Option<&'a Projection>,
    pub skip: Option<i64>,
    pub limit: Option<i64>,
    /// The keys by which documents were found are the result, whatever a projection says.
    pub return_key: bool,
    /// The collection is clustered.
    pub clustered: bool,
}

/// The `winningPlan` of `plan`: a tree of stages, the last to act outermost.
pub fn winning_plan(plan: &Plan, extras: &Extras<'_>) -> Document {
    let mut out = stage_of(plan, extras);
    if let Some(n) = extras.skip.filter(|n| *n > 0) {
        out = doc! {"stage": "SKIP", "skipAmount": n, "inputStage": out};
    }
    if extras.return_key {
        out = doc! {"stage": "RETURN_KEY", "inputStage": out};
    }
    if let Some(p) = extras.projection.filter(|_| !extras.return_key) {
        out = projected(p.spec().to_document(), p.is_shallow(), plan.is_covered(), out);
    } else if let Some(fields) = extras.needed.filter(|_| plan.is_covered()) {
        let whole = fields.iter().all(|f| !f.contains('.'));
        out = projected(inclusion_of(fields.iter().cloned()), whole, true, out);
    } else if let Some(p) = extras.narrowed {
        out = projected(p.spec().to_document(), p.is_shallow(), false, out);
    }
    // A limit below a blocking sort is the sort's own.
    if let Some(n) = extras.limit.filter(|n| *n != 0 && !plan.needs_sort()) {
        out = doc! {"stage": "LIMIT", "limitAmount": n.abs(), "inputStage": out};
    }
    out
}

/// The stage of a projection; `simple`: it keeps or drops whole top-level fields.
fn projected(spec: Document, simple: bool, covered: bool, input: Document) -> Document {
    let stage = match (simple, covered) {
        (true, true) => "PROJECTION_COVERED",
        (true, false) => "PROJECTION_SIMPLE",
        (false, _) => "PROJECTION_DEFAULT",
    };
    doc! {"stage": stage, "transformBy": spec, "inputStage": input}
}

/// The projection that keeps these paths and no others.
pub fn inclusion_of(paths: impl Iterator<Item = String>) -> Document {
    let mut out: Document = paths.map(|path| (path, Value::Int32(1))).collect();
    if !out.keys().any(|path| path == "_id" || path.starts_with("_id.")) {
        out.push("_id", 0);
    }
    out
}

/// Puts the filter of what the shard owns above the access to the collection.
pub fn with_sharding_filter(stage: Document) -> Document {
    let above = [
        "LIMIT",
        "SKIP",
        "SORT",
        "RETURN_KEY",
        "PROJECTION_SIMPLE",
        "PROJECTION_DEFAULT",
        "PROJECTION_COVERED",
    ];
    if !stage.get_str("stage").is_some_and(|s| above.contains(&s)) {
        return doc! { "stage": "SHARDING_FILTER", "inputStage": stage };
    }
    let mut out = stage;
    if let Some(Value::Document(input)) = out.remove("inputStage") {
        out.push("inputStage", with_sharding_filter(input));
    }
    out
}

/// The stage of a count that reads keys alone; `None` where it needs documents.
pub fn count_scan(plan: &Plan) -> Option<Document> {
    let Plan::Index { scan, filter } = plan else { return None };
    if scan.clustered || !filter.is_always_true() {
        return None;
    }
    let mut out = index_scan(scan);
    if let Some(bounds) = scan.count_bounds(filter) {
        out.insert("stage", "COUNT_SCAN");
        out.remove("direction");
        out.insert("indexBounds", bounds);
    }
    Some(out)
}

/// A filter in explain's normal form.
pub fn parsed_query(filter: &Matcher) -> Document {
    render::node(filter.root())
}

fn stage_of(plan: &Plan, extras: &Extras<'_>) -> Document {
    match plan {
        Plan::Eof => doc! {"stage": "EOF"},
        Plan::CollScan { direction, filter } => {
            let mut out = doc! {"stage": "COLLSCAN"};
            push_filter(&mut out, filter);
            out.push("direction", direction_name(*direction));
            out
        }
        Plan::IdHack { id, filter } if extras.clustered => clustered_point(id, filter),
        Plan::IdHack { id, filter } if filter.is_always_true() => {
            let _ = id;
            doc! {"stage": "EXPRESS_IXSCAN", "keyPattern": "{ _id: 1 }", "indexName": "_id_"}
        }
        Plan::IdHack { id, filter } => {
            let value = crate::text::owned(id);
            let scan = doc! {
                "stage": "IXSCAN", "keyPattern": {"_id": 1}, "indexName": "_id_", "isMultiKey": false,
                "multiKeyPaths": {"_id": []}, "isUnique": true, "isSparse": false, "isPartial": false, "indexVersion": 2,
                "direction": "forward", "indexBounds": {"_id": [format!("[{value}, {value}]")]}
            };
            fetch(scan, filter)
        }
        Plan::Index { scan, filter } if scan.clustered => clustered_scan(scan, filter),
        Plan::Index { scan, filter } if !scan.covered.is_empty() => covered_scan(scan, filter),
        Plan::Index { scan, filter } => match filter.text() {
            Some(query) => text_match(scan, filter, query),
            None => fetch(index_scan(scan), filter),
        },
        Plan::Or(branches) => {
            let or = above_branches(branches, extras, |inputs| doc! {"stage": "OR", "inputStages": inputs});
            doc! {"stage": "SUBPLAN", "inputStage": or}
        }
        Plan::Merge { branches, order } => {
            let merge = |inputs| doc! {"stage": "SORT_MERGE", "sortPattern": order.to_document(), "inputStages": inputs};
            above_branches(branches, extras, merge)
        }
        Plan::Near { input, .. } => near_stage(input, extras),
        Plan::Sort { input, pattern } => {
            let mut out = doc! {"stage": "SORT", "sortPattern": pattern, "memLimit": crate::sort::MEMORY_LIMIT_BYTES as i64};
            if let Some(n) = extras.limit.filter(|n| *n != 0) {
                out.push("limitAmount", n.abs().saturating_add(extras.skip.unwrap_or(0)));
            }
            out.push("type", "simple");
            out.push("inputStage", stage_of(input, extras));
            out
        }
    }
}

/// A scan of terms. What else the filter asks for is asked of documents that have the text.
fn text_match(scan: &IndexScan, filter: &Matcher, query: &TextQuery) -> Document {
    let prefix = planner::text::held(filter, scan);
    let out = doc! {
        "stage": "TEXT_MATCH", "indexPrefix": prefix.clone(), "indexName": scan.index.as_str(),
        "parsedTextQuery": query.parsed(), "textIndexVersion": query.index().version(),
        "inputStage": fetch(index_scan(scan), &Matcher::always()),
    };
    let decided = |node: &Node| match node {
        Node::Text(_) => true,
        Node::Leaf(leaf) => {
            prefix.contains_key(&leaf.path.text) && matches!(&leaf.test, Test::Compare(Comparison::Eq, _))
        }
        _ => false,
    };
    let mut rest: Vec<Node> =
        filter.root().conjuncts().iter().filter(|node| !decided(node)).cloned().collect();
    let asked = match rest.len() {
        0 => return out,
        1 => render::node(&rest.remove(0)),
        _ => render::node(&Node::And(rest)),
    };
    doc! { "stage": "FETCH", "filter": asked, "inputStage": out }
}

/// One document of a clustered collection by its `_id`.
fn clustered_point(id: &Value, filter: &Matcher) -> Document {
    if filter.is_always_true() {
        return doc! {"stage": "EXPRESS_CLUSTERED_IXSCAN", "keyPattern": "{ _id: 1 }", "indexName": "_id_"};
    }
    let mut out = doc! {"stage": "CLUSTERED_IXSCAN"};
    push_filter(&mut out, filter);
    out.push("direction", "forward");
    out.push("minRecord", id.clone());
    out.push("maxRecord", id.clone());
    out
}

/// A scan in the order of the clustered index is a collection scan unless it has bounds.
fn clustered_scan(scan: &IndexScan, filter: &Matcher) -> Document {
    let bounds = scan.shown_bounds();
    let mut out = doc! {"stage": if bounds.is_empty() { "COLLSCAN" } else { "CLUSTERED_IXSCAN" }};
    push_filter(&mut out, filter);
    out.push("direction", direction_name(scan.direction));
    out.0.extend(bounds);
    out
}

/// The union of scans, and the documents fetched above it where no branch has to look at them.
fn above_branches(
    branches: &[Plan],
    extras: &Extras<'_>,
    union: impl Fn(Vec<Document>) -> Document,
) -> Document {
    let keys: Option<Vec<Document>> = branches
        .iter()
        .map(|b| match b {
            Plan::Index { scan, filter } if filter.is_always_true() && !scan.clustered => {
                Some(index_scan(scan))
            }
            _ => None,
        })
        .collect();
    match keys {
        Some(keys) => fetch(union(keys), &Matcher::always()),
        None => union(branches.iter().map(|b| stage_of(b, extras)).collect()),
    }
}

/// A scan whose keys hold all that is asked for.
fn covered_scan(scan: &IndexScan, filter: &Matcher) -> Document {
    let stage = index_scan(scan);
    let mut out = doc! {"stage": stage.get_str("stage").unwrap_or_default()};
    push_filter(&mut out, filter);
    out.0.extend(stage.0.into_iter().skip(1));
    out
}

fn near_stage(input: &Plan, extras: &Extras<'_>) -> Document {
    let mut out = doc! {"stage": "GEO_NEAR_2DSPHERE"};
    if let Plan::Index { scan, .. } = input.access() {
        if scan.key.iter().any(|(_, v)| v.as_str() == Some("2d")) {
            out.insert("stage", "GEO_NEAR_2D");
        }
        out.push("keyPattern", scan.key.clone());
        out.push("indexName", scan.index.as_str());
    }
    out.push("inputStages", vec![Value::from(stage_of(input, extras))]);
    out
}

fn push_filter(out: &mut Document, filter: &Matcher) {
    if !filter.is_always_true() {
        out.push("filter", render::node(filter.root()));
    }
}

fn fetch(scan: Document, filter: &Matcher) -> Document {
    let mut out = doc! {"stage": "FETCH"};
    push_filter(&mut out, filter);
    out.push("inputStage", scan);
    out
}

fn index_scan(scan: &IndexScan) -> Document {
    let mut out = doc! {
        "stage": if scan.skips.is_some() { "DISTINCT_SCAN" } else { "IXSCAN" },
        "keyPattern": &scan.key, "indexName": scan.index.as_str(), "isMultiKey": scan.multikey
    };
    if let Some(paths) = multikey_paths(scan) {
        out.push("multiKeyPaths", paths);
    }
    if let Some(collation) = scan.collation.document() {
        out.push("collation", collation);
    }
    out.push("isUnique", scan.unique);
    out.push("isSparse", scan.sparse);
    out.push("isPartial", scan.partial);
    out.push("indexVersion", 2);
    out.push("direction", direction_name(scan.direction));
    out.push("indexBounds", scan.shown_bounds());
    out
}

/// For each field where its path meets arrays. Texts, hashes and places on a plane keep no account of it.
fn multikey_paths(scan: &IndexScan) -> Option<Document> {
    let untold = |kind: &Value| matches!(kind.as_str(), Some("text" | "hashed" | "2d"));
    if scan.key.iter().any(|(_, kind)| untold(kind)) {
        return None;
    }
    let arrays = |(at, path): (usize, &str)| {
        let met = match &scan.wildcard {
            Some(wildcard) => wildcard.arrays_on(path),
            None => scan.arrays.on(at, path),
        };
        (path.to_string(), Value::Array(met.into_iter().map(Value::from).collect()))
    };
    Some(scan.key.keys().enumerate().map(arrays).collect())
}

fn direction_name(d: Direction) -> &'static str {
    match d {
        Direction::Forward => "forward",
        Direction::Backward => "backward",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::QueryContext;
    use crate::planner::{IndexInfo, Request, plan};
    use crate::sort::SortSpec;

    #[test]
    fn stages_nest_as_the_real_server_prints_them() {
        let filter =
            Matcher::parse(doc! {"a": 5, "b": {"$gt": 1}}.to_doc_buf().doc(), &QueryContext::at(0)).unwrap();
        let sort = SortSpec::parse(doc! {"c": 1}.to_doc_buf().doc()).unwrap();
        let indexes = [IndexInfo { name: "a_1".into(), key: doc! {"a": 1}, ..IndexInfo::default() }];
        let plan = plan(&Request { sort: Some(&sort), ..Request::new(&filter, &indexes) }).unwrap();
        let out = winning_plan(&plan, &Extras { limit: Some(3), ..Extras::default() });
        assert_eq!(out.get_str("stage"), Some("SORT"));
        assert_eq!(out.get_i64("limitAmount"), Some(3));
        assert_eq!(out.get_path("inputStage.filter"), Some(&Value::from(doc! {"b": {"$gt": 1}})));
        assert_eq!(
            out.get_path("inputStage.inputStage.indexBounds"),
            Some(&Value::from(doc! {"a": ["[5, 5]"]}))
        );
    }
}
