//! What a shard key would do for the queries that were sampled: how many shards they would go to, and to which ranges of keys.
//!
//! ```text
//! single shard      the query holds the whole key to one value
//! multi shard       it limits the key; on how many shards that is depends on how the data is distributed
//! scatter gather    it says nothing of the key
//! ```
//! The key space is divided into ranges of about as many documents each; a query counts for every range that it reaches.

use super::{Analysis, Asked};
use crate::config::catalog::compare;
use crate::key_pattern::ShardKeyPattern;
use crate::messages::ddl::FirstChunk;
use crate::router::target;
use crate::routing::RoutingTable;
use crate::shard::ddl::{Sample, split_points};
use crate::shard::resharding::table_of;
use document::{Collation, Doc, Document, Result, Value, doc, err};
use node::sampling::samples::{DIFFS, QUERIES};
use query::QueryContext;
use std::collections::BTreeSet;

/// Keys sampled for each range.
const KEYS_OF_RANGE: i64 = 10;
/// Digits of a percentage behind the point.
const DIGITS: f64 = 1e10;

/// Adds the distributions to the reply.
///
/// # Errors
/// Those of the reads; 4952606 where there are samples and not as many different keys as there are to be ranges.
pub(super) async fn analyze(analysis: &Analysis<'_>, reply: &mut Document) -> Result<()> {
    let asked = analysis.asked;
    let ns = format!("{}.{}", asked.db, asked.collection);
    let uuid = analysis.runner.uuid(&ns).await?;
    let uuid = uuid.ok_or_else(|| err!(NAMESPACE_NOT_FOUND, "ns does not exist: {ns}"))?;
    let of = doc! { "ns": ns.as_str(), "collectionUuid": { "$eq": Value::uuid(uuid) } };
    let (mut reads, mut writes) = (Counts::new(READS), Counts::new(WRITES));
    let mut any = false;
    each(analysis, QUERIES, &of, Some(1), &mut |_| any = true).await?;
    if !any {
        reply.push("readDistribution", reads.shown(&WORDS_OF_READS));
        reply.push("writeDistribution", writes.shown(&WORDS_OF_WRITES));
        return Ok(());
    }
    let ranges = Ranges::choose(analysis).await?;
    // An update of many documents has a diff on each shard, and is one update.
    let mut changed = BTreeSet::new();
    each(analysis, DIFFS, &of, None, &mut |d| {
        if let Some(id) = d.get("_id").and_then(|v| v.as_uuid()).filter(|_| changes_key(&asked.key, d)) {
            changed.insert(id);
        }
    })
    .await?;
    let mut key_updates = 0;
    each(analysis, QUERIES, &of, None, &mut |d| {
        ranges.count(d, &mut reads, &mut writes);
        let id = d.get("_id").and_then(|v| v.as_uuid());
        key_updates += i64::from(id.is_some_and(|id| changed.contains(&id)));
    })
    .await?;
    let mut written = writes.shown(&WORDS_OF_WRITES);
    if writes.total() > 0 {
        written.push("percentageOfShardKeyUpdates", percentage(key_updates, writes.total()));
        let [one, many] = writes.without_key;
        written.push("percentageOfSingleWritesWithoutShardKey", percentage(one, writes.total()));
        written.push("percentageOfMultiWritesWithoutShardKey", percentage(many, writes.total()));
    }
    reply.push("readDistribution", reads.shown(&WORDS_OF_READS));
    reply.push("writeDistribution", written);
    Ok(())
}

/// Every document of a collection of samples that matches, wherever there are some.
async fn each(
    analysis: &Analysis<'_>,
    ns: &str,
    filter: &Document,
    limit: Option<i64>,
    visit: &mut (dyn FnMut(Doc<'_>) + Send),
) -> Result<()> {
    let (db, collection) = storage::split_namespace(ns);
    for place in analysis.runner.places().await? {
        let mut find = doc! { "find": collection, "filter": filter.clone() };
        if let Some(limit) = limit {
            find.push("limit", limit);
        }
        let mut reply = analysis.runner.run_at(&place, db, find).await?;
        loop {
            crate::router::body::batch(reply.doc()).for_each(&mut *visit);
            let id = crate::router::body::cursor_id(reply.doc());
            if id == 0 {
                break;
            }
            let more = doc! { "getMore": Value::Int64(id), "collection": collection };
            reply = analysis.runner.run_at(&place, db, more).await?;
        }
    }
    Ok(())
}

/// Whether an update has changed a field of the key, by its diff.
fn changes_key(key: &ShardKeyPattern, sample: Doc<'_>) -> bool {
    let touches = |path: &str| {
        let mut at = sample.get_document("diff");
        for part in path.split('.') {
            match at.and_then(|d| d.get(part)) {
                None => return false,
                Some(v) => match v.as_document() {
                    Some(d) => at = Some(d),
                    None => return true,
                },
            }
        }
        true
    };
    key.fields().iter().any(|f| touches(&f.path))
}

fn percentage(part: i64, whole: i64) -> f64 {
    (part as f64 * 100.0 / whole as f64 * DIGITS).round() / DIGITS
}

const READS: &[&str] = &["find", "aggregate", "count", "distinct"];
const WRITES: &[&str] = &["update", "delete", "findAndModify"];
const WORDS_OF_READS: [&str; 4] = [
    "percentageOfSingleShardReads",
    "percentageOfMultiShardReads",
    "percentageOfScatterGatherReads",
    "numReadsByRange",
];
const WORDS_OF_WRITES: [&str; 4] = [
    "percentageOfSingleShardWrites",
    "percentageOfMultiShardWrites",
    "percentageOfScatterGatherWrites",
    "numWritesByRange",
];

/// The queries of one kind.
struct Counts {
    names: Vec<(&'static str, i64)>,
    single: i64,
    multi: i64,
    scatter: i64,
    by_range: Vec<i64>,
    /// Writes of one document, and of many, that do not hold the key to one value.
    without_key: [i64; 2],
}

impl Counts {
    fn new(names: &[&'static str]) -> Counts {
        let names = names.iter().map(|name| (*name, 0)).collect();
        Counts { names, single: 0, multi: 0, scatter: 0, by_range: Vec::new(), without_key: [0; 2] }
    }
    fn total(&self) -> i64 {
        self.names.iter().map(|(_, n)| n).sum()
    }
    fn add(&mut self, name: &str, reach: &Reach, ranges: usize) {
        if let Some((_, n)) = self.names.iter_mut().find(|(known, _)| *known == name) {
            *n += 1;
        }
        self.by_range.resize(ranges, 0);
        match reach {
            Reach::One(at) => {
                self.single += 1;
                self.by_range[*at] += 1;
            }
            Reach::Some(all) => {
                self.multi += 1;
                all.iter().for_each(|at| self.by_range[*at] += 1);
            }
            Reach::All => {
                self.scatter += 1;
                self.by_range.iter_mut().for_each(|n| *n += 1);
            }
        }
    }
    fn shown(&self, words: &[&str; 4]) -> Document {
        let total = self.total();
        let mut size = doc! { "total": total };
        self.names.iter().for_each(|(name, n)| size.push(*name, *n));
        let mut d = doc! { "sampleSize": size };
        if total > 0 {
            for (word, n) in words.iter().zip([self.single, self.multi, self.scatter]) {
                d.push(*word, percentage(n, total));
            }
            d.push(words[3], Value::Array(self.by_range.iter().map(|n| Value::Int64(*n)).collect()));
        }
        d
    }
}

/// Which ranges a query reaches.
#[derive(Debug, PartialEq)]
enum Reach {
    One(usize),
    Some(Vec<usize>),
    All,
}

/// The key space, divided: a routing table whose every chunk is on a shard of its own.
struct Ranges {
    table: RoutingTable,
    count: usize,
    collation: Collation,
}

impl Ranges {
    async fn choose(analysis: &Analysis<'_>) -> Result<Ranges> {
        let Asked { key, .. } = analysis.asked;
        let count = usize::try_from(analysis.runner.ranges()).unwrap_or(1).max(1);
        let wanted = (count as i64).saturating_mul(KEYS_OF_RANGE);
        let fields = key.fields().iter().map(|f| {
            let value =
                Value::from(doc! { "$ifNull": vec![Value::from(format!("${}", f.path)), Value::Null] });
            if f.hashed { doc! { "$toHashedIndexKey": value }.into() } else { value }
        });
        let pipeline = vec![
            doc! { "$sample": { "size": wanted } },
            doc! { "$group": { "_id": (Value::Null), "keys": { "$push": { "key": (Value::Array(fields.collect())) } } } },
        ];
        let found = analysis.aggregate(pipeline).await?.into_iter().next().unwrap_or_default();
        let named = |v: &Value| -> Option<Document> {
            let paths = key.fields().iter().map(|f| f.path.clone());
            Some(paths.zip(v.as_document()?.get_array("key")?.iter().cloned()).collect())
        };
        let mut keys: Vec<Document> =
            found.get_array("keys").into_iter().flatten().filter_map(named).collect();
        keys.sort_by(compare);
        let sample = Sample { whole: (keys.len() as i64) < wanted, keys, documents: 0, bytes: 0 };
        let points = split_points(&sample, key, count, true)?;
        Ranges::at(key, points, analysis.default_collation().await?)
    }

    fn at(key: &ShardKeyPattern, points: Vec<Document>, collation: Collation) -> Result<Ranges> {
        let mut chunks = Vec::with_capacity(points.len() + 1);
        let mut min = key.global_min();
        for (i, max) in points.into_iter().chain([key.global_max()]).enumerate() {
            chunks.push(FirstChunk { min, max: max.clone(), shard: i.to_string() });
            min = max;
        }
        Ok(Ranges { count: chunks.len(), table: table_of("", key, &chunks)?, collation })
    }

    /// Counts a sampled query.
    fn count(&self, sample: Doc<'_>, reads: &mut Counts, writes: &mut Counts) {
        let (Some(name), Some(command)) = (sample.get_str("cmdName"), sample.get_document("cmd")) else {
            return;
        };
        let variables = query::command_let::evaluate(command, runtime::now_millis()).unwrap_or_default();
        if READS.contains(&name) {
            let filter = command.get_document("filter").unwrap_or(Doc::empty());
            let reach = self.reach(filter, command.get_document("collation"), variables, None);
            reads.add(name, &reach, self.count);
            return;
        }
        let Some(Write { filter, collation, many, replacement }) = Write::of(name, command) else { return };
        let reach = self.reach(filter, collation, variables, replacement);
        if !matches!(reach, Reach::One(_)) {
            writes.without_key[usize::from(many)] += 1;
        }
        writes.add(name, &reach, self.count);
    }

    fn reach(
        &self,
        filter: Doc<'_>,
        collation: Option<Doc<'_>>,
        variables: Document,
        replacement: Option<Doc<'_>>,
    ) -> Reach {
        let parse = query::ParseContext { variables, now_ms: runtime::now_millis(), ..Default::default() };
        let mut context = QueryContext::from(parse);
        let given = collation.filter(|c| !c.is_empty()).and_then(|c| Collation::parse(c).ok());
        context.collation = given.unwrap_or_else(|| self.collation.clone());
        let (target, limits) = target::reach(&self.table, filter, &context);
        let own = || target::equality_key(&self.table.key, replacement?, true);
        let range = |shard: &str| shard.parse::<usize>().ok().filter(|at| *at < self.count);
        match target.key.or_else(own) {
            Some(key) => Reach::One(range(&self.table.find(&key).shard).unwrap_or(0)),
            None if limits => Reach::Some(target.shards.iter().filter_map(|s| range(s)).collect()),
            None => Reach::All,
        }
    }
}

/// A sampled write.
struct Write<'a> {
    filter: Doc<'a>,
    collation: Option<Doc<'a>>,
    many: bool,
    /// The document that takes another's place: it names the key where the filter does not.
    replacement: Option<Doc<'a>>,
}

impl<'a> Write<'a> {
    fn of(name: &str, command: Doc<'a>) -> Option<Write<'a>> {
        let statement = match name {
            "update" => first(command, "updates")?,
            "delete" => first(command, "deletes")?,
            _ => command,
        };
        let flag = |field: &str| statement.get(field).is_some_and(|v| v.truthy());
        let change = statement.get_document("u").or_else(|| statement.get_document("update"));
        let whole = |d: &Doc<'_>| d.iter().next().is_none_or(|e| !e.name().starts_with('$'));
        Some(Write {
            filter: statement
                .get_document("q")
                .or_else(|| statement.get_document("query"))
                .unwrap_or(Doc::empty()),
            collation: statement.get_document("collation"),
            many: flag("multi") || (name == "delete" && statement.get_i64("limit") == Some(0)),
            replacement: change.filter(whole).filter(|_| !flag("upsert")),
        })
    }
}

fn first<'a>(command: Doc<'a>, list: &str) -> Option<Doc<'a>> {
    command.get(list)?.as_array()?.iter().next()?.value().as_document()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(key: Document, points: Vec<Document>) -> Ranges {
        Ranges::at(&ShardKeyPattern::parse(&key).unwrap(), points, Collation::SIMPLE).unwrap()
    }
    fn reach(ranges: &Ranges, filter: Document) -> Reach {
        ranges.reach(filter.to_doc_buf().doc(), None, Document::new(), None)
    }

    #[test]
    fn a_query_reaches_the_ranges_that_its_filter_leaves() {
        let three = ranges(doc! { "a": 1, "b": 1 }, vec![doc! { "a": 10, "b": 0 }, doc! { "a": 20, "b": 0 }]);
        assert_eq!(reach(&three, doc! { "a": 15, "b": 3 }), Reach::One(1));
        assert_eq!(reach(&three, doc! { "b": 3, "a": 5, "c": 1 }), Reach::One(0));
        // All of its documents are in one range here, which another distribution would change.
        assert_eq!(reach(&three, doc! { "a": 15 }), Reach::Some(vec![1]));
        assert_eq!(reach(&three, doc! { "a": { "$gte": 15 } }), Reach::Some(vec![1, 2]));
        assert_eq!(reach(&three, doc! { "a": { "$gt": 0 } }), Reach::Some(vec![0, 1, 2]));
        assert_eq!(reach(&three, doc! { "b": 1 }), Reach::All);
        assert_eq!(reach(&three, doc! {}), Reach::All);
    }

    #[test]
    fn writes_are_told_apart_by_whether_they_name_the_key() {
        let two = ranges(doc! { "a": 1 }, vec![doc! { "a": 10 }]);
        let (mut reads, mut writes) = (Counts::new(READS), Counts::new(WRITES));
        let mut count = |name: &str, cmd: Document| {
            let sample = doc! { "cmdName": name, "cmd": cmd }.to_doc_buf();
            two.count(sample.doc(), &mut reads, &mut writes);
        };
        count("update", doc! { "updates": [{ "q": { "a": 1 }, "u": { "$set": { "x": 1 } } }] });
        count(
            "update",
            doc! { "updates": [{ "q": { "x": 1 }, "u": { "$set": { "x": 2 } }, "multi": true }] },
        );
        // A replacement says itself where it belongs; an upsert does not find its document by that.
        count("update", doc! { "updates": [{ "q": { "x": 1 }, "u": { "a": 11, "x": 2 } }] });
        count("update", doc! { "updates": [{ "q": { "x": 1 }, "u": { "a": 11 }, "upsert": true }] });
        count("delete", doc! { "deletes": [{ "q": { "a": { "$lt": 5 } }, "limit": 1 }] });
        count("delete", doc! { "deletes": [{ "q": {}, "limit": 0 }] });
        count("findAndModify", doc! { "query": { "a": 12 }, "remove": true });
        count("find", doc! { "filter": { "a": 3 } });
        assert_eq!((writes.single, writes.multi, writes.scatter), (3, 1, 3));
        assert_eq!(writes.without_key, [2, 2]);
        assert_eq!(writes.by_range, [5, 5]);
        assert_eq!((reads.single, reads.total(), writes.total()), (1, 1, 7));
    }

    #[test]
    fn a_diff_concerns_the_key_by_its_paths() {
        let key = ShardKeyPattern::parse(&doc! { "a.b": 1, "c": 1 }).unwrap();
        let changes = |diff: Document| changes_key(&key, doc! { "diff": diff }.to_doc_buf().doc());
        assert!(
            changes(doc! { "a": "u" }) && changes(doc! { "a": { "b": "i" } }) && changes(doc! { "c": "d" })
        );
        assert!(!changes(doc! { "a": { "x": "u" } }) && !changes(doc! { "b": "u" }) && !changes(doc! {}));
    }

    #[test]
    fn percentages_have_ten_digits() {
        assert_eq!(percentage(1, 3), 33.3333333333);
        assert_eq!(percentage(2, 2), 100.0);
    }
}
