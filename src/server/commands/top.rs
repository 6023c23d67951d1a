//! `top`: time spent by namespace since the node started.

use crate::dispatch::{Command, Context, Kind, Needs, Reply, Request, Roles};
use document::{Doc, Document, Result, doc};
use foldhash::fast::RandomState;
use node::auth::Action as A;
use node::namespace::Slot;
use node::stripe::Striped;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

pub const ROWS: &[Command] = &[Command::sync("top", Roles::MONGOD, run)
    .needs(Needs::Cluster(&[A::Top]))
    .admin_only()
    .help("Time spent by namespace.")];

/// The kinds of use, in the order in which `top` shows them.
const USES: [&str; 9] =
    ["total", "readLock", "writeLock", "queries", "getmore", "insert", "update", "remove", "commands"];

#[derive(Clone, Copy, Default)]
struct Use {
    micros: i64,
    count: i64,
}

type Uses = [Use; USES.len()];

/// Namespaces kept; beyond that new ones are not counted, so that names made up by clients cannot fill the memory.
const NAMESPACES_MAX: usize = 100_000;

/// By database, then by collection, so that a lookup needs no joined name.
type Table = HashMap<String, HashMap<String, Uses, RandomState>, RandomState>;

/// The table, a part of it for each thread.
#[derive(Default)]
pub struct Top(Striped<Mutex<Table>>);

impl Top {
    /// Adds one finished read or write command.
    pub fn record(&self, command: &Command, body: Doc<'_>, elapsed: Duration) {
        let name = crate::operations::target(command.name, body);
        let (Some(db), Some(collection)) = (body.get_str("$db"), name) else { return };
        let mut table = self.0.own().lock();
        let Some(uses) = uses_of(&mut table, db, collection) else { return };
        let lock = if command.kind == Kind::Write { 2 } else { 1 };
        for at in [0, lock, use_of(command.name)] {
            uses[at].micros += elapsed.as_micros() as i64;
            uses[at].count += 1;
        }
    }

    /// Forgets the namespaces for which `exists` is false.
    fn forget(&self, exists: impl Fn(&str) -> bool) {
        for part in self.0.iter() {
            part.lock().retain(|db, collections| {
                collections.retain(|collection, _| exists(&format!("{db}.{collection}")));
                !collections.is_empty()
            });
        }
    }

    /// `{namespace: {total: {time, count}, ...}}`, times in microseconds, by name.
    fn to_document(&self) -> Document {
        let mut sums = Table::default();
        for part in self.0.iter() {
            for (db, collections) in part.lock().iter() {
                for (collection, uses) in collections {
                    let Some(sum) = uses_of(&mut sums, db, collection) else { continue };
                    for (sum, one) in sum.iter_mut().zip(uses) {
                        sum.micros += one.micros;
                        sum.count += one.count;
                    }
                }
            }
        }
        let all = sums.iter().flat_map(|(db, uses)| uses.iter().map(move |(c, u)| (format!("{db}.{c}"), *u)));
        let mut rows: Vec<(String, Uses)> = all.collect();
        rows.sort_by(|a, b| a.0.cmp(&b.0));
        rows.into_iter().map(|(ns, uses)| (ns, describe(&uses).into())).collect()
    }
}

/// The uses of a namespace, added where there are none yet; `None` when the table is full.
fn uses_of<'a>(table: &'a mut Table, db: &str, collection: &str) -> Option<&'a mut Uses> {
    if table.get(db).and_then(|collections| collections.get(collection)).is_none() {
        if table.len() >= NAMESPACES_MAX || table.get(db).is_some_and(|c| c.len() >= NAMESPACES_MAX) {
            return None;
        }
        table.entry(db.to_string()).or_default().insert(collection.to_string(), Uses::default());
    }
    table.get_mut(db)?.get_mut(collection)
}

/// Where in [`USES`] a command counts, beside the total and its lock.
fn use_of(command: &str) -> usize {
    match command {
        "find" => 3,
        "getMore" => 4,
        "insert" => 5,
        "update" => 6,
        "delete" => 7,
        _ => 8,
    }
}

fn describe(uses: &Uses) -> Document {
    let mut d = Document::new();
    for (name, one) in USES.iter().zip(uses) {
        d.push(*name, doc! { "time": one.micros, "count": one.count });
    }
    d
}

fn run(context: &Context, _: &Request<'_>, reply: &mut Reply) -> Result<()> {
    if let Some(node) = &context.service.node {
        // What was dropped is forgotten here: dropping has many paths, and nobody else reads the table.
        let slots = node.namespaces.visible();
        let filled = |slot: &&Arc<Slot>| {
            let state = slot.read_unchecked();
            state.collection.is_some() || state.view.is_some()
        };
        let there: HashSet<&str> = slots.iter().filter(filled).map(|slot| slot.ns.as_str()).collect();
        context.service.counters.top.forget(|ns| there.contains(ns));
    }
    let mut totals = doc! { "note": "all times in microseconds" };
    totals.0.extend(context.service.counters.top.to_document());
    reply.fields(&doc! { "totals": totals });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_counts_in_its_total_its_lock_and_its_kind() {
        let top = Top::default();
        let find = Command::sync("find", Roles::ALL, |_, _, _| Ok(())).read();
        let body = doc! {"find": "c", "$db": "d"}.to_doc_buf();
        top.record(&find, body.doc(), Duration::from_micros(5));
        top.record(&find, body.doc(), Duration::from_micros(7));
        let d = top.to_document();
        let ns = d.get_document("d.c").unwrap().clone();
        for name in ["total", "readLock", "queries"] {
            assert_eq!(ns.get_document(name), Some(&doc! {"time": 12i64, "count": 2i64}), "{name}");
        }
        top.forget(|ns| ns != "d.c");
        assert_eq!(top.to_document(), doc! {});
        assert_eq!(ns.get_path("writeLock.count").and_then(|v| v.as_i64()), Some(0));
    }
}
