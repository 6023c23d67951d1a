//! Documents that expire: the monitor of indexes with `expireAfterSeconds`.
//!
//! A pass walks the part of each such index that holds dates up to the moment of expiry, in batches. A batch is read
//! under the shared latch; then, as one commit, each of its documents is looked at again and deleted if it is still
//! expired. Deletions are ordinary log entries.

use crate::namespace::{Slot, SlotState};
use crate::parameters::Parameters;
use crate::stripe::Counter;
use crate::write::unit::Origin;
use crate::{Node, Operation};
use document::{Doc, ObjectId, Result, ValueRef, key_string, path};
use runtime::Instant;
use std::sync::Arc;
use std::time::Duration;
use storage::index::FieldKind;
use storage::{Collection, IndexSpec, RecordId};

/// Documents deleted in one commit.
const BATCH: usize = 200;
/// How often the monitor looks whether its next pass is due: its period may be changed at any time.
const TICK: Duration = Duration::from_millis(200);

/// What passes have done since the node started.
#[derive(Default)]
pub struct Totals {
    pub passes: Counter,
    pub deleted: Counter,
}

/// Runs passes until it is dropped: a primary service.
pub async fn monitor(node: Arc<Node>, parameters: Arc<Parameters>) {
    let mut last = Instant::now();
    loop {
        tokio::time::sleep(TICK).await;
        let period = parameters.int("ttlMonitorSleepSecs").max(1) as u64;
        if last.elapsed() < Duration::from_secs(period) {
            continue;
        }
        last = Instant::now();
        if parameters.bool("ttlMonitorEnabled") && node.log.health().is_ok() {
            pass(&node).await;
            node.failpoints.pause_while_set("hangTTLMonitorBetweenPasses").await;
        }
    }
}

/// An index that says when documents expire.
#[derive(PartialEq)]
struct Expiry {
    /// Of the collection.
    uuid: [u8; 16],
    index: String,
    path: String,
    descending: bool,
    /// Dates up to this one have expired, in milliseconds.
    until: i64,
    /// The index holds ids of buckets, whose seconds are dates.
    buckets: bool,
}

/// Deletes what has expired by now; answers how many documents. A collection that fails is left to the next pass.
pub async fn pass(node: &Node) -> u64 {
    let mut deleted = 0;
    for slot in node.namespaces.visible() {
        let now_ms = node.now_ms();
        let expiries: Vec<Expiry> = match &slot.read_unchecked().collection {
            Some(c) => expiries(c, now_ms),
            None => continue,
        };
        for expiry in expiries {
            node.failpoints.pause_while_set("hangTTLMonitorWithLock").await;
            deleted += expire(node, &slot, &expiry, now_ms).await.unwrap_or(0);
        }
    }
    node.ttl.passes.increment();
    node.ttl.deleted.add(deleted as i64);
    deleted
}

/// By indexes, and by the collection where it is clustered.
fn expiries(c: &Collection, now_ms: i64) -> Vec<Expiry> {
    let by_index = c.indexes().iter().filter_map(|i| expiry(c.uuid(), i.spec(), now_ms));
    by_index.chain(of_clustered(c, now_ms)).collect()
}

/// Of a clustered collection by its `_id`; of buckets when the last of their measurements has expired. The seconds of a
/// bucket's `_id` are no later than that.
fn of_clustered(c: &Collection, now_ms: i64) -> Option<Expiry> {
    let options = &c.meta().options;
    let seconds = options.get_i64("expireAfterSeconds").filter(|_| c.is_clustered())?;
    let until = now_ms.checked_sub(seconds.checked_mul(1000)?)?;
    let time = options.get_document("timeseries").and_then(|d| d.get_str("timeField"));
    let path = time.map_or("_id".to_string(), |time| format!("control.max.{time}"));
    let index = "_id_".to_string();
    Some(Expiry { uuid: c.uuid(), index, path, descending: false, until, buckets: time.is_some() })
}

fn expiry(uuid: [u8; 16], spec: &IndexSpec, now_ms: i64) -> Option<Expiry> {
    let seconds = spec.expire_after_seconds().filter(|s| *s >= 0)?;
    let fields = spec.fields();
    let buckets = spec.document().contains_key("originalSpec");
    let (field, dated) = match fields {
        [field] => (field, field),
        // The least and the greatest time of a bucket, which has expired when the greatest has.
        [a, b] if buckets => (a, if a.path.starts_with("control.max.") { a } else { b }),
        _ => return None,
    };
    if !matches!(field.kind, FieldKind::Ascending | FieldKind::Descending) {
        return None;
    }
    let until = now_ms.checked_sub(seconds.checked_mul(1000)?)?;
    let descending = field.kind == FieldKind::Descending;
    Some(Expiry {
        uuid,
        index: spec.name().to_string(),
        path: dated.path.clone(),
        descending,
        until,
        buckets: false,
    })
}

/// Deletes what has expired at `now_ms`, as long as the collection says so: dates may be given longer, or another collection take the name,
/// between two batches.
async fn expire(node: &Node, slot: &Slot, expiry: &Expiry, now_ms: i64) -> Result<u64> {
    let op = Operation::internal();
    let mut deleted = 0;
    let mut after: Option<(Vec<u8>, RecordId)> = None;
    let holds = |c: &Collection| expiries(c, now_ms).iter().any(|now| now == expiry);
    loop {
        let found =
            |s: &SlotState| s.collection.as_ref().filter(|c| holds(c)).map(|c| expired_in(c, expiry, &after));
        let batch = slot.read(&op, |s| Ok(found(s))).await?;
        let Some((records, last)) = batch else { return Ok(deleted) };
        let Some(last) = last else { return Ok(deleted) };
        after = Some(last);
        node.write(&op, slot, |unit| {
            if !unit.collection().is_some_and(holds) {
                return Ok(());
            }
            for record in records {
                let Some(old) = unit.collection().and_then(|c| c.get(record)).map(|d| d.to_owned()) else {
                    continue;
                };
                let index = unit.collection().and_then(|c| c.index(&expiry.index));
                let still = index.is_some_and(|i| i.spec().covers(old.doc()))
                    && is_expired(old.doc(), &expiry.path, expiry.until)?;
                if still && unit.owns(old.doc()) {
                    deleted += u64::from(unit.delete(record, Origin::default())?);
                }
            }
            Ok(())
        })
        .await?;
        tokio::task::yield_now().await;
    }
}

/// The next records after a position whose key is an expired date, and the position behind them; no position at the end.
fn expired_in(
    c: &Collection,
    expiry: &Expiry,
    after: &Option<(Vec<u8>, RecordId)>,
) -> (Vec<RecordId>, Option<(Vec<u8>, RecordId)>) {
    let Some(index) = c.index(&expiry.index) else { return (Vec::new(), None) };
    let key = |millis: i64| {
        let mut id = [0xFF; 12];
        let seconds = u32::try_from(millis.div_euclid(1000).max(0)).unwrap_or(u32::MAX);
        id[..4].copy_from_slice(&seconds.to_be_bytes());
        let value = match expiry.buckets {
            true if millis == i64::MIN => ValueRef::ObjectId(ObjectId([0; 12])),
            true => ValueRef::ObjectId(ObjectId(id)),
            false => ValueRef::DateTime(millis),
        };
        key_string::encode(&[value], &[expiry.descending])
    };
    let (mut from, mut to) = (key(i64::MIN), key(expiry.until));
    if expiry.descending {
        std::mem::swap(&mut from, &mut to);
    }
    let mut cursor = index.cursor();
    let mut next = match after {
        Some((key, record)) => cursor.seek_after(key, *record),
        None => cursor.seek(&from),
    };
    let (mut records, mut last) = (Vec::new(), None);
    while let Some(entry) = next {
        if entry.key > to.as_slice() {
            break;
        }
        records.push(entry.record);
        last = Some((entry.key, entry.record));
        if records.len() == BATCH {
            break;
        }
        next = cursor.next();
    }
    (records, last.map(|(key, record)| (key.to_vec(), record)))
}

/// Whether some date at `path`, in arrays too, is at or before `until`.
fn is_expired(doc: Doc<'_>, path: &str, until: i64) -> Result<bool> {
    path::for_each_value(doc, path, &mut |v| Ok(matches!(v, Some(ValueRef::DateTime(at)) if at <= until)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Request;
    use crate::failpoints::Mode;
    use crate::local::LocalClient;
    use crate::replication::testing;
    use document::{Value, doc};

    async fn left_after_pass(key: document::Document) -> Vec<i64> {
        let node = testing::node(None);
        let client = LocalClient::new(node.clone());
        client
            .ensure_collection("t.c", &[(key, doc! { "name": "a", "expireAfterSeconds": 10 })])
            .await
            .unwrap();
        let now = node.now_ms();
        let dates = |ages: &[i64]| {
            Value::Array(ages.iter().map(|age| Value::DateTime(now - age * 1000)).collect::<Vec<_>>())
        };
        let mut docs = vec![
            doc! { "_id": 0, "a": Value::DateTime(now - 11_000) },
            doc! { "_id": 1, "a": Value::DateTime(now - 5_000) },
            doc! { "_id": 2, "a": 5 },
            doc! { "_id": 3 },
            doc! { "_id": 4, "a": dates(&[1, 20]) },
            doc! { "_id": 5, "a": dates(&[1, 2]) },
            doc! { "_id": 6, "a": Value::DateTime(i64::MIN) },
        ];
        docs.extend((100..100 + 2 * BATCH as i64 + 7).map(|i| doc! { "_id": i, "a": Value::DateTime(i) }));
        for d in &docs {
            client.insert("t.c", d).await.unwrap();
        }
        let deleted = pass(&node).await;
        let left = client.find("t.c", &doc! {}).unwrap();
        assert_eq!(deleted as usize, docs.len() - left.len());
        assert_eq!((node.ttl.passes.get(), node.ttl.deleted.get()), (1, deleted as i64));
        left.iter().filter_map(|d| d.get_i64("_id")).collect()
    }

    #[tokio::test]
    async fn only_expired_dates_go_and_an_array_goes_with_its_oldest() {
        assert_eq!(left_after_pass(doc! { "a": 1 }).await, [1, 2, 3, 5]);
    }

    /// Whoever was told that dates hold longer keeps them, and so does another collection of the name.
    #[tokio::test]
    async fn what_is_changed_while_a_pass_is_under_way_stays() {
        let point = "hangTTLMonitorWithLock";
        for replaced in [false, true] {
            let node = testing::node(None);
            let client = LocalClient::new(node.clone());
            let expiring = doc! { "name": "a", "expireAfterSeconds": 10 };
            client.ensure_collection("t.c", &[(doc! { "a": 1 }, expiring)]).await.unwrap();
            let old = doc! { "_id": 1, "a": Value::DateTime(node.now_ms() - 3_600_000) };
            client.insert("t.c", &old).await.unwrap();
            node.failpoints.configure(point, Mode::AlwaysOn, doc! {});
            let change = async {
                node.failpoints.wait_entered(point, 1).await;
                let op = Operation::internal();
                if replaced {
                    crate::ddl::collections::drop_collection(&node, &op, "t.c", false).await.unwrap();
                    client
                        .ensure_collection("t.c", &[(doc! { "a": 1 }, doc! { "name": "a" })])
                        .await
                        .unwrap();
                    client.insert("t.c", &old).await.unwrap();
                } else {
                    let longer =
                        doc! { "collMod": "c", "index": { "name": "a", "expireAfterSeconds": 1_000_000 } };
                    let longer = longer.to_doc_buf();
                    let request = Request { db: "t", body: longer.doc(), sequences: &[] };
                    crate::ddl::coll_mod::coll_mod(&node, &op, request).await.unwrap();
                }
                node.failpoints.configure(point, Mode::Off, doc! {});
            };
            let (deleted, ()) = tokio::join!(pass(&node), change);
            assert_eq!(
                (deleted, client.find("t.c", &doc! {}).unwrap().len()),
                (0, 1),
                "replaced: {replaced}"
            );
        }
    }

    #[tokio::test]
    async fn a_descending_index_expires_the_same() {
        assert_eq!(left_after_pass(doc! { "a": -1 }).await, [1, 2, 3, 5]);
    }
}
