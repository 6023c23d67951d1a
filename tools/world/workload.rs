//! What runs while nodes are killed, chunks are moved and connections break, and what must hold all the time.
//!
//! Each writer has documents of its own, which it inserts, increments and deletes one after the other with retryable
//! writes, each sent until it is acknowledged. It knows therefore at any moment exactly what it must see: every document
//! that it has inserted and not deleted, once, with the number of its increments. A write that was lost, done twice, or a
//! document seen twice or not at all, all show as a difference.

use crate::appender::Appender;
use crate::cluster::{Client, Ending, NAMES, Node, ROUTER};
use crate::history::{self, Status, Txn};
use document::{Document, Value, doc};
use runtime::random_range;
use runtime::simulation::network;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

const WRITERS: i32 = 3;
const APPENDERS: usize = 3;
const STEPS: i32 = 40;

/// One session that writes and looks at what it wrote.
pub(crate) struct Writer {
    number: i32,
    client: Client,
    /// Where a set is written to without a cluster: any of its members, which may lag behind.
    members: Option<Client>,
    /// Of the newest acknowledgement.
    operation_time: Option<Value>,
    session: Value,
    txn: i64,
    next: i32,
    /// Documents by `_id`: shard key and increments.
    expected: BTreeMap<i32, (i32, i32)>,
}

impl Writer {
    fn new(number: i32) -> Writer {
        Writer {
            number,
            client: Client::default(),
            members: None,
            operation_time: None,
            session: Value::from(doc! { "id": Value::uuid(runtime::uuid()) }),
            txn: 0,
            next: 0,
            expected: BTreeMap::new(),
        }
    }

    /// One that writes to the primary of a set, and reads from any of its members.
    pub(crate) fn to_set(number: i32, members: Range<usize>) -> Writer {
        let client = Client::of_any(members.clone());
        Writer { client, members: Some(Client::of_any(members)), ..Writer::new(number) }
    }

    async fn write(&mut self, mut command: Document) -> Result<(), String> {
        self.txn += 1;
        command.push("lsid", self.session.clone());
        command.push("txnNumber", Value::Int64(self.txn));
        command.push("writeConcern", doc! { "w": "majority" });
        let mut last = String::new();
        for _ in 0..600 {
            match self.client.run("test", &command).await {
                Ok(reply)
                    if reply.get("writeErrors").is_none() && reply.get("writeConcernError").is_none() =>
                {
                    self.operation_time = reply.get("operationTime").cloned();
                    return match reply.get("n").and_then(Value::as_i64) {
                        Some(1) => Ok(()),
                        n => Err(format!(
                            "writer {}: {command:?} changed {n:?} documents: {reply:?}",
                            self.number
                        )),
                    };
                }
                Ok(reply) if reply.get("writeErrors").is_some_and(|e| format!("{e:?}").contains("11000")) => {
                    return Err(format!("writer {}: {command:?} was done twice: {reply:?}", self.number));
                }
                Ok(reply) => last = format!("{reply:?}"),
                Err(error) => last = error,
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        Err(format!("writer {}: {command:?} never succeeded: {last}", self.number))
    }

    async fn insert(&mut self) -> Result<(), String> {
        let (id, k) = (self.number * 1000 + self.next, random_range(0..1000));
        self.next += 1;
        let document = doc! { "_id": id, "k": k, "w": self.number, "n": 0 };
        self.write(doc! { "insert": "c", "documents": [document] }).await?;
        self.expected.insert(id, (k, 0));
        Ok(())
    }

    async fn increment(&mut self, id: i32) -> Result<(), String> {
        let (k, _) = self.expected[&id];
        let update = doc! { "q": { "_id": id, "k": k }, "u": { "$inc": { "n": 1 } } };
        self.write(doc! { "update": "c", "updates": [update] }).await?;
        self.expected.entry(id).and_modify(|(_, n)| *n += 1);
        Ok(())
    }

    async fn delete(&mut self, id: i32) -> Result<(), String> {
        let (k, _) = self.expected[&id];
        let delete = doc! { "q": { "_id": id, "k": k }, "limit": 1 };
        self.write(doc! { "delete": "c", "deletes": [delete] }).await?;
        self.expected.remove(&id);
        Ok(())
    }

    /// Compares what a query over all shards finds with what must be there.
    pub(crate) async fn look(&mut self) -> Result<(), String> {
        let mut find = doc! { "find": "c", "filter": { "w": self.number }, "batchSize": 1000 };
        if self.members.is_some() {
            let mut concern = doc! { "level": "majority" };
            if let Some(time) = &self.operation_time {
                concern.push("afterClusterTime", time.clone());
            }
            find.push("readConcern", concern);
            find.push("$readPreference", doc! { "mode": "nearest" });
        }
        let reply = self.members.as_mut().unwrap_or(&mut self.client).insist("test", &find).await?;
        let batch = reply.get_path("cursor.firstBatch").and_then(Value::as_array);
        let int = |d: &Document, name: &str| d.get(name).and_then(Value::as_i64).unwrap_or(-1) as i32;
        let mut found: Vec<(i32, (i32, i32))> = batch
            .into_iter()
            .flatten()
            .filter_map(Value::as_document)
            .map(|d| (int(d, "_id"), (int(d, "k"), int(d, "n"))))
            .collect();
        found.sort_unstable();
        let expected: Vec<_> = self.expected.iter().map(|(id, what)| (*id, *what)).collect();
        if found == expected {
            return Ok(());
        }
        let missing: Vec<_> = expected.iter().filter(|d| !found.contains(d)).collect();
        let surplus: Vec<_> = found.iter().filter(|d| !expected.contains(d)).collect();
        Err(format!(
            "writer {}: found {} documents instead of {}: missing {missing:?}, surplus {surplus:?} (_id, (k, n))",
            self.number,
            found.len(),
            expected.len()
        ))
    }

    pub(crate) async fn work(&mut self) -> Result<(), String> {
        for _ in 0..STEPS {
            let ids: Vec<i32> = self.expected.keys().copied().collect();
            match random_range(0..10) {
                0..4 => self.insert().await?,
                4..7 if !ids.is_empty() => self.increment(ids[random_range(0..ids.len())]).await?,
                7 if !ids.is_empty() => self.delete(ids[random_range(0..ids.len())]).await?,
                _ => self.look().await?,
            }
            tokio::time::sleep(Duration::from_millis(random_range(0..200))).await;
        }
        Ok(())
    }
}

/// Moves chunks until the writers have ended, and returns how many have moved. That a move fails is in order.
async fn move_chunks(done: &Cell<bool>) -> usize {
    let mut router = Client::default();
    let mut moved = 0;
    while !done.get() {
        let (k, to) = (random_range(0..4) * 250, NAMES[random_range(1..ROUTER)]);
        let command = doc! { "moveChunk": "test.c", "find": { "k": k }, "to": to };
        moved += usize::from(router.run("admin", &command).await.is_ok());
        tokio::time::sleep(Duration::from_millis(random_range(0..400))).await;
    }
    moved
}

/// Kills, restarts, cuts and resets until the writers have ended; returns how many nodes were killed.
async fn trouble(nodes: &mut [Node], hard: bool, done: &Cell<bool>) -> Result<usize, String> {
    let mut ended = 0;
    while !done.get() {
        if hard {
            break_connections().await;
        } else {
            tokio::time::sleep(Duration::from_millis(random_range(200..2500))).await;
        }
        let (a, b) = (random_range(0..NAMES.len()), random_range(0..NAMES.len()));
        match random_range(0..10) {
            0..7 => {
                let how = [Ending::Process, Ending::Power, Ending::Disk][random_range(0..3)];
                nodes[a].kill(how).await;
                ended += 1;
                tokio::time::sleep(Duration::from_millis(random_range(0..1500))).await;
                restart(&mut nodes[a]).await?;
            }
            _ => {
                network::cut(NAMES[a], NAMES[b]);
                tokio::time::sleep(Duration::from_millis(random_range(0..4000))).await;
                network::heal();
            }
        }
    }
    Ok(ended)
}

/// Breaks connections for a while, those of clients too: a request may then be done and its reply lost.
async fn break_connections() {
    let party = || NAMES.get(random_range(0..=NAMES.len())).copied().unwrap_or("nobody");
    for _ in 0..random_range(2..12) {
        tokio::time::sleep(Duration::from_millis(random_range(0..250))).await;
        network::reset(party(), party());
    }
}

pub(crate) async fn restart(node: &mut Node) -> Result<(), String> {
    let mut last = String::new();
    for _ in 0..20 {
        match node.start().await {
            Ok(()) => return Ok(()),
            Err(error) => last = error,
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Err(format!("a node does not start again: {last}"))
}

/// A whole run; says what happened in it. In a hard one connections break all the time.
///
/// # Errors
/// What should have held and did not.
pub(crate) async fn run(nodes: &mut [Node], hard: bool) -> Result<String, String> {
    let done = Cell::new(false);
    let mut writers: Vec<Writer> = (0..WRITERS).map(Writer::new).collect();
    let mut appenders: Vec<Appender> = (0..APPENDERS).map(Appender::new).collect();
    let mut reader = Appender::new(APPENDERS);
    reader.make_lists().await?;
    appenders.iter_mut().for_each(|a| a.listen_to(std::slice::from_ref(&reader)));
    let working = async {
        let writing = futures::future::try_join_all(writers.iter_mut().map(Writer::work));
        let appending = futures::future::try_join_all(appenders.iter_mut().map(Appender::work));
        let worked = futures::future::try_join(writing, appending).await;
        done.set(true);
        worked
    };
    let (worked, ended, moved) =
        tokio::join!(biased; working, trouble(nodes, hard, &done), move_chunks(&done));
    worked?;
    let ended = ended?;
    network::heal();
    look_all(&mut writers).await?;
    let committed = check_lists(&mut reader, &appenders).await?;
    // Everything loses power at once, and what was acknowledged is still there.
    for node in nodes.iter_mut() {
        node.lose_power().await;
    }
    for node in nodes.iter_mut() {
        restart(node).await?;
    }
    look_all(&mut writers).await?;
    check_lists(&mut reader, &appenders).await?;
    Ok(format!("{committed} transactions committed, {moved} chunks moved, {ended} nodes killed"))
}

/// Looks for anomalies in what the appenders have seen so far; returns how many transactions were acknowledged.
async fn check_lists(reader: &mut Appender, appenders: &[Appender]) -> Result<usize, String> {
    reader.listen_to(appenders);
    let lists = reader.read_all().await?;
    let txns: Vec<Txn> = appenders.iter().flat_map(|a| a.history.iter().cloned()).collect();
    history::check(&txns, &lists)?;
    Ok(txns.iter().filter(|t| t.status == Status::Committed).count())
}

async fn look_all(writers: &mut [Writer]) -> Result<(), String> {
    for writer in writers {
        writer.look().await?;
    }
    Ok(())
}
