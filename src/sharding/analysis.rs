//! analyzeShardKey: what would this shard key be like?
//!
//! ```text
//! cardinality, frequency   the documents, or a sample of them, grouped by the key: how many keys, and the five most common
//! monotonicity             documents in the order of the key, by an index: how their places there and their record ids go together
//! reads and writes         of sampled queries, how many shards and which ranges they would go to: [`distribution`]
//! ```
//! The commands that find this out are an ordinary client's; who runs them, a node or a router, is the [`Runner`].

mod distribution;

use crate::key_pattern::ShardKeyPattern;
use document::{Collation, Doc, DocBuf, Document, Result, Value, bail, doc, err};
use futures::future::BoxFuture;
use node::shape::Kind::{Bool, Number, Object};
use node::shape::{Shape, field, required};
use node::{Request, request::check_collection_name};

/// How many of the most common keys are shown.
const MOST_COMMON: i32 = 5;
/// How many documents are sampled where the command does not say.
const SAMPLE_DEFAULT: i64 = 10_000_000;
/// How many documents' places are compared with their record ids.
const PLACES: i64 = 10_000;
/// From where on a correlation counts as monotonic.
const THRESHOLD: f64 = 0.7;

const SHAPE: Shape = Shape {
    name: "analyzeShardKey",
    generic: true,
    fields: &[
        required("key", Object),
        field("keyCharacteristics", Bool),
        field("readWriteDistribution", Bool),
        field("sampleRate", Number),
        field("sampleSize", Number),
    ],
};

/// Runs the commands of an analysis on the database of the collection. `find` may run on one shard alone.
pub trait Runner: Sync {
    fn run<'a>(&'a self, db: &'a str, command: Document) -> BoxFuture<'a, Result<DocBuf>>;
    /// Where samples are kept: the shards, or this node under any name.
    fn places<'a>(&'a self) -> BoxFuture<'a, Result<Vec<String>>>;
    /// Runs a `find` or a `getMore` at one of those.
    fn run_at<'a>(&'a self, place: &'a str, db: &'a str, command: Document) -> BoxFuture<'a, Result<DocBuf>>;
    /// The UUID of a collection.
    fn uuid<'a>(&'a self, ns: &'a str) -> BoxFuture<'a, Result<Option<[u8; 16]>>>;
    /// `analyzeShardKeyNumRanges`.
    fn ranges(&self) -> i64;
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Sample {
    Rate(f64),
    Size(i64),
}

/// The command as it was asked.
struct Asked {
    db: String,
    collection: String,
    key: ShardKeyPattern,
    characteristics: bool,
    distribution: bool,
    sample: Sample,
}

impl Asked {
    fn parse(request: &Request<'_>) -> Result<Asked> {
        let Some(ns) = request.argument().and_then(|v| v.as_str()) else {
            bail!(TYPE_MISMATCH, "BSON field 'analyzeShardKey.analyzeShardKey' must be a string")
        };
        SHAPE.check_command(request.body, request.sequences)?;
        let (db, collection) = ns
            .split_once('.')
            .ok_or_else(|| err!(INVALID_NAMESPACE, "Invalid namespace specified '{ns}'"))?;
        check_collection_name(db, collection)?;
        if document::is_internal_database(db) || collection.starts_with("system.") {
            bail!(ILLEGAL_OPERATION, "Cannot run against an internal collection");
        }
        let flag = |name: &str| request.body.get_present(name).is_none_or(|v| v.truthy());
        let (characteristics, distribution) = (flag("keyCharacteristics"), flag("readWriteDistribution"));
        if !characteristics && !distribution {
            bail!(
                INVALID_OPTIONS,
                "Cannot skip both the key characteristics and the read and write distribution"
            );
        }
        Ok(Asked {
            db: db.to_string(),
            collection: collection.to_string(),
            key: ShardKeyPattern::parse(
                &request.body.get_document("key").unwrap_or(Doc::empty()).to_document(),
            )?,
            characteristics,
            distribution,
            sample: sample(request.body, characteristics)?,
        })
    }
}

fn sample(body: Doc<'_>, characteristics: bool) -> Result<Sample> {
    let rate = body.get_present("sampleRate").map(|v| v.as_f64().unwrap_or(f64::NAN));
    let size = body.get_present("sampleSize").map(|v| v.as_i64().unwrap_or(0));
    if (rate.is_some() || size.is_some()) && !characteristics {
        bail!(INVALID_OPTIONS, "Cannot specify a sample when the key characteristics are not asked for");
    }
    match (rate, size) {
        (Some(_), Some(_)) => bail!(INVALID_OPTIONS, "Cannot specify both 'sampleRate' and 'sampleSize'"),
        (Some(rate), None) if rate > 0.0 && rate <= 1.0 => Ok(Sample::Rate(rate)),
        (Some(rate), None) => bail!(
            BAD_VALUE,
            "BSON field 'analyzeShardKey.sampleRate' must be greater than 0 and at most 1, actual value '{rate}'"
        ),
        (None, Some(size)) if size > 0 => Ok(Sample::Size(size)),
        (None, Some(size)) => {
            bail!(
                BAD_VALUE,
                "BSON field 'analyzeShardKey.sampleSize' value must be >= 1, actual value '{size}'"
            )
        }
        (None, None) => Ok(Sample::Size(SAMPLE_DEFAULT)),
    }
}

/// Runs `analyzeShardKey`; returns its reply without `ok`.
///
/// # Errors
/// Those of the arguments; NamespaceNotFound (26), CommandNotSupportedOnView (166), IllegalOperation (20) for an empty collection.
pub async fn analyze(runner: &dyn Runner, request: Request<'_>) -> Result<Document> {
    let asked = Asked::parse(&request)?;
    let analysis = Analysis { runner, asked: &asked };
    let indexes = analysis.indexes().await?;
    let mut reply = Document::new();
    if asked.characteristics
        && let Some(index) = supporting(&asked.key, &indexes)
    {
        reply.push(
            "keyCharacteristics",
            analysis.characteristics(index, is_unique(&asked.key, &indexes)).await?,
        );
    }
    if asked.distribution {
        distribution::analyze(&analysis, &mut reply).await?;
    }
    Ok(reply)
}

struct Analysis<'a> {
    runner: &'a dyn Runner,
    asked: &'a Asked,
}

impl Analysis<'_> {
    async fn batch(&self, command: Document) -> Result<Vec<Document>> {
        let reply = self.runner.run(&self.asked.db, command).await?;
        let batch =
            reply.doc().get_document("cursor").and_then(|c| c.get("firstBatch")).and_then(|v| v.as_array());
        let items = batch.into_iter().flat_map(|b| b.iter());
        Ok(items.filter_map(|e| e.value().as_document()).map(|d| d.to_document()).collect())
    }
    async fn aggregate(&self, pipeline: Vec<Document>) -> Result<Vec<Document>> {
        let command = doc! {
            "aggregate": (self.asked.collection.as_str()), "pipeline": pipeline, "cursor": {},
            "allowDiskUse": true, "collation": { "locale": "simple" },
        };
        self.batch(command).await
    }
    async fn indexes(&self) -> Result<Vec<Document>> {
        self.batch(doc! { "listIndexes": (self.asked.collection.as_str()), "cursor": { "batchSize": 1000 } })
            .await
    }

    /// How strings compare in queries that name no collation: as in the index on `_id`.
    async fn default_collation(&self) -> Result<Collation> {
        let of_id = |d: &&Document| d.get_str("name") == Some("_id_");
        let indexes = self.indexes().await?;
        let collation = indexes.iter().find(of_id).and_then(|d| d.get_document("collation"));
        collation.map_or(Ok(Collation::SIMPLE), Collation::of_document)
    }

    async fn characteristics(&self, index: &Document, unique: bool) -> Result<Document> {
        let stats = self.aggregate(vec![doc! { "$collStats": { "storageStats": {} } }]).await?;
        let sum = |name: &str| -> i64 {
            let parts = stats.iter().filter_map(|d| d.get_document("storageStats"));
            parts.filter_map(|s| s.get_i64(name)).sum()
        };
        let total = self.aggregate(vec![doc! { "$count": "n" }]).await?;
        let total = total.first().and_then(|d| d.get_i64("n")).unwrap_or(0);
        if total == 0 {
            bail!(
                ILLEGAL_OPERATION,
                "Cannot analyze the characteristics of a shard key for an empty collection"
            );
        }
        let mut out = doc! {
            "numDocsTotal": total, "avgDocSizeBytes": (sum("size") / sum("count").max(1)),
        };
        if sum("numOrphanDocs") > 0 {
            out.push("numOrphanDocs", sum("numOrphanDocs"));
        }
        self.frequencies(total, unique, &mut out).await?;
        out.push("monotonicity", self.monotonicity(index).await?);
        Ok(out)
    }

    async fn frequencies(&self, total: i64, unique: bool, out: &mut Document) -> Result<()> {
        let fields = self.asked.key.fields();
        let mut pipeline = match self.asked.sample {
            Sample::Size(n) if n < total => vec![doc! { "$sample": { "size": n } }],
            Sample::Rate(rate) if rate < 1.0 => vec![doc! { "$match": { "$sampleRate": rate } }],
            _ => Vec::new(),
        };
        let parts: Vec<Value> = fields
            .iter()
            .map(|f| doc! { "$ifNull": vec![Value::from(format!("${}", f.path)), Value::Null] }.into())
            .collect();
        let top = doc! {
            "n": MOST_COMMON, "sortBy": { "n": (-1), "_id": 1 }, "output": { "value": "$_id", "frequency": "$n" },
        };
        pipeline.push(doc! { "$group": { "_id": (Value::Array(parts)), "n": { "$sum": 1i64 } } });
        pipeline.push(doc! { "$group": {
            "_id": (Value::Null), "keys": { "$sum": 1i64 }, "docs": { "$sum": "$n" }, "top": { "$topN": top },
        } });
        let found = self.aggregate(pipeline).await?.into_iter().next().unwrap_or_default();
        let common = found.get_array("top").into_iter().flatten().filter_map(Value::as_document).map(|d| {
            let values = d.get_array("value").into_iter().flatten().cloned();
            let value: Document = fields.iter().map(|f| f.path.clone()).zip(values).collect();
            doc! { "value": value, "frequency": (d.get_i64("frequency").unwrap_or(0)) }
        });
        let number = |name: &str| found.get_i64(name).unwrap_or(0);
        out.push("numDocsSampled", number("docs"));
        out.push("isUnique", unique);
        out.push("numDistinctValues", number("keys"));
        out.push("mostCommonValues", common.collect::<Vec<Document>>());
        Ok(())
    }

    /// Whether keys come in the order in which documents do. Of a hash they do not; clustered collections have no other order.
    async fn monotonicity(&self, index: &Document) -> Result<Document> {
        if self.asked.key.fields().iter().any(|f| f.hashed) {
            return Ok(doc! { "type": "not monotonic" });
        }
        if index.get_bool("clustered") == Some(true) {
            return Ok(doc! { "type": "unknown" });
        }
        let key = index.get_document("key").cloned().unwrap_or_default();
        let places = self.batch(doc! {
            "find": (self.asked.collection.as_str()), "hint": (key.clone()), "sort": key, "projection": { "_id": 1 },
            "showRecordId": true, "limit": PLACES, "batchSize": PLACES, "singleBatch": true,
        });
        let ids: Vec<f64> =
            places.await?.iter().filter_map(|d| d.get("$recordId")?.as_i64()).map(|n| n as f64).collect();
        Ok(match correlation(&ids) {
            None => doc! { "type": "unknown" },
            Some(c) => doc! {
                "recordIdCorrelationCoefficient": c,
                "type": (if c.abs() >= THRESHOLD { "monotonic" } else { "not monotonic" }),
            },
        })
    }
}

/// How the values go together with their places; `None` where there is nothing to compare.
fn correlation(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    let (mean_place, mean) = ((n - 1.0) / 2.0, values.iter().sum::<f64>() / n);
    let (mut both, mut places, mut own) = (0.0, 0.0, 0.0);
    for (i, v) in values.iter().enumerate() {
        let (p, d) = (i as f64 - mean_place, v - mean);
        both += p * d;
        places += p * p;
        own += d * d;
    }
    (places > 0.0 && own > 0.0).then(|| both / (places * own).sqrt())
}

/// The index that finds keys in their order: it begins with the key's fields and holds every document by plain values.
fn supporting<'i>(key: &ShardKeyPattern, indexes: &'i [Document]) -> Option<&'i Document> {
    let plain = |index: &&Document| {
        let simple = index.get_document("collation").is_none_or(|c| c.get_str("locale") == Some("simple"));
        simple && index.get_bool("sparse") != Some(true) && !index.contains_key("partialFilterExpression")
    };
    let begins = |index: &&Document| {
        let Some(pattern) = index.get_document("key") else { return false };
        pattern.len() >= key.fields().len()
            && key.fields().iter().zip(pattern.iter()).all(|(f, (name, v))| {
                let hashed = v.as_str() == Some("hashed");
                f.path == name && (hashed == f.hashed) && (hashed || v.as_f64().is_some())
            })
    };
    indexes.iter().filter(plain).find(begins)
}

/// Whether an index sees to it that no two documents have the same key.
fn is_unique(key: &ShardKeyPattern, indexes: &[Document]) -> bool {
    indexes.iter().any(|index| {
        let pattern = index.get_document("key");
        let unique = index.get_bool("unique") == Some(true) || index.get_str("name") == Some("_id_");
        let whole = !index.contains_key("partialFilterExpression") && index.get_bool("sparse") != Some(true);
        let same = |p: &Document| {
            p.len() == key.fields().len() && p.keys().all(|name| key.fields().iter().any(|f| f.path == name))
        };
        unique && whole && pattern.is_some_and(same)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(d: Document) -> ShardKeyPattern {
        ShardKeyPattern::parse(&d).unwrap()
    }

    #[test]
    fn a_correlation_is_1_in_order_and_none_where_nothing_differs() {
        assert_eq!(correlation(&[1.0, 2.0, 3.0, 4.0]), Some(1.0));
        assert_eq!(correlation(&[9.0, 8.0, 7.0]), Some(-1.0));
        assert!(correlation(&[1.0, 9.0, 2.0, 8.0, 3.0, 7.0]).unwrap().abs() < THRESHOLD);
        assert_eq!(correlation(&[]), None);
        assert_eq!(correlation(&[4.0]), None);
        assert_eq!(correlation(&[4.0, 4.0]), None);
    }

    #[test]
    fn an_index_supports_the_keys_it_begins_with() {
        let indexes = [
            doc! { "key": { "_id": 1 }, "name": "_id_" },
            doc! { "key": { "a": 1, "b": 1 }, "name": "a_1_b_1", "unique": true },
            doc! { "key": { "s": 1 }, "name": "s_1", "sparse": true, "unique": true },
            doc! { "key": { "h": "hashed" }, "name": "h_hashed" },
        ];
        let name = |k: Document| supporting(&key(k), &indexes).and_then(|i| i.get_str("name"));
        assert_eq!(name(doc! { "a": 1 }), Some("a_1_b_1"));
        assert_eq!(name(doc! { "a": 1, "b": 1 }), Some("a_1_b_1"));
        assert_eq!(name(doc! { "h": "hashed" }), Some("h_hashed"));
        for missing in [doc! { "b": 1 }, doc! { "a": "hashed" }, doc! { "s": 1 }, doc! { "h": 1 }] {
            assert_eq!(name(missing), None);
        }
        let unique = |k: Document| is_unique(&key(k), &indexes);
        assert!(unique(doc! { "_id": 1 }) && unique(doc! { "b": 1, "a": 1 }));
        assert!(!unique(doc! { "a": 1 }) && !unique(doc! { "s": 1 }));
    }
}
