//! One set of three members without a cluster: its members are killed, cut off, stepped down, and what was acknowledged by a
//! majority stays.
//!
//! Writers do what they do in a cluster, but look at any member, for what a majority has, causally after their own writes. A
//! careless session has its inserts acknowledged by the primary alone, so that there is much to roll back: of these some may
//! be lost. In no term do two members lead. At the end all members have the same data and the same log.

use crate::cluster::{Client, Ending, MEMBERS, Node, SET, Wishes, address};
use crate::workload::{Writer, restart};
use document::{Document, Value, doc};
use runtime::random_range;
use runtime::simulation::network;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

const ALL: std::ops::Range<usize> = 0..MEMBERS.len();
const WRITERS: i32 = 3;
/// Fast enough that a run has many elections.
const ELECTION_MS: i32 = 1500;

pub(crate) async fn establish(wishes: &Wishes) -> Result<Vec<Node>, String> {
    let mut nodes: Vec<Node> = ALL.map(|at| Node::new(at, wishes)).collect();
    for node in &mut nodes {
        node.start().await?;
    }
    let member = |at: usize| doc! { "_id": at as i32, "host": address(at) }.into();
    let members: Vec<Value> = ALL.map(member).collect();
    let settings = doc! { "electionTimeoutMillis": ELECTION_MS, "heartbeatIntervalMillis": 300 };
    let set = doc! { "_id": SET, "members": Value::Array(members), "settings": settings };
    Client::of(0).insist("admin", &doc! { "replSetInitiate": set }).await?;
    let create = |name: &str| doc! { "create": name, "writeConcern": { "w": 3 } };
    let mut client = Client::of_any(ALL);
    for name in ["c", "careless"] {
        client.insist("test", &create(name)).await?;
    }
    Ok(nodes)
}

/// A whole run; says what happened in it.
///
/// # Errors
/// What should have held and did not.
pub(crate) async fn run(nodes: &mut [Node], hard: bool) -> Result<String, String> {
    let done = Cell::new(false);
    let mut writers: Vec<Writer> = (0..WRITERS).map(|number| Writer::to_set(number, ALL)).collect();
    let working = async {
        let worked = futures::future::try_join_all(writers.iter_mut().map(Writer::work)).await;
        done.set(true);
        worked
    };
    let (worked, ended, inserted, terms) =
        tokio::join!(biased; working, trouble(nodes, hard, &done), insert_carelessly(&done), watch(&done));
    worked?;
    let (ended, terms) = (ended?, terms?);
    network::heal();
    check(&mut writers).await?;
    for node in nodes.iter_mut() {
        node.lose_power().await;
    }
    for node in nodes.iter_mut() {
        restart(node).await?;
    }
    let kept = check(&mut writers).await?;
    Ok(format!("{terms} terms, {ended} members killed, {kept} of {inserted} careless inserts kept"))
}

/// Waits until all members have an entry. What a cut began ends in an election that may yet interrupt a first one.
async fn mark_everywhere() -> Result<(), String> {
    let mut last = None;
    for _ in 0..5 {
        let mark = doc! { "_id": Value::uuid(runtime::uuid()) };
        let insert = doc! { "insert": "marks", "documents": [mark], "writeConcern": { "w": 3 } };
        let reply = Client::of_any(ALL).insist("test", &insert).await?;
        if !reply.contains_key("writeErrors") && !reply.contains_key("writeConcernError") {
            return Ok(());
        }
        last = Some(reply);
    }
    Err(format!("not everybody has the last entry: {last:?}"))
}

/// Looks at everything once all members have all; returns how many careless inserts there are.
async fn check(writers: &mut [Writer]) -> Result<usize, String> {
    mark_everywhere().await?;
    for writer in writers {
        writer.look().await?;
    }
    let mut all = Vec::new();
    for at in ALL {
        all.push(Held::by(at).await?);
    }
    for (at, held) in all.iter().enumerate().skip(1) {
        held.compare(&all[0]).map_err(|what| format!("{} and {} differ: {what}", MEMBERS[0], MEMBERS[at]))?;
    }
    Ok(all[0].collections.get("careless").map_or(0, Vec::len))
}

/// What a member has.
struct Held {
    collections: BTreeMap<&'static str, Vec<String>>,
    /// By optime; a member that has copied everything has no older entries.
    log: BTreeMap<u64, String>,
}

impl Held {
    async fn by(at: usize) -> Result<Held, String> {
        let mut client = Client::of(at);
        let mut collections = BTreeMap::new();
        for name in ["c", "careless", "marks"] {
            let find = doc! { "find": name, "sort": { "_id": 1 } };
            let found = all_of(&mut client, "test", find).await?;
            collections.insert(name, found.iter().map(|d| format!("{d:?}")).collect());
        }
        let entries = all_of(&mut client, "local", doc! { "find": "oplog.rs" }).await?;
        let ts = |d: &Document| d.get("ts").and_then(Value::as_timestamp).map_or(0, |ts| ts.as_u64());
        Ok(Held { collections, log: entries.iter().map(|d| (ts(d), format!("{d:?}"))).collect() })
    }

    fn compare(&self, other: &Held) -> Result<(), String> {
        for (name, documents) in &self.collections {
            if documents != &other.collections[name] {
                return Err(format!("{name} has {documents:?} and {:?}", other.collections[name]));
            }
        }
        let both = |held: &Held| held.log.first_key_value().map_or(0, |(ts, _)| *ts);
        let newest = |held: &Held| held.log.last_key_value().map_or(0, |(ts, _)| *ts);
        let common = both(self).max(both(other))..=newest(self).min(newest(other));
        let (ours, theirs) = (self.log.range(common.clone()), other.log.range(common));
        match ours.zip(theirs).find(|(a, b)| a != b) {
            Some((a, b)) => Err(format!("the logs part at {} and {}", a.1, b.1)),
            None => Ok(()),
        }
    }
}

async fn all_of(client: &mut Client, db: &str, mut find: Document) -> Result<Vec<Document>, String> {
    find.push("batchSize", 100_000);
    find.push("$readPreference", doc! { "mode": "nearest" });
    let reply = client.insist(db, &find).await?;
    let batch = reply.get_path("cursor.firstBatch").and_then(Value::as_array).into_iter().flatten();
    Ok(batch.filter_map(Value::as_document).cloned().collect())
}

/// Inserts with acknowledgements by the primary alone, also by one that leads no longer and has not heard. Returns how many
/// were acknowledged.
async fn insert_carelessly(done: &Cell<bool>) -> usize {
    let mut client = Client::of_any(ALL);
    let mut inserted = 0;
    for id in 0.. {
        if done.get() {
            break;
        }
        let insert =
            doc! { "insert": "careless", "documents": [doc! { "_id": id }], "writeConcern": { "w": 1 } };
        inserted += usize::from(client.run("test", &insert).await.is_ok());
        tokio::time::sleep(Duration::from_millis(random_range(0..150))).await;
    }
    inserted
}

/// Asks all members who leads, and finds no term with two leaders. Returns how many terms had one.
async fn watch(done: &Cell<bool>) -> Result<usize, String> {
    let mut clients: Vec<Client> = ALL.map(Client::of).collect();
    let mut leaders: BTreeMap<String, usize> = BTreeMap::new();
    while !done.get() {
        for (at, client) in clients.iter_mut().enumerate() {
            let Ok(reply) = client.run("admin", &doc! { "hello": 1 }).await else { continue };
            let Some(election) = reply.get("electionId") else { continue };
            if reply.get("isWritablePrimary") != Some(&Value::Boolean(true)) {
                continue;
            }
            let leader = *leaders.entry(format!("{election:?}")).or_insert(at);
            if leader != at {
                return Err(format!("{} and {} lead in one term", MEMBERS[leader], MEMBERS[at]));
            }
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(leaders.len())
}

/// Kills, restarts, cuts off and steps down until the writers have ended; returns how many members were killed.
async fn trouble(nodes: &mut [Node], hard: bool, done: &Cell<bool>) -> Result<usize, String> {
    let mut ended = 0;
    while !done.get() {
        if hard {
            break_connections().await;
        } else {
            pause(50..800).await;
        }
        let at = random_range(ALL);
        match random_range(0..10) {
            0..3 => {
                kill(&mut nodes[at]).await;
                ended += 1;
                pause(0..3000).await;
                restart(&mut nodes[at]).await?;
            }
            3 => {
                for node in nodes.iter_mut() {
                    kill(node).await;
                    ended += 1;
                    pause(0..1000).await;
                }
                for node in nodes.iter_mut() {
                    restart(node).await?;
                }
            }
            4..7 => {
                ALL.filter(|other| *other != at).for_each(|other| network::cut(MEMBERS[at], MEMBERS[other]));
                pause(0..6000).await;
                network::heal();
            }
            7 => {
                network::cut(MEMBERS[at], MEMBERS[(at + 1) % MEMBERS.len()]);
                pause(0..6000).await;
                network::heal();
            }
            _ => {
                let command = doc! {
                    "replSetStepDown": 3, "secondaryCatchUpPeriodSecs": 1, "force": random_range(0..2) == 0,
                };
                drop(Client::of(at).run("admin", &command).await);
            }
        }
    }
    Ok(ended)
}

async fn kill(node: &mut Node) {
    node.kill([Ending::Process, Ending::Power, Ending::Disk][random_range(0..3)]).await;
}

async fn pause(millis: std::ops::Range<u64>) {
    tokio::time::sleep(Duration::from_millis(random_range(millis))).await;
}

/// Breaks connections for a while, those of clients too.
async fn break_connections() {
    let party = || MEMBERS.get(random_range(0..=MEMBERS.len())).copied().unwrap_or("nobody");
    for _ in 0..random_range(2..12) {
        pause(0..250).await;
        network::reset(party(), party());
    }
}
