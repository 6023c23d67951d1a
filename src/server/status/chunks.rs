//! The chunks of all collections, in order, kept up to date by what has changed.
//!
//! Once asked for, one `$group` over `config.chunks` says of each collection how many chunks it has and which version is the highest.
//! Where the version has grown, the chunks with newer versions are read and take the place of what they cover: every change of the
//! catalog gives new versions to chunks that tile the range it is about. Where a count still differs (flags of jumbo chunks change
//! without a version), the collection is read anew. So 100,000 chunks cost a scan on the server and nothing on the wire.

use super::asker::Asker;
use document::{DocBuf, Document, Result, Timestamp, Value, doc, key_string};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};

/// By UUID.
#[derive(Default)]
pub(crate) struct Chunks {
    tables: BTreeMap<[u8; 16], Table>,
    /// Counts the changes of all tables, so that a table that is made anew is never taken for the one before.
    changes: u64,
}

/// The chunks of one collection.
#[derive(Default)]
pub(crate) struct Table {
    pub(crate) ns: String,
    generation: Option<Timestamp>,
    newest: Option<Timestamp>,
    /// By the sorted form of their lower bounds.
    chunks: BTreeMap<Vec<u8>, Chunk>,
    /// How many of them each shard has. Counted as they change: there may be a hundred thousand, and every look asks.
    tallies: BTreeMap<String, Tally>,
    /// What this table was last changed by.
    pub(crate) version: u64,
}

/// Chunks of one shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) chunks: i64,
    pub(crate) jumbo: i64,
}

pub(crate) struct Chunk {
    pub(crate) min: DocBuf,
    pub(crate) max: DocBuf,
    pub(crate) shard: String,
    pub(crate) is_jumbo: bool,
}

/// A range of a zone, by the sorted form of its bounds.
pub(crate) struct Zone {
    pub(crate) name: String,
    min: Vec<u8>,
    max: Vec<u8>,
}

impl Zone {
    /// Mixes this range into a fingerprint.
    pub(crate) fn print(&self, print: u64) -> u64 {
        let mut hasher = DefaultHasher::new();
        (print, &self.name, &self.min, &self.max).hash(&mut hasher);
        hasher.finish()
    }
    /// A document of `config.tags`.
    pub(super) fn read(tag: &Document) -> Option<Zone> {
        let name = tag.get_str("tag")?.to_string();
        Some(Zone { name, min: sorted(tag.get_document("min")?), max: sorted(tag.get_document("max")?) })
    }
}

fn sorted(bound: &Document) -> Vec<u8> {
    let mut key = Vec::new();
    for (_, value) in bound.iter() {
        key_string::append_value(&mut key, value, false);
    }
    key
}

/// What the server says of one collection's chunks.
pub(super) struct Counted {
    newest: Option<Timestamp>,
    chunks: i64,
    jumbo: i64,
}

impl Chunks {
    pub(crate) fn tables(&self) -> impl Iterator<Item = &Table> {
        self.tables.values()
    }
    pub(crate) fn table(&self, ns: &str) -> Option<&Table> {
        self.tables.values().find(|table| table.ns == ns)
    }

    pub(super) fn retain(&mut self, is_known: impl Fn(&[u8; 16]) -> bool) {
        self.tables.retain(|uuid, _| is_known(uuid));
    }

    /// What is to be read so that a collection of the catalog is up to date.
    pub(super) fn due(&self, uuid: [u8; 16], collection: &Document, counted: &Counted) -> Option<Due> {
        let ns = collection.get_str("_id").unwrap_or_default().to_string();
        let generation = collection.get("timestamp").and_then(Value::as_timestamp);
        let table = self.tables.get(&uuid).filter(|table| table.generation == generation && table.ns == ns);
        let newest = match table {
            Some(table) if table.newest != counted.newest => table.newest,
            Some(table) if table.agrees(counted) => return None,
            _ => None,
        };
        Some(Due { uuid, ns, generation, newest })
    }

    /// Puts in place what was read.
    pub(super) fn apply(&mut self, due: Due, chunks: &[Document]) {
        let table = self.tables.entry(due.uuid).or_default();
        if due.newest.is_none() {
            *table = Table { ns: due.ns, generation: due.generation, ..Table::default() };
        }
        self.changes += 1;
        table.version = self.changes;
        for chunk in chunks {
            table.put(chunk);
        }
    }
}

/// Chunks of a collection to read: those with the newest known version and higher ones, or all.
pub(super) struct Due {
    uuid: [u8; 16],
    ns: String,
    generation: Option<Timestamp>,
    newest: Option<Timestamp>,
}

impl Due {
    /// The oldest first.
    pub(super) async fn ask(&self, asker: &mut Asker) -> Result<Vec<Document>> {
        let mut filter = doc! { "uuid": Value::uuid(self.uuid) };
        if let Some(version) = self.newest {
            filter.push("lastmod", doc! { "$gte": Value::Timestamp(version) });
        }
        let fields = doc! { "min": 1, "max": 1, "shard": 1, "jumbo": 1, "lastmod": 1 };
        let find =
            doc! { "find": "chunks", "filter": filter, "projection": fields, "sort": { "lastmod": 1 } };
        asker.all("config", find).await
    }
}

pub(super) async fn count(asker: &mut Asker) -> Result<BTreeMap<[u8; 16], Counted>> {
    let group = doc! {
        "_id": "$uuid", "newest": { "$max": "$lastmod" }, "chunks": { "$sum": 1 },
        "jumbo": { "$sum": { "$cond": ["$jumbo", 1, 0] } },
    };
    let rows = asker.aggregate("config", "chunks", vec![doc! { "$group": group }]).await?;
    let row = |row: &Document| {
        let newest = row.get("newest").and_then(Value::as_timestamp);
        let number = |name: &str| row.get_i64(name).unwrap_or(0);
        Some((
            row.get("_id")?.as_uuid()?,
            Counted { newest, chunks: number("chunks"), jumbo: number("jumbo") },
        ))
    };
    Ok(rows.iter().filter_map(row).collect())
}

impl Table {
    fn agrees(&self, counted: &Counted) -> bool {
        let jumbo: i64 = self.tallies.values().map(|tally| tally.jumbo).sum();
        (self.chunks.len() as i64, jumbo) == (counted.chunks, counted.jumbo)
    }

    /// The shards that have chunks, with how many.
    pub(crate) fn tallies(&self) -> impl Iterator<Item = (&str, Tally)> {
        self.tallies.iter().map(|(shard, tally)| (shard.as_str(), *tally))
    }

    /// Counts a chunk that comes (1) or goes (-1).
    fn tally(&mut self, shard: &str, is_jumbo: bool, change: i64) {
        let tally = self.tallies.entry(shard.to_string()).or_default();
        tally.chunks += change;
        tally.jumbo += change * i64::from(is_jumbo);
        if tally.chunks == 0 {
            self.tallies.remove(shard);
        }
    }

    /// Puts a chunk in the place of all that begin within it.
    fn put(&mut self, chunk: &Document) {
        let (Some(min), Some(max)) = (chunk.get_document("min"), chunk.get_document("max")) else { return };
        let (from, to) = (sorted(min), sorted(max));
        let covered: Vec<Vec<u8>> = self.chunks.range(from.clone()..to).map(|(key, _)| key.clone()).collect();
        for key in covered {
            if let Some(gone) = self.chunks.remove(&key) {
                self.tally(&gone.shard, gone.is_jumbo, -1);
            }
        }
        self.newest = self.newest.max(chunk.get("lastmod").and_then(Value::as_timestamp));
        let shard = chunk.get_str("shard").unwrap_or_default().to_string();
        let is_jumbo = chunk.get_bool("jumbo") == Some(true);
        self.tally(&shard, is_jumbo, 1);
        self.chunks.insert(from, Chunk { min: min.to_doc_buf(), max: max.to_doc_buf(), shard, is_jumbo });
    }

    /// Every chunk in order, with the zone it lies in; `zones` are in order too.
    pub(crate) fn with_zones<'t>(
        &'t self,
        zones: &'t [Zone],
    ) -> impl Iterator<Item = (&'t Chunk, Option<&'t Zone>)> {
        let mut next = 0;
        self.chunks.iter().map(move |(min, chunk)| {
            while zones.get(next).is_some_and(|zone| zone.max <= *min) {
                next += 1;
            }
            (chunk, zones.get(next).filter(|zone| zone.min <= *min))
        })
    }

    /// The table as the page reads it: `{ns, version, chunks, shards, zones, runs: [count, code, ...]}` where neighbours that are
    /// alike are one run, and a code is `shard + shards.length * (2 * zone + jumbo)`; zone 0 is none, zone n is `zones[n - 1]`.
    pub(crate) fn to_json(&self, zones: &[Zone]) -> String {
        let shards = numbered(self.chunks.values().map(|chunk| chunk.shard.as_str()));
        let names = numbered(zones.iter().map(|zone| zone.name.as_str()));
        let code = |(chunk, zone): (&Chunk, Option<&Zone>)| {
            let zone = zone.and_then(|zone| names.get(zone.name.as_str())).map_or(0, |at| at + 1);
            let shard = shards.get(chunk.shard.as_str()).copied().unwrap_or(0);
            shard + shards.len() * (2 * zone + usize::from(chunk.is_jumbo))
        };
        let mut runs: Vec<(usize, usize)> = Vec::new();
        for code in self.with_zones(zones).map(code) {
            match runs.last_mut() {
                Some((count, last)) if *last == code => *count += 1,
                _ => runs.push((1, code)),
            }
        }
        let list = |names: &BTreeMap<&str, usize>| {
            serde_json::Value::from(names.keys().copied().collect::<Vec<_>>())
        };
        let mut json = format!(
            r#"{{"ns":{},"version":{},"chunks":{},"shards":{},"zones":{},"runs":["#,
            serde_json::Value::from(self.ns.as_str()),
            self.version,
            self.chunks.len(),
            list(&shards),
            list(&names),
        );
        for (i, (count, code)) in runs.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            let _ = write!(json, "{comma}{count},{code}");
        }
        json.push_str("]}");
        json
    }
}

/// Names in order, with their places.
fn numbered<'n>(names: impl Iterator<Item = &'n str>) -> BTreeMap<&'n str, usize> {
    let mut numbered: BTreeMap<&str, usize> = names.map(|name| (name, 0)).collect();
    for (at, place) in numbered.values_mut().enumerate() {
        *place = at;
    }
    numbered
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(min: i32, max: i32, shard: &str, version: u32) -> Document {
        let lastmod = Value::Timestamp(Timestamp::new(1, version));
        doc! { "min": { "x": min }, "max": { "x": max }, "shard": shard, "lastmod": lastmod }
    }
    fn zone(min: i32, max: i32, name: &str) -> Zone {
        Zone::read(&doc! { "min": { "x": min }, "max": { "x": max }, "tag": name }).unwrap()
    }
    fn shown(table: &Table) -> Vec<(i32, String)> {
        let min = |c: &Chunk| c.min.doc().to_document().get_i64("x").unwrap() as i32;
        table.chunks.values().map(|c| (min(c), c.shard.clone())).collect()
    }

    #[test]
    fn newer_chunks_take_the_place_of_what_they_cover() {
        let mut table = Table::default();
        for one in [chunk(0, 10, "a", 1), chunk(10, 20, "a", 2), chunk(20, 30, "b", 3)] {
            table.put(&one);
        }
        // A split of the first, a merge of the other two.
        for one in [chunk(0, 5, "a", 4), chunk(5, 10, "c", 5), chunk(10, 30, "b", 6)] {
            table.put(&one);
        }
        let expected = [(0, "a"), (5, "c"), (10, "b")].map(|(min, shard)| (min, shard.to_string()));
        assert_eq!(shown(&table), expected);
        assert_eq!(table.newest, Some(Timestamp::new(1, 6)));
        let tally = |chunks, jumbo| Tally { chunks, jumbo };
        let tallies: Vec<_> = table.tallies().collect();
        assert_eq!(tallies, [("a", tally(1, 0)), ("b", tally(1, 0)), ("c", tally(1, 0))]);
        let mut jumbo = chunk(0, 10, "b", 7);
        jumbo.push("jumbo", true);
        table.put(&jumbo);
        assert_eq!(table.tallies().collect::<Vec<_>>(), [("b", tally(2, 1))], "shards without chunks go");
    }

    #[test]
    fn a_table_is_there_while_it_is_asked_about_and_no_version_comes_twice() {
        let (uuid, mut chunks) = ([7; 16], Chunks::default());
        let collection =
            |generation| doc! { "_id": "d.c", "timestamp": Value::Timestamp(Timestamp::new(generation, 1)) };
        let counted =
            |version, chunks| Counted { newest: Some(Timestamp::new(1, version)), chunks, jumbo: 0 };
        let due = chunks.due(uuid, &collection(1), &counted(2, 2)).expect("nothing is known");
        assert!(chunks.table("d.c").is_none());
        chunks.apply(due, &[chunk(0, 10, "a", 1), chunk(10, 20, "a", 2)]);
        assert!(chunks.due(uuid, &collection(1), &counted(2, 2)).is_none());
        let due = chunks.due(uuid, &collection(1), &counted(3, 2)).expect("a newer version");
        assert_eq!(due.newest, Some(Timestamp::new(1, 2)));
        assert_eq!(shown(chunks.table("d.c").expect("stays")), [(0, "a".to_string()), (10, "a".to_string())]);
        chunks.apply(due, &[chunk(10, 20, "b", 3)]);
        assert_eq!(shown(chunks.table("d.c").expect("stays")), [(0, "a".to_string()), (10, "b".to_string())]);
        let before = chunks.table("d.c").expect("stays").version;
        let due = chunks.due(uuid, &collection(2), &counted(3, 1)).expect("made anew");
        assert_eq!(due.newest, None);
        chunks.apply(due, &[chunk(0, 20, "c", 3)]);
        let table = chunks.table("d.c").expect("stays");
        assert!(table.version > before && shown(table) == [(0, "c".to_string())]);
    }

    #[test]
    fn runs_say_shard_zone_and_jumbo_of_each_chunk() {
        let mut table = Table { ns: "d.c".to_string(), ..Table::default() };
        for (i, shard) in ["a", "a", "b", "b"].into_iter().enumerate() {
            let mut one = chunk(i as i32, i as i32 + 1, shard, i as u32);
            one.push("jumbo", i == 3);
            table.put(&one);
        }
        assert_eq!(
            table.to_json(&[zone(2, 3, "hot")]),
            r#"{"ns":"d.c","version":0,"chunks":4,"shards":["a","b"],"zones":["hot"],"runs":[2,0,1,5,1,3]}"#
        );
    }
}
