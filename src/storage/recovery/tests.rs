//! Crashes at every operation of the disk, damage, and logs that do not fit.
//!
//! A script of writes, catalog changes and checkpoints runs on a simulated disk that fails at its n-th operation, for every
//! n. Beside it stands, for each log position, what the collections held. After the crash the reopened node must hold
//! exactly what stood at the position where its log ends, and that position must not lie before an acknowledged one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use document::{DocBuf, Document, ValueRef, doc};

use super::*;
use crate::checkpoint::Contents;
use crate::collection::tests::check_indexes;
use crate::entry::{Draft, EntryParts, O2, Op, SessionPart};
use crate::files::{CrashMode, Fault, SimulatedDisk};
use crate::index::no_partial_indexes;
use crate::log::{Class, Position, SimulatedClock, SyncPolicy};
use crate::record_store::RecordId;
use crate::snapshot::CollectionView;

const DIR: &str = "/data";

/// Everything that must come back.
#[derive(Clone, Debug, PartialEq)]
struct Held {
    uuid: [u8; 16],
    options: Document,
    next: RecordId,
    indexes: Vec<Document>,
    records: Vec<(RecordId, Vec<u8>)>,
}

type State = BTreeMap<String, Held>;

fn state(collections: &BTreeMap<String, Collection>) -> State {
    let held = |c: &Collection| {
        let mut records = Vec::new();
        let mut cursor = CollectionView::records(c);
        while let Some((record, doc)) = cursor.next() {
            records.push((record, doc.bytes().to_vec()));
        }
        Held {
            uuid: c.uuid(),
            options: c.meta().options.clone(),
            next: c.next_record(),
            indexes: c.indexes().iter().map(|i| i.spec().document().clone()).collect(),
            records,
        }
    };
    collections.iter().map(|(ns, c)| (ns.clone(), held(c))).collect()
}

fn options() -> LogOptions {
    LogOptions {
        segment_bytes: 2048,
        sync: SyncPolicy::Group { interval: Duration::from_secs(3600) },
        retain_bytes: 0,
        clock: Arc::new(SimulatedClock::new(1_000_000)),
        ..LogOptions::default()
    }
}

fn open_disk(disk: &SimulatedDisk) -> Result<Opened, StorageError> {
    open_observed(disk, &mut ())
}

fn open_observed(disk: &SimulatedDisk, observer: &mut dyn ReplayObserver) -> Result<Opened, StorageError> {
    let mut opened = open(Arc::new(disk.clone()), Path::new(DIR), options(), &no_partial_indexes, observer)?;
    opened.checkpoints.as_mut().expect("not in memory").set_image_bytes(700);
    Ok(opened)
}

/// A node reduced to its storage.
struct Node {
    opened: Opened,
    history: BTreeMap<Position, State>,
    acknowledged: Position,
}

impl Node {
    fn new(opened: Opened) -> Node {
        let history = [(opened.log.appended(), state(&opened.collections))].into();
        Node { opened, history, acknowledged: 0 }
    }

    fn append(&mut self, draft: &Draft<'_>, o: &Document) {
        let o = o.to_doc_buf();
        let mut parts = EntryParts::default();
        draft.encode(o.doc(), &mut parts);
        let appended = self.opened.log.append(Class::Oplog, &[&parts.slices(o.doc())]);
        self.history.insert(appended.position, state(&self.opened.collections));
    }

    fn collection(&mut self, ns: &str) -> &mut Collection {
        self.opened.collections.get_mut(ns).expect("the script created it")
    }

    fn insert(&mut self, ns: &str, document: Document) {
        let bytes = document.to_doc_buf();
        let c = self.collection(ns);
        let plan = c.prepare_insert(bytes.doc()).expect("the script inserts no duplicates");
        c.insert(plan, bytes.doc());
        let mut draft = Draft::new(Op::Insert, ns, Some(c.uuid()));
        draft.o2 = O2::Id(bytes.doc().element("_id").expect("the script gives an _id"));
        self.append(&draft, &document);
    }

    fn update(&mut self, ns: &str, document: Document) {
        let bytes = document.to_doc_buf();
        let c = self.collection(ns);
        let id = bytes.doc().element("_id").expect("the script gives an _id");
        let (record, _) = c.find_id(id.value()).expect("the script updates what is there");
        let plan = c.prepare_update(record, bytes.doc()).expect("the script makes no duplicates");
        c.update(record, plan, bytes.doc());
        let mut draft = Draft::new(Op::Update, ns, Some(c.uuid()));
        draft.o2 = O2::Id(id);
        self.append(&draft, &document);
    }

    fn delete(&mut self, ns: &str, id: i32) {
        let c = self.collection(ns);
        let (record, _) = c.find_id(ValueRef::Int32(id)).expect("the script deletes what is there");
        c.delete(record);
        let draft = Draft::new(Op::Delete, ns, Some(c.uuid()));
        self.append(&draft, &doc! { "_id": id });
    }

    fn command(&mut self, database: &str, uuid: Option<[u8; 16]>, o: Document) {
        let ns = format!("{database}.$cmd");
        let draft = Draft::new(Op::Command, &ns, uuid);
        let bytes = draft.to_doc_buf(o.to_doc_buf().doc());
        let entry = Entry::read(bytes.doc()).expect("just written");
        apply_operation(&mut self.opened.collections, &entry, &no_partial_indexes).expect("the script fits");
        self.append(&draft, &o);
    }

    /// Waits for durability; false once the disk has failed.
    fn acknowledge(&mut self) -> bool {
        let position = self.opened.log.appended();
        let durable = self.opened.log.wait_durable_blocking(position).is_ok();
        if durable {
            self.acknowledged = position;
        }
        durable
    }

    fn contents(&self) -> Contents {
        Contents {
            collections: self.opened.collections.values().map(Collection::freeze).collect(),
            transactions: Vec::new(),
            extra: [("number".to_string(), self.opened.collections.len().to_string().into_bytes())].into(),
            position: self.opened.log.appended(),
            optime: self.opened.log.last_optime(),
        }
    }

    fn checkpoint(&mut self) -> bool {
        let contents = self.contents();
        let Some(checkpoints) = &mut self.opened.checkpoints else { return false };
        match checkpoints.write(contents, &self.opened.log) {
            Ok(report) => self.opened.log.truncate_before(report.position).is_ok(),
            Err(_) => false,
        }
    }

    /// Runs until the disk fails.
    fn script(&mut self) {
        let _ = self.steps();
    }

    fn steps(&mut self) -> Option<()> {
        let go = |on: bool| on.then_some(());
        self.command("db", Some([1; 16]), doc! { "create": "a" });
        self.command("db", Some([2; 16]), doc! { "create": "b", "capped": true, "size": 4096 });
        for i in 0..20 {
            self.insert("db.a", doc! { "_id": i, "a": [i % 3, 7], "text": "x".repeat(40) });
            if i % 5 == 0 {
                go(self.acknowledge())?;
            }
        }
        self.command(
            "db",
            Some([1; 16]),
            doc! { "createIndexes": "a", "v": 2, "key": { "a": 1 }, "name": "a_1" },
        );
        go(self.checkpoint())?;
        for i in 0..4 {
            self.update("db.a", doc! { "_id": i * 3, "a": i, "text": "changed" });
            self.delete("db.a", i * 3 + 1);
            self.insert("db.b", doc! { "_id": i });
        }
        go(self.acknowledge())?;
        self.command(
            "db",
            Some([1; 16]),
            doc! { "collMod": "a", "index": { "name": "a_1", "hidden": true } },
        );
        go(self.checkpoint())?;
        self.command("db", Some([1; 16]), doc! { "renameCollection": "db.a", "to": "db.c" });
        self.insert("db.c", doc! { "_id": 100, "a": 1 });
        go(self.acknowledge())?;
        self.command("db", Some([2; 16]), doc! { "drop": "b" });
        self.command("db", Some([1; 16]), doc! { "dropIndexes": "c", "index": "a_1" });
        self.insert("db.c", doc! { "_id": 101, "a": 1 });
        go(self.checkpoint())?;
        self.delete("db.c", 101);
        go(self.acknowledge())
    }
}

/// What the reopened node holds, against what it must hold.
fn verify(node: &Node, reopened: &Opened) -> Result<(), String> {
    let end = reopened.log.appended();
    if end < node.acknowledged {
        return Err(format!("the log ends at {end}, before the acknowledged {}", node.acknowledged));
    }
    let expected = node.history.get(&end).ok_or(format!("nothing was ever at position {end}"))?;
    if &state(&reopened.collections) != expected {
        return Err(format!("the collections are not what they were at {end}"));
    }
    reopened.collections.values().for_each(|c| check_indexes(c));
    Ok(())
}

fn run_with_fault(operation: u64, fault: Fault, mode: CrashMode) -> (bool, Result<(), String>) {
    let disk = SimulatedDisk::new();
    disk.fail_at(operation, fault);
    let Ok(opened) = open_disk(&disk) else {
        disk.crash(mode);
        return (true, open_disk(&disk).map(drop).map_err(|e| e.to_string()));
    };
    let mut node = Node::new(opened);
    node.script();
    let struck = disk.operations() > operation;
    let old = std::mem::replace(&mut node.opened, open_memory());
    disk.crash(mode);
    drop(old);
    let verdict = match open_disk(&disk) {
        Ok(reopened) => verify(&node, &reopened).and_then(|()| verify_images(&disk)),
        Err(error) => Err(error.to_string()),
    };
    (struck, verdict)
}

/// Of checkpoints that were not finished nothing takes space any more.
fn verify_images(disk: &SimulatedDisk) -> Result<(), String> {
    let manifest = read_manifest(disk, &Path::new(DIR).join("checkpoint")).map_err(|e| e.to_string())?;
    let named: usize = manifest.iter().flat_map(|m| &m.collections).map(|c| c.images.len()).sum();
    match image_names(disk).len() {
        found if found == named => Ok(()),
        found => Err(format!("{found} images where {named} are named")),
    }
}

fn image_names(disk: &SimulatedDisk) -> Vec<String> {
    let names = disk.list(&Path::new(DIR).join("checkpoint")).unwrap();
    names.into_iter().filter(|name| name.ends_with(".img")).collect()
}

fn open_memory() -> Opened {
    let options = LogOptions { in_memory: true, ..options() };
    let disk = Arc::new(SimulatedDisk::new());
    open(disk, Path::new(DIR), options, &no_partial_indexes, &mut ()).expect("memory does not fail")
}

fn crash_everywhere(fault: Fault, mode: impl Fn(u64) -> CrashMode) {
    let mut operation = 0;
    loop {
        let (struck, verdict) = run_with_fault(operation, fault, mode(operation));
        assert_eq!(verdict, Ok(()), "{fault:?} at operation {operation}");
        if !struck {
            break;
        }
        operation += 1;
    }
    assert!(operation > 60, "only {operation} operations were reached");
}

#[test]
fn a_power_failure_at_any_operation_leaves_exactly_a_durable_prefix() {
    crash_everywhere(Fault::PowerOff, |_| CrashMode::DropUnsynced);
}

#[test]
fn a_power_failure_that_tears_writes_leaves_exactly_a_durable_prefix() {
    crash_everywhere(Fault::PowerOff, |seed| CrashMode::Torn { seed });
}

#[test]
fn a_killed_process_loses_nothing_that_reached_the_cache() {
    crash_everywhere(Fault::PowerOff, |_| CrashMode::KeepAll);
}

#[test]
fn a_failed_sync_at_any_operation_leaves_exactly_a_durable_prefix() {
    crash_everywhere(Fault::SyncFails, |_| CrashMode::DropUnsynced);
}

#[test]
fn a_full_disk_at_any_operation_leaves_exactly_a_durable_prefix() {
    crash_everywhere(Fault::NoSpace, |_| CrashMode::DropUnsynced);
}

#[test]
fn a_checkpoint_that_lacks_space_gives_back_what_it_took() {
    for operation in 0..6 {
        let disk = SimulatedDisk::new();
        let mut node = Node::new(open_disk(&disk).unwrap());
        node.command("db", Some([1; 16]), doc! { "create": "a" });
        (0..40).for_each(|i| node.insert("db.a", doc! { "_id": i, "text": "x".repeat(40) }));
        assert!(node.acknowledge() && node.checkpoint());
        let before = image_names(&disk);
        assert!(before.len() > 1);
        (0..40).for_each(|i| node.update("db.a", doc! { "_id": i, "text": "y".repeat(40) }));
        assert!(node.acknowledge());
        disk.fail_at(disk.operations() + operation, Fault::NoSpace);
        assert!(!node.checkpoint());
        assert_eq!(image_names(&disk), before, "at operation {operation}");
    }
}

/// Without this the tests above would prove nothing.
#[test]
fn a_disk_that_lies_about_syncs_is_found_out() {
    for names in [false, true] {
        let disk = SimulatedDisk::new();
        let mut node = Node::new(open_disk(&disk).unwrap());
        if names {
            disk.ignore_dir_syncs(true)
        } else {
            disk.ignore_syncs(true)
        }
        node.script();
        node.opened = open_memory();
        disk.crash(CrashMode::DropUnsynced);
        let verdict =
            open_disk(&disk).map_err(|e| e.to_string()).and_then(|reopened| verify(&node, &reopened));
        assert!(verdict.is_err());
    }
}

fn whole_run() -> (SimulatedDisk, Node) {
    let disk = SimulatedDisk::new();
    let mut node = Node::new(open_disk(&disk).unwrap());
    node.script();
    assert!(!node.opened.collections.contains_key("db.b") && node.acknowledged == node.opened.log.appended());
    node.opened = open_memory();
    disk.crash(CrashMode::KeepAll);
    (disk, node)
}

fn checkpoint_files(disk: &SimulatedDisk) -> Vec<PathBuf> {
    let dir = Path::new(DIR).join("checkpoint");
    disk.list(&dir).unwrap().iter().map(|name| dir.join(name)).collect()
}

#[test]
fn damage_in_any_file_of_a_checkpoint_is_refused() {
    let (disk, node) = whole_run();
    let files = checkpoint_files(&disk);
    assert!(files.len() >= 2);
    for path in files {
        let length = disk.open(&path).unwrap().len().unwrap();
        for offset in (0..length).step_by(7) {
            disk.corrupt(&path, offset).unwrap();
            assert!(matches!(open_disk(&disk), Err(StorageError::Corrupt { .. })), "{path:?} at {offset}");
            disk.corrupt(&path, offset).unwrap();
        }
    }
    verify(&node, &open_disk(&disk).unwrap()).unwrap();
}

#[test]
fn a_lost_file_of_a_checkpoint_is_refused() {
    let (disk, _) = whole_run();
    for path in checkpoint_files(&disk) {
        let bytes = disk.read(&path).unwrap();
        disk.remove(&path).unwrap();
        assert!(open_disk(&disk).is_err(), "{path:?}");
        disk.replace(&path, &bytes).unwrap();
    }
    assert!(open_disk(&disk).is_ok());
}

#[test]
fn a_second_opener_is_refused_while_the_first_lives() {
    let disk = SimulatedDisk::new();
    let first = open_disk(&disk).unwrap();
    assert!(matches!(open_disk(&disk), Err(StorageError::Lock(_))));
    drop(first);
    assert!(open_disk(&disk).is_ok());
}

/// Restarts cleanly.
fn reopen(disk: &SimulatedDisk, opened: Opened) -> Result<Opened, StorageError> {
    opened.log.shutdown().unwrap();
    drop(opened);
    open_disk(disk)
}

#[test]
fn an_entry_that_does_not_fit_stops_the_start() {
    let cases = [
        (Op::Delete, doc! { "_id": 9 }, "no document with _id"),
        (Op::Update, doc! { "_id": 9, "x": 1 }, "no document with _id"),
        (Op::Insert, doc! { "_id": 1 }, "E11000"),
        (Op::Command, doc! { "drop": "z" }, "does not exist"),
        (Op::Command, doc! { "create": "a" }, "exists already"),
        (Op::Command, doc! { "unheardOf": 1 }, "cannot be replayed"),
    ];
    for (op, o, text) in cases {
        let disk = SimulatedDisk::new();
        let mut node = Node::new(open_disk(&disk).unwrap());
        node.command("db", Some([1; 16]), doc! { "create": "a" });
        node.insert("db.a", doc! { "_id": 1 });
        let ns = if op == Op::Command { "db.$cmd" } else { "db.a" };
        node.append(&Draft::new(op, ns, Some([1; 16])), &o);
        match reopen(&disk, node.opened) {
            Err(StorageError::Mismatch { reason, .. }) => assert!(reason.contains(text), "{reason}"),
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("{o:?} was applied"),
        }
    }
}

#[test]
fn unchanged_images_are_kept_and_replaced_ones_removed() {
    let disk = SimulatedDisk::new();
    let mut node = Node::new(open_disk(&disk).unwrap());
    node.command("db", Some([1; 16]), doc! { "create": "a" });
    node.command("db", Some([2; 16]), doc! { "create": "b" });
    for i in 0..5000 {
        let document = doc! { "_id": i, "text": "x".repeat(20) }.to_doc_buf();
        let c = node.collection("db.a");
        let plan = c.prepare_insert(document.doc()).unwrap();
        c.insert(plan, document.doc());
    }
    let write = |node: &mut Node| {
        let contents = node.contents();
        let checkpoints = node.opened.checkpoints.as_mut().unwrap();
        checkpoints.set_image_bytes(20_000);
        checkpoints.write(contents, &node.opened.log).unwrap()
    };
    let first = write(&mut node);
    assert!(first.images_written >= 10 && first.images_kept == 0);
    let second = write(&mut node);
    assert_eq!((second.images_written, second.images_kept), (0, first.images_written));
    let changed = doc! { "_id": 2500, "text": "y" }.to_doc_buf();
    let c = node.collection("db.a");
    let (record, _) = c.find_id(ValueRef::Int32(2500)).unwrap();
    let plan = c.prepare_update(record, changed.doc()).unwrap();
    c.update(record, plan, changed.doc());
    let third = write(&mut node);
    assert!(third.images_written > 0 && third.images_kept > first.images_written / 2, "{third:?}");
    let expected = state(&node.opened.collections);
    let files = checkpoint_files(&disk).len();
    assert_eq!(files, 1 + third.images_written + third.images_kept);
    let mut node = Node::new(reopen(&disk, node.opened).unwrap());
    assert_eq!(state(&node.opened.collections), expected);
    let fourth = write(&mut node);
    assert_eq!((fourth.images_written, fourth.images_kept), (0, files - 1));
}

#[test]
fn a_collection_made_anew_under_the_same_uuid_is_written_anew() {
    let disk = SimulatedDisk::new();
    let mut node = Node::new(open_disk(&disk).unwrap());
    node.command("db", Some([1; 16]), doc! { "create": "a" });
    node.insert("db.a", doc! { "_id": 1 });
    assert!(node.checkpoint());
    node.opened.collections.clear();
    node.command("db", Some([1; 16]), doc! { "create": "a" });
    node.insert("db.a", doc! { "_id": 2 });
    assert!(node.checkpoint());
    let expected = state(&node.opened.collections);
    assert_eq!(state(&reopen(&disk, node.opened).unwrap().collections), expected);
}

fn insert_operation(id: i32) -> Document {
    doc! { "op": "i", "ns": "db.a", "ui": document::Value::uuid([1; 16]), "o": { "_id": id } }
}

fn transaction_entry(node: &mut Node, lsid: &DocBuf, previous: (u64, i64), o: Document) {
    let mut draft = Draft::new(Op::Command, "admin.$cmd", None);
    draft.session = Some(SessionPart { lsid: lsid.doc(), txn_number: 1, statements: &[], previous });
    node.append(&draft, &o);
}

const NO_PREVIOUS: (u64, i64) = (0, -1);

fn last(node: &Node) -> (u64, i64) {
    let optime = node.opened.log.last_optime();
    (optime.ts, optime.term)
}

fn ids(opened: &Opened) -> Vec<i64> {
    let mut ids = Vec::new();
    let mut cursor = CollectionView::records(&opened.collections["db.a"]);
    while let Some((_, doc)) = cursor.next() {
        ids.extend(doc.get_i64("_id"));
    }
    ids
}

#[test]
fn a_chain_is_applied_when_it_ends_and_never_in_part() {
    let disk = SimulatedDisk::new();
    let lsid = doc! { "id": 1 }.to_doc_buf();
    let mut node = Node::new(open_disk(&disk).unwrap());
    node.command("db", Some([1; 16]), doc! { "create": "a" });
    let begin = document::array![(insert_operation(1))];
    transaction_entry(&mut node, &lsid, NO_PREVIOUS, doc! { "applyOps": begin, "partialTxn": true });
    let mut node = Node::new(reopen(&disk, node.opened).unwrap());
    assert_eq!(ids(&node.opened), [0i64; 0]);
    let previous = last(&node);
    let end = document::array![(insert_operation(2))];
    transaction_entry(&mut node, &lsid, previous, doc! { "applyOps": end, "count": 2 });
    let opened = reopen(&disk, node.opened).unwrap();
    assert_eq!(ids(&opened), [1, 2]);
}

#[test]
fn a_chain_that_a_crash_cut_is_not_continued_by_its_repetition() {
    let disk = SimulatedDisk::new();
    let lsid = doc! { "id": 1 }.to_doc_buf();
    let mut node = Node::new(open_disk(&disk).unwrap());
    node.command("db", Some([1; 16]), doc! { "create": "a" });
    for _ in 0..2 {
        let begin = document::array![(insert_operation(1))];
        transaction_entry(&mut node, &lsid, NO_PREVIOUS, doc! { "applyOps": begin, "partialTxn": true });
    }
    let previous = last(&node);
    let end = document::array![(insert_operation(2))];
    transaction_entry(&mut node, &lsid, previous, doc! { "applyOps": end, "count": 2 });
    let mut node = Node::new(reopen(&disk, node.opened).unwrap());
    assert_eq!(ids(&node.opened), [1, 2]);
    let end = document::array![(insert_operation(3))];
    transaction_entry(&mut node, &lsid, NO_PREVIOUS, doc! { "applyOps": end, "count": 2 });
    assert!(matches!(reopen(&disk, node.opened), Err(StorageError::Mismatch { .. })));
}

/// Else the log is kept from its beginning on, for ever.
#[test]
fn a_chain_that_the_end_of_a_reign_cut_is_forgotten() {
    let disk = SimulatedDisk::new();
    let lsid = doc! { "id": 1 }.to_doc_buf();
    let mut node = Node::new(open_disk(&disk).unwrap());
    node.opened.log.set_term(1);
    node.command("db", Some([1; 16]), doc! { "create": "a" });
    let begin = document::array![(insert_operation(1))];
    transaction_entry(&mut node, &lsid, NO_PREVIOUS, doc! { "applyOps": begin, "partialTxn": true });
    let mut node = Node::new(reopen(&disk, node.opened).unwrap());
    assert_eq!(node.opened.transactions.len(), 1);
    node.opened.log.set_term(2);
    node.append(&Draft::new(Op::Noop, "", None), &doc! { "msg": "new primary" });
    let opened = reopen(&disk, node.opened).unwrap();
    assert!(opened.transactions.is_empty() && ids(&opened).is_empty());
}

#[test]
fn a_prepared_transaction_comes_back_and_waits_for_its_outcome() {
    for (outcome, expected) in [("commitTransaction", vec![1, 2]), ("abortTransaction", vec![])] {
        let disk = SimulatedDisk::new();
        let lsid = doc! { "id": 1 }.to_doc_buf();
        let mut node = Node::new(open_disk(&disk).unwrap());
        node.command("db", Some([1; 16]), doc! { "create": "a" });
        let begin = node.opened.log.appended();
        let operations = document::array![(insert_operation(1)), (insert_operation(2))];
        transaction_entry(&mut node, &lsid, NO_PREVIOUS, doc! { "applyOps": operations, "prepare": true });
        let opened = reopen(&disk, node.opened).unwrap();
        let transaction = opened.transactions[0].clone();
        assert_eq!((transaction.operations.len(), transaction.first_position), (2, begin));
        assert!(transaction.prepared.is_some() && ids(&opened).is_empty());
        // A checkpoint carries it past the part of the log that held it.
        let mut node = Node::new(opened);
        let mut contents = node.contents();
        contents.transactions = vec![transaction];
        node.opened.checkpoints.as_mut().unwrap().write(contents, &node.opened.log).unwrap();
        let previous = last(&node);
        transaction_entry(&mut node, &lsid, previous, doc! { outcome: 1 });
        let opened = reopen(&disk, node.opened).unwrap();
        assert_eq!(ids(&opened), expected);
        assert!(opened.transactions.is_empty());
    }
}

#[derive(Default)]
struct Watch {
    restored: Option<Vec<u8>>,
    seen: Vec<Op>,
}

impl ReplayObserver for Watch {
    fn restore(&mut self, extra: &BTreeMap<String, Vec<u8>>) -> Result<(), String> {
        self.restored = extra.get("number").cloned();
        Ok(())
    }
    fn after(&mut self, _: &FrameRef<'_>, entry: &Entry<'_>) -> Result<(), String> {
        self.seen.push(entry.op);
        Ok(())
    }
}

#[test]
fn an_observer_sees_the_blobs_and_every_entry_after_the_checkpoint() {
    let disk = SimulatedDisk::new();
    let mut node = Node::new(open_disk(&disk).unwrap());
    node.command("db", Some([1; 16]), doc! { "create": "a" });
    node.insert("db.a", doc! { "_id": 1 });
    assert!(node.checkpoint());
    node.insert("db.a", doc! { "_id": 2 });
    node.delete("db.a", 1);
    node.opened.log.shutdown().unwrap();
    node.opened = open_memory();
    let mut watch = Watch::default();
    let opened = open_observed(&disk, &mut watch).unwrap();
    assert_eq!(watch.restored.as_deref(), Some(&b"1"[..]));
    assert_eq!(watch.seen, [Op::Insert, Op::Delete]);
    assert_eq!(opened.report.documents_loaded, 1);
}
