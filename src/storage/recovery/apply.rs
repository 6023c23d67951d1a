//! Applying one entry.

use std::collections::BTreeMap;

use document::{Doc, DocBuf, Document, Value, ValueRef};

use super::collmod::apply_coll_mod;
use crate::catalog::{CollectionMeta, split_namespace};
use crate::checkpoint::OpenTransaction;
use crate::collection::Collection;
use crate::entry::{Entry, Op};
use crate::index::{IndexSpec, PredicateFactory};
use crate::log::{OpTime, Position};
use crate::record_store::RecordId;
use crate::snapshot::CollectionView;

/// Session id bytes and transaction number.
type TransactionKey = (Vec<u8>, i64);

/// The collections that entries are applied to, and the transactions that are open in between.
pub struct Applier<'f> {
    /// Every collection by namespace.
    pub collections: BTreeMap<String, Collection>,
    transactions: BTreeMap<TransactionKey, OpenTransaction>,
    /// The term of the last entry.
    term: Option<i64>,
    predicates: &'f PredicateFactory<'f>,
}

/// Where an entry stands in the log.
#[derive(Clone, Copy)]
struct Place {
    position: Position,
    optime: OpTime,
}

impl<'f> Applier<'f> {
    /// Without collections.
    pub fn new(predicates: &'f PredicateFactory<'f>) -> Applier<'f> {
        Applier { collections: BTreeMap::new(), transactions: BTreeMap::new(), term: None, predicates }
    }

    /// Goes on with the open transactions of a checkpoint.
    pub fn restore_transactions(&mut self, transactions: Vec<OpenTransaction>) {
        for transaction in transactions {
            let key = (transaction.lsid.bytes().to_vec(), transaction.txn_number);
            self.transactions.insert(key, transaction);
        }
    }

    /// The collections, and the transactions that are prepared or incomplete.
    pub fn finish(self) -> (BTreeMap<String, Collection>, Vec<OpenTransaction>) {
        (self.collections, self.transactions.into_values().collect())
    }

    /// The transactions whose outcome did not come yet.
    pub fn transactions(&self) -> impl Iterator<Item = &OpenTransaction> {
        self.transactions.values()
    }

    /// Applies the entry whose frame begins at `position`. The error says what does not fit; then the collections are
    /// not to be used any more.
    pub fn apply(&mut self, entry: &Entry<'_>, position: Position, optime: OpTime) -> Result<(), String> {
        let place = Place { position, optime };
        if self.term.replace(optime.term).is_some_and(|before| before < optime.term) {
            self.end_chains();
        }
        match (entry.op, entry.command()) {
            (Op::Command, Some(("applyOps", operations))) => self.apply_ops(entry, operations, place),
            (Op::Command, Some(("commitTransaction", _))) => self.commit(entry),
            (Op::Command, Some(("abortTransaction", _))) => self.abort(entry),
            _ => apply_operation(&mut self.collections, entry, self.predicates),
        }
        .map_err(|reason| format!("op '{}' on {}: {reason}", entry.op.letter(), entry.ns))
    }

    /// A reign has ended: what its primary had begun to append, and neither prepared nor committed, does not go on.
    pub fn end_chains(&mut self) {
        self.transactions.retain(|_, t| t.prepared.is_some());
    }

    /// Leaves the indexes of a collection that this entry created to the end of the replay.
    pub(super) fn defer_created(&mut self, entry: &Entry<'_>) {
        if let Some(("create", name)) = entry.command()
            && let Some(name) = name.as_str()
            && let Some(created) =
                self.collections.get_mut(&format!("{}.{name}", split_namespace(entry.ns).0))
        {
            created.defer_indexes();
        }
    }

    /// `{applyOps: [...], partialTxn?: true, prepare?: true, count?}`.
    fn apply_ops(&mut self, entry: &Entry<'_>, operations: ValueRef<'_>, place: Place) -> Result<(), String> {
        let operations = operations.as_array().ok_or("applyOps without an array")?;
        let partial = entry.o.get_bool("partialTxn") == Some(true);
        let prepare = entry.o.get_bool("prepare") == Some(true);
        let chain = self.take_chain(entry);
        let before = chain.as_ref().map_or(0, |t| t.operations.len());
        let count = entry.o.get_i64("count").and_then(|n| usize::try_from(n).ok());
        if count.is_some_and(|n| n != before + documents(operations).count()) {
            return Err(format!(
                "the transaction has not the {} operations it should have",
                count.unwrap_or(0)
            ));
        }
        if partial || prepare {
            let (key, lsid) = transaction_key(entry)
                .zip(entry.lsid())
                .ok_or("a transaction's entry without lsid and txnNumber")?;
            let mut open = chain.unwrap_or_else(|| OpenTransaction {
                lsid: lsid.to_owned(),
                txn_number: key.1,
                last_ts: 0,
                operations: Vec::new(),
                prepared: None,
                first_position: place.position,
            });
            open.operations.extend(documents(operations).map(Doc::to_owned));
            open.prepared = prepare.then_some(place.optime);
            open.last_ts = place.optime.ts;
            self.transactions.insert(key, open);
            return Ok(());
        }
        for operation in chain.iter().flat_map(|t| &t.operations).map(DocBuf::doc) {
            self.apply_one(operation)?;
        }
        documents(operations).try_for_each(|operation| self.apply_one(operation))
    }

    /// The chain that this entry continues. One that it does not name as its predecessor was cut by a crash before it
    /// was committed, and the session has begun again: it is dropped.
    fn take_chain(&mut self, entry: &Entry<'_>) -> Option<OpenTransaction> {
        let chain = transaction_key(entry).and_then(|key| self.transactions.remove(&key))?;
        let previous = entry.doc().get_document("prevOpTime").and_then(|p| p.get("ts")?.as_timestamp());
        (previous?.as_u64() == chain.last_ts).then_some(chain)
    }

    fn apply_one(&mut self, operation: Doc<'_>) -> Result<(), String> {
        let entry = Entry::read(operation).map_err(|e| e.message)?;
        apply_operation(&mut self.collections, &entry, self.predicates)
    }

    fn commit(&mut self, entry: &Entry<'_>) -> Result<(), String> {
        let open = transaction_key(entry).and_then(|key| self.transactions.remove(&key));
        let open = open.filter(|t| t.prepared.is_some()).ok_or("the transaction is not prepared")?;
        open.operations.iter().try_for_each(|operation| self.apply_one(operation.doc()))
    }

    /// An aborted transaction may have written nothing before.
    fn abort(&mut self, entry: &Entry<'_>) -> Result<(), String> {
        if let Some(key) = transaction_key(entry) {
            self.transactions.remove(&key);
        }
        Ok(())
    }
}

fn transaction_key(entry: &Entry<'_>) -> Option<TransactionKey> {
    Some((entry.lsid()?.bytes().to_vec(), entry.txn_number()?))
}

fn documents(array: Doc<'_>) -> impl Iterator<Item = Doc<'_>> {
    array.iter().filter_map(|e| e.value().as_document())
}

/// Applies an operation that needs no transaction state: CRUD, or a command that changes the catalog.
pub fn apply_operation(
    collections: &mut BTreeMap<String, Collection>,
    entry: &Entry<'_>,
    predicates: &PredicateFactory<'_>,
) -> Result<(), String> {
    match entry.op {
        Op::Noop => Ok(()),
        Op::Command => apply_command(collections, entry, predicates),
        Op::Insert | Op::Update | Op::Delete => {
            let collection = collections.get_mut(entry.ns).ok_or("the collection does not exist")?;
            apply_to_collection(collection, entry)
        }
    }
}

/// Applies an insert, update or delete.
pub fn apply_to_collection(collection: &mut Collection, entry: &Entry<'_>) -> Result<(), String> {
    if entry.uuid.is_some_and(|uuid| uuid != collection.uuid()) {
        return Err("the collection has another UUID".to_string());
    }
    match entry.op {
        Op::Insert => {
            let plan = collection.prepare_insert(entry.o).map_err(|e| e.message)?;
            collection.insert(plan, entry.o);
        }
        Op::Update => {
            let record = find(collection, entry)?;
            let replaced;
            let new = match entry.o.element("$v") {
                None => entry.o,
                Some(_) => {
                    replaced = updated(collection, record, entry.o)?;
                    replaced.doc()
                }
            };
            let plan = collection.prepare_update(record, new).map_err(|e| e.message)?;
            collection.update(record, plan, new);
        }
        Op::Delete => {
            let record = find(collection, entry)?;
            collection.delete(record);
        }
        Op::Command | Op::Noop => {}
    }
    Ok(())
}

fn find(collection: &Collection, entry: &Entry<'_>) -> Result<RecordId, String> {
    let id = entry.document_id().ok_or("the entry has no _id")?;
    let found = CollectionView::find_id(collection, id);
    Ok(found.ok_or_else(|| format!("no document with _id {:?}", id.to_value()))?.0)
}

fn updated(collection: &Collection, record: RecordId, update: Doc<'_>) -> Result<DocBuf, String> {
    let old = collection.get(record).ok_or("the record is gone")?;
    match (update.get_i64("$v"), update.get_document("diff")) {
        (Some(2), Some(diff)) => document::delta::apply(old, &diff.to_document()).map_err(|e| e.message),
        _ => Err("an update of an unknown format".to_string()),
    }
}

fn apply_command(
    collections: &mut BTreeMap<String, Collection>,
    entry: &Entry<'_>,
    predicates: &PredicateFactory<'_>,
) -> Result<(), String> {
    let (name, argument) = entry.command().ok_or("an empty command")?;
    let database = split_namespace(entry.ns).0;
    let ns = argument.as_str().map(|collection| format!("{database}.{collection}"));
    let existing = |ns: &Option<String>| ns.clone().ok_or("the command does not name a collection");
    match name {
        "create" => create(collections, existing(&ns)?, entry),
        "drop" => match collections.remove(&existing(&ns)?) {
            Some(_) => Ok(()),
            None => Err("drop of a collection that does not exist".to_string()),
        },
        "dropDatabase" => {
            collections.retain(|ns, _| split_namespace(ns).0 != database);
            Ok(())
        }
        "renameCollection" => rename(collections, entry),
        "tesseraFork" => fork(collections, entry),
        "createIndexes" => {
            let collection = named(collections, existing(&ns)?)?;
            create_index(collection, &entry.o.to_document(), predicates)
        }
        "commitIndexBuild" => {
            let collection = named(collections, existing(&ns)?)?;
            let indexes = entry
                .o
                .get("indexes")
                .and_then(|v| v.as_array())
                .ok_or("commitIndexBuild without indexes")?;
            documents(indexes).try_for_each(|spec| create_index(collection, &spec.to_document(), predicates))
        }
        "dropIndexes" | "deleteIndexes" => {
            let collection = named(collections, existing(&ns)?)?;
            let index = entry.o.get_str("index").ok_or("dropIndexes without the name of an index")?;
            collection.drop_index(index).map(drop).map_err(|e| e.message)
        }
        "collMod" => {
            apply_coll_mod(named(collections, existing(&ns)?)?, &entry.o.to_document()).map_err(|e| e.message)
        }
        "startIndexBuild" | "abortIndexBuild" | "dbCheck" => Ok(()),
        "applyOps" => {
            let operations = argument.as_array().ok_or("applyOps without an array")?;
            documents(operations).try_for_each(|operation| {
                let entry = Entry::read(operation).map_err(|e| e.message)?;
                apply_operation(collections, &entry, predicates)
            })
        }
        other => Err(format!("the command {other} cannot be replayed")),
    }
}

fn named(collections: &mut BTreeMap<String, Collection>, ns: String) -> Result<&mut Collection, String> {
    collections.get_mut(&ns).ok_or_else(|| format!("collection {ns} does not exist"))
}

fn create(
    collections: &mut BTreeMap<String, Collection>,
    ns: String,
    entry: &Entry<'_>,
) -> Result<(), String> {
    if collections.contains_key(&ns) {
        return Err(format!("collection {ns} exists already"));
    }
    collections.insert(ns.clone(), created(ns, entry)?);
    Ok(())
}

/// The empty collection that a `create` entry makes.
pub fn created(ns: String, entry: &Entry<'_>) -> Result<Collection, String> {
    let uuid = entry.uuid.ok_or("create without a UUID")?;
    let options: Document = entry
        .o
        .iter()
        .skip(1)
        .filter(|e| e.name() != "idIndex")
        .map(|e| (e.name().to_string(), e.value().to_value()))
        .collect();
    Ok(Collection::new(CollectionMeta::with_options(ns, uuid, options)))
}

/// `{renameCollection: "db.a", to: "db.b", dropTarget?: UUID or bool}`.
fn rename(collections: &mut BTreeMap<String, Collection>, entry: &Entry<'_>) -> Result<(), String> {
    let from = entry.o.get_str("renameCollection").ok_or("renameCollection without a source")?;
    let to = entry.o.get_str("to").ok_or("renameCollection without a target")?;
    let drops = match entry.o.get("dropTarget") {
        Some(ValueRef::Boolean(drops)) => drops,
        Some(value) => value.as_uuid().is_some(),
        None => false,
    };
    if from != to && !drops && collections.contains_key(to) {
        return Err(format!("collection {to} exists already"));
    }
    let mut collection =
        collections.remove(from).ok_or_else(|| format!("collection {from} does not exist"))?;
    collection.rename(to);
    collections.insert(to.to_string(), collection);
    Ok(())
}

/// The option of a snapshot's collection that holds the UUID of what it is a copy of. DO NOT CHANGE.
pub const ORIGIN: &str = "tesseraOrigin";

/// Has a copy know what it is a copy of, or know nothing.
pub fn note_origin(copy: &mut Collection, origin: Option<[u8; 16]>) {
    let mut options = copy.meta().options.clone();
    options.remove(ORIGIN);
    if let Some(uuid) = origin {
        options.push(ORIGIN, Value::uuid(uuid));
    }
    copy.set_options(options);
}

/// `{tesseraFork: "db.a", to: "db.b", origin?: UUID}`, whose `ui` is the copy's UUID.
fn fork(collections: &mut BTreeMap<String, Collection>, entry: &Entry<'_>) -> Result<(), String> {
    let from = entry.o.get_str("tesseraFork").ok_or("tesseraFork without a source")?;
    let to = entry.o.get_str("to").ok_or("tesseraFork without a target")?;
    let uuid = entry.uuid.ok_or("tesseraFork without a UUID")?;
    if collections.contains_key(to) {
        return Err(format!("collection {to} exists already"));
    }
    let original = collections.get(from).ok_or_else(|| format!("collection {from} does not exist"))?;
    let mut copy = original.fork(to, uuid);
    note_origin(&mut copy, entry.o.get("origin").and_then(|v| v.as_uuid()));
    collections.insert(to.to_string(), copy);
    Ok(())
}

/// Adds the index of a `createIndexes` entry.
pub fn create_index(
    collection: &mut Collection,
    command: &Document,
    predicates: &PredicateFactory<'_>,
) -> Result<(), String> {
    // The first member of a createIndexes entry names the collection; `spec` is the form inside newer entries.
    let spec = match command.get_document("spec") {
        Some(spec) => spec.clone(),
        None => command
            .iter()
            .filter(|(n, _)| *n != "createIndexes")
            .map(|(n, v)| (n.to_string(), v.clone()))
            .collect(),
    };
    let spec = IndexSpec::parse(&spec, predicates).map_err(|e| e.message)?;
    let name = spec.name().to_string();
    match collection.create_index(spec) {
        Ok(true) => Ok(()),
        Ok(false) => Err(format!("index {name} exists already")),
        Err(error) => Err(error.message),
    }
}
