//! The collection against a model: a map from `_id` to document, and indexes computed anew from it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use document::{Doc, DocBuf, Document, ValueRef, codes, doc, key_string};
use proptest::prelude::*;

use super::*;
use crate::Predicate;
use crate::index::{FieldKind, IndexBuild};

fn partial(filter: &Document, _: &document::Collation) -> Result<Predicate> {
    let at_least = filter.get_i64("a").unwrap_or(0);
    Ok(Arc::new(move |doc: Doc<'_>| doc.get_i64("a").is_some_and(|a| a >= at_least)))
}

fn spec(document: Document) -> IndexSpec {
    IndexSpec::parse(&document, &partial).unwrap()
}

fn collection(indexes: &[Document]) -> Collection {
    let mut collection = Collection::new(CollectionMeta::new("db.c", [1; 16]));
    for index in indexes {
        assert!(collection.create_index(spec(index.clone())).unwrap());
    }
    collection
}

fn insert(collection: &mut Collection, document: Document) -> Result<RecordId> {
    let document = document.to_doc_buf();
    let plan = collection.prepare_insert(document.doc())?;
    Ok(collection.insert(plan, document.doc()))
}

/// What an index holds, by the other implementation of index keys.
fn recomputed(view: &dyn CollectionView, spec: &IndexSpec) -> BTreeSet<(Vec<u8>, RecordId)> {
    let paths: Vec<&str> = spec.fields().iter().map(|f| f.path.as_str()).collect();
    let mut entries = BTreeSet::new();
    let mut cursor = view.records();
    while let Some((record, doc)) = cursor.next() {
        if !spec.covers(doc) {
            continue;
        }
        let keys = document::path::index_keys(doc, &paths).unwrap();
        if spec.sparse() && keys.all_missing() {
            continue;
        }
        for components in &keys.keys {
            let mut key = Vec::new();
            for (field, value) in spec.fields().iter().zip(components) {
                match field.kind {
                    FieldKind::Hashed => {
                        key_string::append(&mut key, ValueRef::Int64(document::hash::hash64(*value)), false)
                    }
                    kind => key_string::append(&mut key, *value, kind == FieldKind::Descending),
                }
            }
            entries.insert((key, record));
        }
    }
    entries
}

fn held(view: &dyn CollectionView, slot: usize) -> BTreeSet<(Vec<u8>, RecordId)> {
    let mut cursor = view.index_cursor(slot).unwrap();
    let mut entries = BTreeSet::new();
    while let Some(entry) = cursor.next() {
        assert!(entries.insert((entry.key.to_vec(), entry.record)));
    }
    entries
}

pub(crate) fn check_indexes(view: &dyn CollectionView) {
    for slot in 0..view.index_count() {
        let spec = &view.index_info(slot).unwrap().spec;
        assert_eq!(held(view, slot), recomputed(view, spec), "index {}", spec.name());
    }
}

#[test]
fn a_collection_may_be_shared_behind_a_latch() {
    fn shared<T: Send + Sync + 'static>() {}
    shared::<Collection>();
    shared::<CollectionSnapshot>();
    shared::<IndexBuild>();
}

#[test]
fn a_taken_key_is_refused_with_the_text_and_members_that_drivers_read() {
    let unique = doc! { "key": { "a": 1, "b.c": -1 }, "unique": true };
    let mut c = collection(&[unique]);
    insert(&mut c, doc! { "_id": 1, "a": 1.0, "b": { "c": "x" } }).unwrap();
    let error = insert(&mut c, doc! { "_id": 2, "a": 1, "b": { "c": "x" } }).unwrap_err();
    assert_eq!(error.code, codes::DUPLICATE_KEY);
    assert_eq!(
        error.message,
        "E11000 duplicate key error collection: db.c index: a_1_b.c_-1 dup key: { a: 1, b.c: \"x\" }"
    );
    let info = error.info.unwrap();
    assert_eq!(info.get_document("keyPattern"), Some(&doc! { "a": 1, "b.c": -1 }));
    assert_eq!(info.get_document("keyValue"), Some(&doc! { "a": 1, "b.c": "x" }));
    let error = insert(&mut c, doc! { "_id": 1i64, "a": 7 }).unwrap_err();
    assert_eq!(error.message, "E11000 duplicate key error collection: db.c index: _id_ dup key: { _id: 1 }");
    assert_eq!((c.len(), c.indexes()[1].len()), (1, 1));
}

#[test]
fn an_update_that_changes_no_indexed_path_leaves_indexes_alone() {
    let mut c = collection(&[doc! { "key": { "a.b": 1 } }, doc! { "key": { "t": 1 } }]);
    let r = insert(&mut c, doc! { "_id": 1, "a": { "b": 1, "x": 0 }, "t": [1, 2], "z": 0 }).unwrap();
    let same = doc! { "_id": 1, "z": "longer", "a": { "x": 9, "b": 1 }, "t": [1, 2] }.to_doc_buf();
    assert!(c.prepare_update(r, same.doc()).unwrap().leaves_indexes());
    let other = doc! { "_id": 1, "a": { "b": 1.0 }, "t": [2, 3] }.to_doc_buf();
    let plan = c.prepare_update(r, other.doc()).unwrap();
    assert_eq!((plan.added().count(), plan.removed().count()), (1, 1));
    c.update(r, plan, other.doc());
    check_indexes(&c);
}

#[test]
fn a_unique_key_may_be_kept_by_its_own_document_and_not_taken_by_another() {
    let mut c = collection(&[doc! { "key": { "a": 1 }, "unique": true }]);
    let first = insert(&mut c, doc! { "_id": 1, "a": [1, 2] }).unwrap();
    let second = insert(&mut c, doc! { "_id": 2, "a": 5 }).unwrap();
    let own = doc! { "_id": 1, "a": [2, 3, 2] }.to_doc_buf();
    let plan = c.prepare_update(first, own.doc()).unwrap();
    c.update(first, plan, own.doc());
    let taken = doc! { "_id": 2, "a": 3 }.to_doc_buf();
    assert_eq!(c.prepare_update(second, taken.doc()).unwrap_err().code, codes::DUPLICATE_KEY);
    assert!(c.indexes()[1].is_multikey());
    assert!(!c.indexes()[0].is_multikey());
    check_indexes(&c);
}

#[test]
fn record_ids_are_never_given_twice() {
    let mut c = collection(&[]);
    assert_eq!(insert(&mut c, doc! { "_id": 1 }).unwrap(), 1);
    assert_eq!(insert(&mut c, doc! { "_id": 2 }).unwrap(), 2);
    assert!(c.delete(2));
    assert!(!c.delete(2));
    assert_eq!(insert(&mut c, doc! { "_id": 3 }).unwrap(), 3);
}

#[test]
fn cursors_walk_both_ways_and_resume_where_an_entry_is_gone() {
    let mut c = collection(&[doc! { "key": { "a": 1 } }]);
    for i in 0..10 {
        insert(&mut c, doc! { "_id": i, "a": i / 2 }).unwrap();
    }
    let two = key_string::encode(&[ValueRef::Int32(2)], &[]);
    let mut cursor = c.indexes()[1].cursor();
    assert_eq!(cursor.seek(&two).unwrap().record, 5);
    assert_eq!(cursor.next().unwrap().record, 6);
    assert_eq!(cursor.next().unwrap().record, 7);
    assert_eq!(cursor.seek_before(&two).unwrap().record, 4);
    let end = crate::index::prefix_end(&two).unwrap();
    assert_eq!(cursor.seek_before(&end).unwrap().record, 6);
    assert_eq!(cursor.prev().unwrap().record, 5);
    assert_eq!(cursor.seek_after(&two, 5).unwrap().record, 6);
    assert_eq!(cursor.seek_before_entry(&two, 6).unwrap().record, 5);
    c.delete(5);
    let mut cursor = c.indexes()[1].cursor();
    assert_eq!(cursor.seek_after(&two, 5).unwrap().record, 6);
    assert_eq!(cursor.seek_before_entry(&two, 5).unwrap().record, 4);
    assert_eq!(cursor.last().unwrap().record, 10);
    assert!(cursor.next().is_none());
    let mut records = c.records.cursor();
    assert_eq!(records.seek(5).unwrap().0, 6);
    assert_eq!(records.seek_back(5).unwrap().0, 4);
    let mut ids = c.indexes()[0].cursor();
    let key = key_string::encode(&[ValueRef::Int32(4)], &[]);
    assert_eq!(ids.seek_after(&key, 5).unwrap().record, 6);
    assert_eq!(ids.seek_before_entry(&key, 5).unwrap().record, 4);
}

#[test]
fn an_index_becomes_unique_only_without_duplicates() {
    let mut c = collection(&[doc! { "key": { "a": 1 }, "prepareUnique": true }]);
    insert(&mut c, doc! { "_id": 1, "a": 1 }).unwrap();
    assert_eq!(insert(&mut c, doc! { "_id": 2, "a": 1 }).unwrap_err().code, codes::DUPLICATE_KEY);
    c.set_index_option("a_1", "prepareUnique", None).unwrap();
    insert(&mut c, doc! { "_id": 2, "a": 1 }).unwrap();
    let error = c.make_index_unique("a_1").unwrap_err();
    assert_eq!(error.code, codes::CANNOT_CONVERT_INDEX_TO_UNIQUE);
    assert_eq!(error.info.unwrap().get("violations"), Some(&document::array![{ "ids": [1, 2] }]));
    c.delete(2);
    c.make_index_unique("a_1").unwrap();
    assert!(c.indexes()[1].spec().unique());
    assert_eq!(insert(&mut c, doc! { "_id": 2, "a": 1 }).unwrap_err().code, codes::DUPLICATE_KEY);
    check_indexes(&c);
}

#[test]
fn a_branch_reads_its_own_writes_and_leaves_the_collection_alone() {
    let mut c = collection(&[doc! { "key": { "a": 1 } }]);
    insert(&mut c, doc! { "_id": 1, "a": 1 }).unwrap();
    let snapshot = c.snapshot();
    let mut branch = snapshot.branch();
    insert(&mut branch, doc! { "_id": 2, "a": 2 }).unwrap();
    branch.delete(1);
    insert(&mut c, doc! { "_id": 3, "a": 3 }).unwrap();
    check_indexes(&branch);
    check_indexes(&c);
    check_indexes(&snapshot);
    let ids = |view: &dyn CollectionView| held(view, 0).len();
    assert_eq!((ids(&branch), ids(&c), ids(&snapshot)), (1, 2, 1));
    assert!(branch.find_id(ValueRef::Int32(2)).is_some() && c.find_id(ValueRef::Int32(2)).is_none());
}

/// One step of the model test.
#[derive(Clone, Debug)]
enum Step {
    Insert(i32, Document),
    Update(i32, Document),
    Delete(i32),
    Snapshot,
    StartBuild,
    ScanBuild,
    FinishBuild,
}

fn field() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        (0..6i32).prop_map(Value::from),
        (0..6i64).prop_map(Value::from),
        (0..6i32).prop_map(|n| Value::from(f64::from(n))),
        "[ab]{0,2}".prop_map(Value::from),
        Just(Value::Null),
    ];
    prop_oneof![
        4 => scalar.clone(),
        1 => prop::collection::vec(scalar.clone(), 0..3).prop_map(Value::Array),
        1 => scalar.clone().prop_map(|v| Value::Document(doc! { "b": v })),
        1 => prop::collection::vec(scalar.prop_map(|v| doc! { "b": v }), 0..3).prop_map(Value::from),
    ]
}

fn body() -> impl Strategy<Value = Document> {
    (prop::option::of(field()), prop::option::of(field()), 0..40i32).prop_map(|(a, c, u)| {
        let mut body = Document::new();
        if let Some(a) = a {
            body.push("a", a);
        }
        if let Some(c) = c {
            body.push("c", c);
        }
        body.push("u", u);
        body
    })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..30i32, body()).prop_map(|(id, b)| Step::Insert(id, b)),
        6 => (0..30i32, body()).prop_map(|(id, b)| Step::Update(id, b)),
        3 => (0..30i32).prop_map(Step::Delete),
        1 => Just(Step::Snapshot),
        1 => Just(Step::StartBuild),
        2 => Just(Step::ScanBuild),
        1 => Just(Step::FinishBuild),
    ]
}

fn with_id(id: i32, body: &Document) -> DocBuf {
    let mut document = doc! { "_id": id };
    document.0.extend(body.0.iter().cloned());
    document.to_doc_buf()
}

struct Run {
    collection: Collection,
    model: BTreeMap<i32, DocBuf>,
    snapshots: Vec<(CollectionSnapshot, BTreeMap<i32, DocBuf>)>,
    build: Option<IndexBuild>,
}

impl Run {
    fn step(&mut self, step: &Step) {
        match step {
            Step::Insert(id, body) => self.insert(*id, body),
            Step::Update(id, body) => self.update(*id, body),
            Step::Delete(id) => {
                let found = self.collection.find_id(ValueRef::Int32(*id)).map(|(record, _)| record);
                assert_eq!(found.is_some(), self.model.remove(id).is_some());
                if let Some(record) = found {
                    assert!(self.collection.delete(record));
                }
            }
            Step::Snapshot => self.snapshots.push((self.collection.snapshot(), self.model.clone())),
            Step::StartBuild if self.build.is_none() => {
                let wanted = spec(doc! { "key": { "u": 1 }, "unique": true });
                self.build = IndexBuild::start(&self.collection, wanted, Keys::Accepted).unwrap();
            }
            Step::ScanBuild => {
                if let Some(build) = &mut self.build
                    && build.scan(5).unwrap()
                {
                    build.catch_up(self.collection.snapshot()).unwrap();
                }
            }
            Step::FinishBuild => self.finish_build(),
            Step::StartBuild => {}
        }
    }

    fn insert(&mut self, id: i32, body: &Document) {
        let document = with_id(id, body);
        match self.collection.prepare_insert(document.doc()) {
            Ok(plan) => {
                self.collection.insert(plan, document.doc());
                assert!(self.model.insert(id, document).is_none());
            }
            Err(error) => self.refused(&error, id, body),
        }
    }

    fn update(&mut self, id: i32, body: &Document) {
        let document = with_id(id, body);
        let Some((record, _)) = self.collection.find_id(ValueRef::Int64(i64::from(id))) else {
            assert!(!self.model.contains_key(&id));
            return;
        };
        match self.collection.prepare_update(record, document.doc()) {
            Ok(plan) => {
                self.collection.update(record, plan, document.doc());
                assert!(self.model.insert(id, document).is_some());
            }
            Err(error) => self.refused(&error, id, body),
        }
    }

    /// The model agrees that the write is impossible.
    fn refused(&self, error: &document::Error, id: i32, body: &Document) {
        if error.code == codes::CANNOT_INDEX_PARALLEL_ARRAYS {
            assert!(
                matches!(body.get("a"), Some(Value::Array(_)))
                    && matches!(body.get("c"), Some(Value::Array(_)))
            );
            return;
        }
        assert_eq!(error.code, codes::DUPLICATE_KEY, "{error}");
        let same_u =
            self.model.iter().any(|(other, d)| *other != id && d.doc().get_i64("u") == body.get_i64("u"));
        assert!(self.model.contains_key(&id) || (same_u && self.collection.index("u_1").is_some()));
    }

    fn finish_build(&mut self) {
        let Some(mut build) = self.build.take() else { return };
        while !build.scan(7).unwrap() {}
        let values: Vec<_> = self.model.values().map(|d| d.doc().get_i64("u")).collect();
        let distinct: BTreeSet<_> = values.iter().collect();
        match build.finish(&mut self.collection) {
            Ok(()) => assert_eq!(distinct.len(), values.len()),
            Err(error) => {
                assert_eq!(error.code, codes::DUPLICATE_KEY);
                assert!(distinct.len() < values.len());
            }
        }
    }

    fn check(&self) {
        check_view(&self.collection, &self.model);
        for (snapshot, model) in &self.snapshots {
            check_view(snapshot, model);
        }
    }
}

fn check_view(view: &dyn CollectionView, model: &BTreeMap<i32, DocBuf>) {
    check_indexes(view);
    assert_eq!(view.len(), model.len());
    let bytes: usize = model.values().map(|d| d.bytes().len()).sum();
    assert_eq!(view.data_bytes(), bytes as u64);
    for (id, document) in model {
        let (record, found) = view.find_id(ValueRef::Int32(*id)).unwrap();
        assert_eq!(found, document.doc());
        assert_eq!(view.get(record), Some(document.doc()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_collection_does_what_a_map_does_and_its_indexes_follow(steps in prop::collection::vec(step(), 1..120)) {
        let collection = collection(&[
            doc! { "key": { "a": 1 } },
            doc! { "key": { "a.b": -1, "c": 1 } },
            doc! { "key": { "c.b": 1 }, "name": "partly", "partialFilterExpression": { "a": 3 } },
            doc! { "key": { "u": "hashed" } },
        ]);
        let mut run = Run { collection, model: BTreeMap::new(), snapshots: Vec::new(), build: None };
        for step in &steps {
            run.step(step);
        }
        run.check();
    }
}

/// Run by hand: `cargo test --release -p storage collection_timing -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn collection_timing() {
    let n = 300_000;
    let filler = "x".repeat(980);
    let documents: Vec<DocBuf> = (0..n)
        .map(|i: i32| {
            let mut id = [0; 12];
            id[8..].copy_from_slice(&i.to_be_bytes());
            doc! { "_id": document::ObjectId(id), "a": i, "filler": filler.as_str() }.to_doc_buf()
        })
        .collect();
    for indexes in [vec![], vec![doc! { "key": { "a": 1 } }]] {
        let mut c = collection(&indexes);
        let start = runtime::Instant::now();
        let mut plan = InsertPlan::default();
        for document in &documents {
            c.prepare_insert_into(document.doc(), Keys::Accepted, &Computed, &mut plan).unwrap();
            c.insert_with(&mut plan, document.doc());
        }
        println!("insert, {} indexes: {:?} each", c.indexes().len(), start.elapsed() / n as u32);
        let start = runtime::Instant::now();
        for document in &documents {
            let (record, _) = c.find_id(document.doc().get("_id").unwrap()).unwrap();
            let plan = c.prepare_update(record, document.doc()).unwrap();
            c.update(record, plan, document.doc());
        }
        println!("find and update, {} indexes: {:?} each", c.indexes().len(), start.elapsed() / n as u32);
    }
}
