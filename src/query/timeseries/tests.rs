//! What filters and indexes of measurements say of buckets.

use super::*;
use document::{Document, Value, doc};

fn options() -> Options {
    Options::of_document(&doc! { "timeField": "t", "metaField": "m" }).unwrap()
}

#[test]
fn filters_reach_the_buckets_by_meta_and_time() {
    let date = |ms| Value::DateTime(ms);
    let on = |d: Document| predicate::on_buckets(&d, &options());
    assert_eq!(on(doc! { "v": 1 }), None);
    assert_eq!(on(doc! { "m.s": "a", "v": 1 }), Some(doc! { "$and": [{ "meta.s": "a" }] }));
    assert_eq!(on(doc! { "mother": 1 }), None);
    assert_eq!(
        on(doc! { "t": { "$gte": date(1), "$lt": date(5) } }),
        Some(
            doc! { "$and": [{ "control.max.t": { "$gte": date(1) } }, { "control.min.t": { "$lt": date(5) } }] }
        )
    );
    let region = doc! { "$centerSphere": [[1, 2], 0.1] };
    assert_eq!(
        on(doc! { "at": { "$geoWithin": region.clone() } }),
        Some(doc! { "$and": [{ "$_internalBucketGeoWithin": { "withinRegion": region, "field": "at" } }] })
    );
    assert_eq!(on(doc! { "$or": [{ "m": 1 }, { "v": 2 }] }), None, "one branch says nothing of buckets");
}

#[test]
fn indexes_are_said_of_buckets() {
    let key = |d: Document| indexes::bucket_key(&d, &options());
    assert_eq!(
        key(doc! { "m": 1, "t": -1 }).unwrap(),
        doc! { "meta": 1, "control.max.t": -1, "control.min.t": -1 }
    );
    assert!(key(doc! { "v": "hashed" }).is_err());
    assert!(key(doc! { "$**": 1 }).is_err());
    assert_eq!(key(doc! { "m": "hashed" }).unwrap(), doc! { "meta": "hashed" });
    assert_eq!(key(doc! { "m.$**": 1 }).unwrap(), doc! { "meta.$**": 1 });
    let sparse = |key: Document| {
        indexes::bucket_spec(&doc! { "key": key, "name": "i", "sparse": true }, &options()).is_ok()
    };
    assert!(sparse(doc! { "t": 1, "m": 1 }) && sparse(doc! { "m.a": 1 }) && !sparse(doc! { "m": 1, "v": 1 }));
    let places = doc! { "m.a": 1, "at.p": "2dsphere" };
    assert_eq!(key(places).unwrap(), doc! { "meta.a": 1, "data.at.p": "2dsphere_bucket" });
    let spec = doc! { "key": { "v": 1 }, "name": "v_1" };
    let made = indexes::bucket_spec(&spec, &options()).unwrap();
    assert_eq!(indexes::shown(&made), Some(doc! { "v": 2, "key": { "v": 1 }, "name": "v_1" }));
}

#[test]
fn the_filter_of_a_partial_index_asks_for_the_side_that_can_hold_it() {
    let on = |d: Document| indexes::bucket_filter(&d, &options());
    assert_eq!(on(doc! { "m.s": "a", "m.b": 2 }), doc! { "meta.s": "a", "meta.b": 2 });
    assert_eq!(on(doc! { "t": { "$lt": 5 } }), doc! { "control.min.t": { "$lt": 5 } });
    assert_eq!(on(doc! { "t": { "$gte": 5 } }), doc! { "control.max.t": { "$gte": 5 } });
    let both = doc! { "control.min.v": { "$lte": 5 }, "control.max.v": { "$gte": 5 } };
    assert_eq!(on(doc! { "v": 5 }), both);
    assert_eq!(
        on(doc! { "v": { "$in": [7, 2, 5] } }),
        doc! { "control.min.v": { "$lte": 7 }, "control.max.v": { "$gte": 2 } }
    );
    assert_eq!(
        on(doc! { "v": { "$lt": 5, "$lte": 4 } }),
        doc! { "control.min.v": { "$lt": 5 }, "$and": [{ "control.min.v": { "$lte": 4 } }] }
    );
    assert_eq!(on(doc! { "$and": [{ "v": 5 }, { "m": 1 }] }), doc! { "$and": [both, { "meta": 1 }] });
}

#[test]
fn a_filter_on_time_reaches_every_bucket_that_may_have_begun_before() {
    let at = |millis: i64| Value::DateTime(millis);
    let said =
        predicate::on_shard_key(&doc! { "m": 1, "t": { "$gte": (at(10_000_000)) } }, &options()).unwrap();
    let reach = (options().span_seconds + options().rounding_seconds) * 1000;
    assert_eq!(
        said,
        doc! { "$and": [
            { "meta": 1 }, { "control.min.t": { "$gte": (at(10_000_000 - reach)) } },
            { "control.max.t": { "$gte": (at(10_000_000)) } },
        ] }
    );
    assert_eq!(predicate::on_shard_key(&doc! { "v": 1 }, &options()), None);
}
