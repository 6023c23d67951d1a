//! `top`: time spent by namespace since the node started.

use crate::dispatch::{Command, Context, Kind, Latencies, Needs, Reply, Request, Roles};
use document::{Doc, Document, Result, Value, doc};
use foldhash::fast::RandomState;
use node::auth::Action as A;
use node::namespace::Slot;
use node::stripe::Striped;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

pub const ROWS: &[Command] = &[Command::sync("top", Roles::MONGOD, run)
    .takes_no_write_concern()
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

/// How long operations took, as `$collStats` shows it.
#[derive(Clone, Default)]
struct Latency {
    sum: Use,
    /// Operations by [`BOUNDS`], as far as there were any.
    histogram: Vec<i64>,
}

/// The least microseconds of each range of a histogram: a range is twice as wide as that before it, and between two milliseconds and
/// a second there is a step halfway.
const BOUNDS: [i64; 41] = {
    let (mut out, mut at, mut bound) = ([0; 41], 1, 2);
    while at < out.len() {
        out[at] = bound;
        bound = match bound {
            2048..1_048_576 if bound & (bound - 1) == 0 => bound + bound / 2,
            2048..1_048_576 => bound / 3 * 4,
            _ => bound * 2,
        };
        at += 1;
    }
    out
};

impl Latency {
    fn add(&mut self, micros: i64) {
        self.sum.micros += micros;
        self.sum.count += 1;
        let range = BOUNDS.partition_point(|bound| *bound <= micros).saturating_sub(1);
        if self.histogram.len() <= range {
            self.histogram.resize(range + 1, 0);
        }
        self.histogram[range] += 1;
    }
    fn include(&mut self, other: &Latency) {
        self.sum.micros += other.sum.micros;
        self.sum.count += other.sum.count;
        let ranges = self.histogram.len().max(other.histogram.len());
        self.histogram.resize(ranges, 0);
        self.histogram.iter_mut().zip(&other.histogram).for_each(|(n, more)| *n += more);
    }
    fn to_document(&self, with_histogram: bool) -> Document {
        let mut d = Document::new();
        if with_histogram {
            let ranges = BOUNDS.iter().zip(&self.histogram).filter(|(_, count)| **count > 0);
            let shown = ranges.map(|(micros, count)| doc! { "micros": *micros, "count": *count }.into());
            d.push("histogram", Value::Array(shown.collect()));
        }
        d.push("latency", self.sum.micros);
        d.push("ops", self.sum.count);
        d
    }
}

/// What is known of a namespace.
#[derive(Clone, Default)]
struct Known {
    uses: Uses,
    reads: Latency,
    writes: Latency,
    commands: Latency,
}

/// Namespaces kept; beyond that new ones are not counted, so that names made up by clients cannot fill the memory.
const NAMESPACES_MAX: usize = 100_000;

/// By database, then by collection, so that a lookup needs no joined name.
type Table = HashMap<String, HashMap<String, Known, RandomState>, RandomState>;

/// The table, a part of it for each thread.
#[derive(Default)]
pub struct Top(Striped<Mutex<Table>>);

impl Top {
    /// Adds one finished command, where it was about a collection.
    pub fn record(&self, command: &Command, body: Doc<'_>, elapsed: Duration) {
        let Some((db, collection)) = concerned(command, body) else { return };
        let mut table = self.0.own().lock();
        let Some(known) = known_of(&mut table, db, collection) else { return };
        let micros = elapsed.as_micros() as i64;
        let writes = command.kind == Kind::Write;
        for at in [0, if writes { 2 } else { 1 }, use_of(command.name)] {
            known.uses[at].micros += micros;
            known.uses[at].count += 1;
        }
        let latency = match command.latencies() {
            Latencies::Reads => &mut known.reads,
            Latencies::Writes => &mut known.writes,
            Latencies::Commands => &mut known.commands,
        };
        latency.add(micros);
    }

    /// Forgets what a command that succeeded has dropped: a collection made anew under the name begins at nothing.
    pub fn heed_drop(&self, command: &Command, body: Doc<'_>) {
        let db = body.get_str("$db").unwrap_or("");
        match command.name {
            "drop" | "renameCollection" => {
                let name = crate::operations::target(command.name, body).unwrap_or("");
                let (db, collection) = match command.name {
                    "drop" => (db, name),
                    _ => name.split_once('.').unwrap_or((name, "")),
                };
                self.0.iter().for_each(|part| {
                    part.lock().get_mut(db).and_then(|collections| collections.remove(collection));
                });
            }
            "dropDatabase" => self.0.iter().for_each(|part| {
                part.lock().remove(db);
            }),
            _ => {}
        }
    }

    /// `{reads: {latency, ops}, writes, commands, transactions}` of a namespace, with histograms where they are asked for.
    pub fn latencies(&self, ns: &str, histograms: bool) -> Document {
        let (db, collection) = ns.split_once('.').unwrap_or((ns, ""));
        let mut sum = Known::default();
        for part in self.0.iter() {
            if let Some(known) = part.lock().get(db).and_then(|collections| collections.get(collection)) {
                sum.reads.include(&known.reads);
                sum.writes.include(&known.writes);
                sum.commands.include(&known.commands);
            }
        }
        let none = Latency::default();
        [("reads", &sum.reads), ("writes", &sum.writes), ("commands", &sum.commands), ("transactions", &none)]
            .into_iter()
            .map(|(name, latency)| (name.to_string(), latency.to_document(histograms).into()))
            .collect()
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
                for (collection, known) in collections {
                    let Some(sum) = known_of(&mut sums, db, collection) else { continue };
                    for (sum, one) in sum.uses.iter_mut().zip(&known.uses) {
                        sum.micros += one.micros;
                        sum.count += one.count;
                    }
                }
            }
        }
        let all =
            sums.iter().flat_map(|(db, known)| known.iter().map(move |(c, k)| (format!("{db}.{c}"), k.uses)));
        let mut rows: Vec<(String, Uses)> = all.collect();
        rows.sort_by(|a, b| a.0.cmp(&b.0));
        rows.into_iter().map(|(ns, uses)| (ns, describe(&uses).into())).collect()
    }
}

/// The database and collection that a command is about, if it is about the documents or indexes of one.
fn concerned<'a>(command: &Command, body: Doc<'a>) -> Option<(&'a str, &'a str)> {
    let db = body.get_str("$db")?;
    match command.name {
        "explain" => {
            let inner = body.iter().next()?.value().as_document()?;
            Some((db, inner.iter().next()?.value().as_str()?))
        }
        "dataSize" => crate::operations::target(command.name, body)?.split_once('.'),
        "killCursors" | "compact" | "planCacheClear" => {
            Some((db, crate::operations::target(command.name, body)?))
        }
        "renameCollection" => None,
        _ if command.kind == Kind::Other => None,
        _ => Some((db, crate::operations::target(command.name, body)?)),
    }
}

/// What is known of a namespace, added where there is nothing yet; `None` when the table is full.
fn known_of<'a>(table: &'a mut Table, db: &str, collection: &str) -> Option<&'a mut Known> {
    if table.get(db).and_then(|collections| collections.get(collection)).is_none() {
        if table.len() >= NAMESPACES_MAX || table.get(db).is_some_and(|c| c.len() >= NAMESPACES_MAX) {
            return None;
        }
        table.entry(db.to_string()).or_default().insert(collection.to_string(), Known::default());
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
    fn a_namespace_has_latencies_and_histograms_of_its_own() {
        let top = Top::default();
        let find = Command::sync("find", Roles::ALL, |_, _, _| Ok(())).read();
        let insert = Command::sync("insert", Roles::ALL, |_, _, _| Ok(())).write();
        for (command, collection, micros) in
            [(&find, "c", 1), (&find, "c", 3), (&find, "c", 3100), (&insert, "c", 10), (&find, "other", 5)]
        {
            let body = doc! {"c": collection, "$db": "d"}.to_doc_buf();
            top.record(command, body.doc(), Duration::from_micros(micros));
        }
        let histogram = |ranges: &[(i64, i64)]| {
            let shown = ranges.iter().map(|(micros, count)| doc! {"micros": *micros, "count": *count}.into());
            Value::Array(shown.collect())
        };
        let d = top.latencies("d.c", true);
        let reads =
            doc! {"histogram": histogram(&[(0, 1), (2, 1), (3072, 1)]), "latency": 3104i64, "ops": 3i64};
        assert_eq!(d.get_document("reads"), Some(&reads));
        let writes = doc! {"histogram": histogram(&[(8, 1)]), "latency": 10i64, "ops": 1i64};
        assert_eq!(d.get_document("writes"), Some(&writes));
        let explain = Command::sync("explain", Roles::ALL, |_, _, _| Ok(()));
        let body = doc! {"explain": {"find": "c"}, "$db": "d"}.to_doc_buf();
        top.record(&explain, body.doc(), Duration::from_micros(9));
        let commands = doc! {"latency": 9i64, "ops": 1i64};
        assert_eq!(top.latencies("d.c", false).get_document("commands"), Some(&commands));
        let none = doc! {"latency": 0i64, "ops": 0i64};
        assert_eq!(top.latencies("d.c", false).get_document("transactions"), Some(&none));
        assert_eq!(top.latencies("d.unheard_of", false).get_document("reads"), Some(&none));
    }

    #[test]
    fn the_ranges_double_with_steps_halfway_between_two_milliseconds_and_a_second() {
        assert_eq!(&BOUNDS[..4], &[0, 2, 4, 8]);
        assert_eq!(&BOUNDS[11..16], &[2048, 3072, 4096, 6144, 8192]);
        assert_eq!(&BOUNDS[28..32], &[786_432, 1_048_576, 2_097_152, 4_194_304]);
    }

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
