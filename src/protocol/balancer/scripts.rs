//! The policies as scripts: what they see, a command, what they do.
//!
//! A file of `scripts/` shows one behaviour (see `golden` for their form). Times are seconds.
//!
//! ```text
//! shard NAME [draining] [full] [zones=a,b]       all shards, in name order, before anything else
//! collection NS [size=N] [noBalance] [moveJumbo] [underWay]
//! zone NAME MIN MAX                              of the last collection, by lower bound
//! chunks KEY OWNER KEY OWNER KEY ...             OWNER! is jumbo, OWNER:N is measured; KEY is a number, min or max
//! counts a=N b=N                                 in place of chunks: first N of a, then N of b
//! sizes a=N b=?                                  what shards own of the last collection; ? where one did not say
//! now T | failed NS KEY FROM TO | succeeded NS KEY FROM TO
//!
//! round [POLICY] [busy=a,b]                      asks for the migrations of all collections
//! splits | violation [POLICY] | top KEY          of the last collection; top: where a chunk split off at the end goes
//! window START STOP HH:MM
//! defragment PHASE | next | migrations [busy=a]  a machine over the last collection
//! whole                                          the machine's migrations, then those of the other collections
//! merged|migrated KEY OUTCOME | measured KEY N   OUTCOME: done, retriable, failed, of a move also tooBig; N may be an outcome
//! scan SHARD NS SHARD NS ... | merge | due | ended SHARD NS OUTCOME [more]    interval 3600, throttling 15
//! ```

use super::auto_merger::{AutoMerger, Merge};
use super::defragmentation::{Action, Defragmentation, Known, Phase};
use super::failures::Failures;
use super::*;
use document::{Value, doc, key_string};
use std::fmt::Write;
use std::path::Path;

#[test]
fn every_script_answers_as_written() {
    golden::check(Path::new(env!("CARGO_MANIFEST_DIR")).join("balancer/scripts"), 30, || {
        let mut world = World::default();
        move |line: &str, answer: &mut String| {
            let words: Vec<&str> = line.split_whitespace().collect();
            world.command(words[0], &words[1..], answer);
        }
    });
}

#[derive(Default)]
struct World {
    shards: Vec<ShardView>,
    collections: Vec<CollectionView>,
    measured: Vec<Option<i64>>,
    failures: Failures,
    now: i64,
    machine: Option<Defragmentation>,
    /// Chunks of the machine by their lower bounds.
    ids: Vec<(String, usize)>,
    merger: AutoMerger,
}

fn key_of(bound: &Document) -> Vec<u8> {
    let mut key = Vec::new();
    let value = bound.get("x").unwrap();
    key_string::append_value(&mut key, value, false);
    key
}
fn bound(text: &str) -> Document {
    match text {
        "min" => doc! { "x": Value::MinKey },
        "max" => doc! { "x": Value::MaxKey },
        n => doc! { "x": n.parse::<i32>().unwrap_or_else(|_| panic!("no key: {n}")) },
    }
}
fn shown(d: &Document) -> String {
    match d.get("x") {
        Some(Value::MinKey) => "min".to_string(),
        Some(Value::MaxKey) => "max".to_string(),
        Some(v) => v.as_i64().unwrap().to_string(),
        None => "?".to_string(),
    }
}
fn option<'a>(words: &[&'a str], name: &str) -> Option<&'a str> {
    words.iter().find_map(|w| w.strip_prefix(name)?.strip_prefix('='))
}
fn outcome(word: &str) -> Outcome {
    match word {
        "done" => Outcome::Done,
        "retriable" => Outcome::Retriable,
        "failed" => Outcome::Failed,
        other => panic!("no outcome: {other}"),
    }
}

impl World {
    fn command(&mut self, name: &str, words: &[&str], answer: &mut String) {
        match name {
            "shard" | "collection" | "zone" | "chunks" | "sizes" => self.tell(name, words),
            "counts" => {
                let chunks = chunks_of_counts(words);
                self.tell("chunks", &chunks.iter().map(String::as_str).collect::<Vec<_>>());
            }
            "now" => self.now = words[0].parse::<i64>().unwrap() * 1000,
            "failed" => self.failures.failed(&a_move(words), self.now),
            "succeeded" => self.failures.succeeded(&a_move(words)),
            "round" => self.round(words, answer),
            "whole" => {
                let shards = self.shards.clone();
                let mut round = Round::new(&shards);
                self.migrations(&mut round, answer);
                let (_, others) = self.collections.split_last().unwrap();
                self.select(others, Policy::DataSize, &mut round, answer);
            }
            "splits" => self.splits(answer),
            "violation" => {
                let policy = words.first().map_or(Policy::DataSize, |w| Policy::parse(w).unwrap());
                let found = violation(self.collections.last().unwrap(), policy, &self.shards);
                let _ = writeln!(answer, "{}", found.map_or("balanced", Reason::name));
            }
            "top" => {
                let c = self.collections.last().unwrap();
                let at = c.chunks.iter().position(|chunk| chunk.min_key == key_of(&bound(words[0]))).unwrap();
                if let Some(m) = move_to_least(c, at, &self.shards) {
                    let _ = writeln!(
                        answer,
                        "[{}, {}) {} -> {}",
                        shown(&m.min),
                        shown(&m.max.unwrap()),
                        m.from,
                        m.to
                    );
                }
            }
            "window" => {
                let at = window::minutes(words[2]).unwrap() * 60_000;
                let _ =
                    writeln!(answer, "{}", if window::holds(words[0], words[1], at) { "in" } else { "out" });
            }
            "scan" | "merge" | "due" | "ended" => self.auto_merge(name, words, answer),
            _ => self.defragment(name, words, answer),
        }
    }

    fn tell(&mut self, name: &str, words: &[&str]) {
        let has = |flag: &str| words.contains(&flag);
        if name == "shard" {
            let zones = option(words, "zones").unwrap_or_default();
            let zones = zones.split(',').filter(|z| !z.is_empty()).map(str::to_string).collect();
            let name = words[0].to_string();
            return self.shards.push(ShardView { name, draining: has("draining"), zones, full: has("full") });
        }
        if name == "collection" {
            let max_chunk_bytes = option(words, "size").map_or(10, |n| n.parse().unwrap());
            self.collections.push(CollectionView {
                ns: words[0].to_string(),
                max_chunk_bytes,
                bytes: vec![Some(0); self.shards.len()],
                balanced: !has("noBalance"),
                move_jumbo: has("moveJumbo"),
                under_way: has("underWay"),
                ..CollectionView::default()
            });
            return;
        }
        let shards: Vec<String> = self.shards.iter().map(|s| s.name.clone()).collect();
        let index =
            |name: &str| shards.iter().position(|s| s == name).unwrap_or_else(|| panic!("no shard {name}"));
        let collection = self.collections.last_mut().unwrap();
        match name {
            "zone" => {
                let (min, max) = (bound(words[1]), bound(words[2]));
                let (min_key, max_key) = (key_of(&min), key_of(&max));
                collection.zones.push(ZoneView { zone: words[0].to_string(), min, max, min_key, max_key });
            }
            "sizes" => {
                for word in words {
                    let (shard, size) = word.split_once('=').unwrap();
                    collection.bytes[index(shard)] = size.parse().ok();
                }
            }
            _ => {
                let chunk = |w: &[&str]| {
                    let (min, max) = (bound(w[0]), bound(w[2]));
                    let (owner, size) = w[1].split_once(':').unwrap_or((w[1], ""));
                    let (min_key, max_key) = (key_of(&min), key_of(&max));
                    let shard = index(owner.trim_end_matches('!'));
                    (
                        ChunkView {
                            min,
                            max,
                            min_key,
                            max_key,
                            shard,
                            jumbo: owner.ends_with('!'),
                            zone: None,
                        },
                        size.parse().ok(),
                    )
                };
                let all = words.windows(3).step_by(2).map(chunk);
                (collection.chunks, self.measured) = all.unzip();
            }
        }
        assign_zones(&mut collection.chunks, &collection.zones);
    }

    fn busy<'a>(shards: &'a [ShardView], words: &[&str]) -> Round<'a> {
        let mut round = Round::new(shards);
        for name in option(words, "busy").unwrap_or_default().split(',').filter(|n| !n.is_empty()) {
            round.occupy(round.find(name).unwrap());
        }
        round
    }

    fn round(&self, words: &[&str], answer: &mut String) {
        let mut round = World::busy(&self.shards, words);
        let policy = words.first().and_then(|w| Policy::parse(w)).unwrap_or_default();
        self.select(&self.collections, policy, &mut round, answer);
    }

    fn select(
        &self,
        collections: &[CollectionView],
        policy: Policy,
        round: &mut Round<'_>,
        answer: &mut String,
    ) {
        for c in collections {
            for m in select(c, policy, round, &self.failures, self.now) {
                let end = m.max.as_ref().map_or("..".to_string(), shown);
                let force = if m.force_jumbo { ", forced" } else { "" };
                let _ = writeln!(
                    answer,
                    "{} [{}, {end}) {} -> {}: {}{force}",
                    m.ns,
                    shown(&m.min),
                    m.from,
                    m.to,
                    m.reason.name()
                );
            }
        }
    }

    fn splits(&self, answer: &mut String) {
        for s in splits(self.collections.last().unwrap()) {
            let points: Vec<String> = s.points.iter().map(shown).collect();
            let shard = &self.shards[s.shard].name;
            let _ = writeln!(
                answer,
                "[{}, {}) on {shard} at {}",
                shown(&s.min),
                shown(&s.max),
                points.join(", ")
            );
        }
    }

    fn defragment(&mut self, name: &str, words: &[&str], answer: &mut String) {
        let c = self.collections.last().unwrap();
        let id = |ids: &[(String, usize)]| ids.iter().rev().find(|(key, _)| *key == words[0]).unwrap().1;
        match name {
            "defragment" => {
                let chunks = c.chunks.iter().cloned().zip(self.measured.iter().copied()).collect();
                let phase = Phase::parse(words[0]).unwrap();
                self.machine =
                    Some(Defragmentation::begin(phase, chunks, c.zones.clone(), c.max_chunk_bytes));
            }
            "next" => {
                let resting =
                    option(words, "resting").and_then(|name| self.shards.iter().position(|s| s.name == name));
                let may = |shard| Some(shard) != resting;
                let machine = self.machine.as_mut().unwrap();
                while let Some(action) = machine.next_action(may) {
                    let (what, chunk, shard, min, max) = match &action {
                        Action::Merge { chunk, shard, min, max } => ("merge", chunk, shard, min, max),
                        Action::Measure { chunk, shard, min, max } => ("measure", chunk, shard, min, max),
                    };
                    self.ids.push((shown(min), *chunk));
                    let _ = writeln!(
                        answer,
                        "{what} [{}, {}) on {}",
                        shown(min),
                        shown(max),
                        self.shards[*shard].name
                    );
                }
            }
            "migrations" => {
                let shards = self.shards.clone();
                self.migrations(&mut World::busy(&shards, words), answer);
            }
            "merged" => self.machine.as_mut().unwrap().merged(id(&self.ids), outcome(words[1])),
            "migrated" if words[1] == "tooBig" => self.machine.as_mut().unwrap().too_big(id(&self.ids)),
            "migrated" => self.machine.as_mut().unwrap().migrated(id(&self.ids), outcome(words[1])),
            "measured" => {
                let size = words[1].parse::<i64>().map_err(|_| outcome(words[1]));
                self.machine.as_mut().unwrap().measured(id(&self.ids), size);
            }
            other => panic!("no command: {other}"),
        }
        let machine = self.machine.as_ref().unwrap();
        if matches!(name, "next" | "migrations") {
            let next = machine.outcome().map_or(String::new(), |p| format!(", then {}", p.name()));
            let _ = writeln!(answer, "{}, {} left{next}", machine.phase().name(), machine.remaining());
        }
    }

    /// The migrations of the machine.
    fn migrations(&mut self, round: &mut Round<'_>, answer: &mut String) {
        let c = self.collections.last().unwrap();
        let known = Known { ns: &c.ns, bytes: &c.bytes, failures: &self.failures, now_ms: self.now };
        for m in self.machine.as_mut().unwrap().migrations(round, &known) {
            self.ids.push((shown(&m.min), m.chunk));
            let (from, to) = (&self.shards[m.from].name, &self.shards[m.to].name);
            let _ = writeln!(answer, "move [{}, {}) {from} -> {to}", shown(&m.min), shown(&m.max));
        }
    }

    fn auto_merge(&mut self, name: &str, words: &[&str], answer: &mut String) {
        match name {
            "scan" => {
                if !self.merger.wants_scan(self.now, 3_600_000) {
                    return answer.push_str("not yet\n");
                }
                let pair = |w: &[&str]| Merge { shard: w[0].to_string(), ns: w[1].to_string() };
                self.merger.begin(words.chunks(2).map(pair), self.now);
                let _ = writeln!(answer, "{} due", self.merger.remaining());
            }
            "merge" => {
                while let Some(m) = self.merger.next_action(self.now, 15_000) {
                    let _ = writeln!(answer, "merge all of {} on {}", m.ns, m.shard);
                }
            }
            "due" => {
                let _ = match self.merger.next_at(15_000) {
                    Some(at) => writeln!(answer, "in {} s", at.saturating_sub(self.now).max(0) / 1000),
                    None => writeln!(answer, "not before one has ended"),
                };
            }
            _ => {
                let merge = Merge { shard: words[0].to_string(), ns: words[1].to_string() };
                self.merger.ended(&merge, outcome(words[2]), words.contains(&"more"), self.now);
            }
        }
    }
}

/// The words of `chunks` for so many chunks of each shard in turn.
fn chunks_of_counts(words: &[&str]) -> Vec<String> {
    let each = words.iter().flat_map(|word| {
        let (shard, n) = word.split_once('=').unwrap();
        std::iter::repeat_n(shard, n.parse().unwrap())
    });
    let mut chunks = Vec::new();
    for (i, shard) in each.enumerate() {
        let min = if i == 0 { "min".to_string() } else { i.to_string() };
        chunks.extend([min, shard.to_string()]);
    }
    chunks.push("max".to_string());
    chunks
}

fn a_move(words: &[&str]) -> Move {
    let min = bound(words[1]);
    Move {
        ns: words[0].to_string(),
        from: words[2].to_string(),
        to: words[3].to_string(),
        min_key: key_of(&min),
        min,
        max: None,
        reason: Reason::ChunksImbalance,
        force_jumbo: false,
    }
}

/// What no script can say: rounds end, whatever the data.
#[test]
fn repeated_rounds_end_with_shards_less_than_three_chunks_apart() {
    let shards: Vec<ShardView> =
        ["a", "b", "c"].map(|n| ShardView { name: n.into(), ..ShardView::default() }).into();
    let mut world = World { shards, ..World::default() };
    let mut ignored = String::new();
    world.command("collection", &["d.c"], &mut ignored);
    world.command("chunks", &["min", "a", "0", "b", "1", "c", "max"], &mut ignored);
    world.command("sizes", &["a=1000", "b=0", "c=0"], &mut ignored);
    let mut c = world.collections.pop().unwrap();
    for rounds in 0.. {
        assert!(rounds < 500, "the balancer does not come to rest");
        let mut round = Round::new(&world.shards);
        let chosen = select(&c, Policy::DataSize, &mut round, &Failures::default(), 0);
        if chosen.is_empty() {
            break;
        }
        for m in chosen {
            let (from, to) = (round.find(&m.from).unwrap(), round.find(&m.to).unwrap());
            c.bytes[from] = c.bytes[from].map(|b| b - 10);
            c.bytes[to] = c.bytes[to].map(|b| b + 10);
        }
    }
    let known = || c.bytes.iter().flatten();
    assert!(known().max().unwrap() - known().min().unwrap() < 30, "{:?}", c.bytes);
}
