//! Sessions that run transactions over lists, and write down for [`history`](crate::history) what they did and saw.
//!
//! They do as drivers do: a transaction stays with one router; one that fails is aborted; a commit whose outcome nobody has
//! heard is sent again through either router with the recovery token; what a reply says of cluster times goes along with the
//! next command. In between they append by retryable writes, and read all lists at one moment without a transaction.

use crate::cluster::{Client, Failure, ROUTERS};
use crate::history::{Lists, Op, Status, Txn};
use document::error::RETRIABLE;
use document::{Document, Value, doc};
use runtime::{now_millis, random_range};
use std::time::Duration;

/// Lists stand in `test.c`, over all its chunks.
const LISTS: i32 = 8;
const FIRST: i32 = 1_000_000;
const STEPS: i32 = 30;

fn key_of(list: i32) -> i32 {
    list * 125 + 60
}

/// What finds a list by shard key and `_id`.
fn one(list: i32) -> Document {
    doc! { "_id": FIRST + list, "k": key_of(list) }
}

/// Appends a value.
fn push(list: i32, value: i64) -> Document {
    doc! { "update": "c", "updates": [doc! { "q": one(list), "u": { "$push": { "v": Value::Int64(value) } } }] }
}

pub(crate) struct Appender {
    number: usize,
    clients: Vec<Client>,
    /// Which of them.
    at: usize,
    session: Value,
    txn: i64,
    values: i64,
    cluster_time: Option<Value>,
    operation_time: Option<Value>,
    recovery: Option<Value>,
    pub history: Vec<Txn>,
}

impl Appender {
    pub(crate) fn new(number: usize) -> Appender {
        Appender {
            number,
            clients: ROUTERS.map(Client::of).collect(),
            at: 0,
            session: Value::from(doc! { "id": Value::uuid(runtime::uuid()) }),
            txn: 0,
            values: 0,
            cluster_time: None,
            operation_time: None,
            recovery: None,
            history: Vec::new(),
        }
    }

    /// Makes the lists, before anything goes wrong.
    pub(crate) async fn make_lists(&mut self) -> Result<(), String> {
        let list = |i: i32| doc! { "_id": FIRST + i, "k": key_of(i), "v": Value::Array(Vec::new()) }.into();
        let documents: Vec<Value> = (0..LISTS).map(list).collect();
        let concern = doc! { "w": "majority" };
        let insert = doc! { "insert": "c", "documents": Value::Array(documents), "writeConcern": concern };
        self.insist(&insert).await.map(drop)
    }

    pub(crate) async fn work(&mut self) -> Result<(), String> {
        for _ in 0..STEPS {
            let ops = Vec::new();
            let mut t =
                Txn { session: self.number, began: now_millis(), ended: 0, status: Status::Unknown, ops };
            match random_range(0..10) {
                0 => self.append_alone(&mut t).await?,
                1 => {
                    t.ops.extend(
                        self.read_all().await?.into_iter().map(|(list, values)| Op::Read(list, values)),
                    );
                    t.status = Status::Committed;
                }
                _ => self.transaction(&mut t).await?,
            }
            t.ended = now_millis();
            self.history.push(t);
            tokio::time::sleep(Duration::from_millis(random_range(0..100))).await;
        }
        Ok(())
    }

    async fn send(&mut self, db: &str, mut command: Document) -> Result<Document, Failure> {
        command.push("lsid", self.session.clone());
        if let Some(time) = &self.cluster_time {
            command.push("$clusterTime", time.clone());
        }
        let reply = self.clients[self.at].ask(db, &command).await?;
        self.hear_of(&reply);
        Ok(reply)
    }

    fn hear_of(&mut self, reply: &Document) {
        let later = |time: &Value, known: &Option<Value>| {
            let of = |time: &Value| time.as_document()?.get("clusterTime")?.as_timestamp();
            known.as_ref().is_none_or(|known| of(known) < of(time))
        };
        if let Some(time) = reply.get("$clusterTime").filter(|time| later(time, &self.cluster_time)) {
            self.cluster_time = Some(time.clone());
        }
        if let Some(time) = reply.get("operationTime") {
            self.operation_time = Some(time.clone());
        }
        if let Some(token) = reply.get("recoveryToken") {
            self.recovery = Some(token.clone());
        }
    }

    /// Knows from now on of what others have had acknowledged.
    pub(crate) fn listen_to(&mut self, others: &[Appender]) {
        for time in others.iter().filter_map(|other| other.cluster_time.clone()) {
            self.hear_of(&doc! { "$clusterTime": time });
        }
    }

    async fn transaction(&mut self, t: &mut Txn) -> Result<(), String> {
        self.txn += 1;
        self.at = random_range(0..self.clients.len());
        self.recovery = None;
        for n in 0..random_range(1..5) {
            if let Err(failure) = self.statement(n == 0, t).await {
                t.status = Status::Aborted;
                let abort = self.ending(doc! { "abortTransaction": 1 });
                drop(self.send("admin", abort).await);
                let transient =
                    failure.network || failure.error.labels.contains(&"TransientTransactionError");
                return if transient { Ok(()) } else { Err(format!("{t:?} was refused: {}", failure.error)) };
            }
            tokio::time::sleep(Duration::from_millis(random_range(0..30))).await;
        }
        self.commit(t).await
    }

    async fn statement(&mut self, first: bool, t: &mut Txn) -> Result<(), Failure> {
        let (list, kind) = (random_range(0..LISTS), random_range(0..10));
        let mut command = match kind {
            0..5 => {
                let value = self.next_value();
                t.ops.push(Op::Append(list, value));
                push(list, value)
            }
            5..8 => doc! { "find": "c", "filter": one(list) },
            _ => find_all(),
        };
        command.push("txnNumber", Value::Int64(self.txn));
        command.push("autocommit", false);
        if first {
            let mut concern = doc! { "level": "snapshot" };
            if let Some(time) = &self.operation_time {
                concern.push("afterClusterTime", time.clone());
            }
            command.push("readConcern", concern);
            command.push("startTransaction", true);
        }
        let reply = self.send("test", command).await?;
        match kind {
            0..5 if reply.get("n").and_then(Value::as_i64) == Some(1) => {}
            0..5 => return Err(Failure::of(format!("an append to list {list} gave {reply:?}"))),
            _ => {
                let lists = lists_of(&reply);
                if lists.len() != if kind < 8 { 1 } else { LISTS as usize } {
                    return Err(Failure::of(format!("lists that were read: {lists:?}")));
                }
                t.ops.extend(lists.into_iter().map(|(list, values)| Op::Read(list, values)));
            }
        }
        Ok(())
    }

    fn next_value(&mut self) -> i64 {
        self.values += 1;
        self.values * 10 + self.number as i64
    }

    fn ending(&self, mut command: Document) -> Document {
        command.push("txnNumber", Value::Int64(self.txn));
        command.push("autocommit", false);
        command.push("writeConcern", doc! { "w": "majority" });
        if let Some(token) = &self.recovery {
            command.push("recoveryToken", token.clone());
        }
        command
    }

    async fn commit(&mut self, t: &mut Txn) -> Result<(), String> {
        let mut last = String::new();
        for _ in 0..600 {
            let commit = self.ending(doc! { "commitTransaction": 1 });
            match self.send("admin", commit).await {
                Ok(reply) if reply.get("writeConcernError").is_none() => {
                    t.status = Status::Committed;
                    return Ok(());
                }
                Ok(reply) => last = format!("{reply:?}"),
                Err(failure) if failure.error.labels.contains(&"TransientTransactionError") => {
                    t.status = Status::Aborted;
                    return Ok(());
                }
                // One that has only read has no token by which another router could ask for its outcome.
                Err(failure) if failure.error.code == 50940 && t.only_reads() => return Ok(()),
                Err(failure) if failure.network || failure.error.is(RETRIABLE) => {
                    last = failure.error.to_string();
                }
                Err(failure) => return Err(format!("the commit of {t:?} was refused: {}", failure.error)),
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
            self.at = random_range(0..self.clients.len());
        }
        Err(format!("{t:?} has no outcome: {last}"))
    }

    /// Sends a command until it is done, whatever its failures.
    async fn insist(&mut self, command: &Document) -> Result<Document, String> {
        let mut last = String::new();
        for _ in 0..600 {
            self.at = random_range(0..self.clients.len());
            match self.send("test", command.clone()).await {
                Ok(reply)
                    if !reply.contains_key("writeErrors") && !reply.contains_key("writeConcernError") =>
                {
                    return Ok(reply);
                }
                Ok(reply) => last = format!("{reply:?}"),
                Err(failure) => last = failure.error.to_string(),
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        Err(format!("appender {}: {command:?} never succeeded: {last}", self.number))
    }

    async fn append_alone(&mut self, t: &mut Txn) -> Result<(), String> {
        self.txn += 1;
        let list = random_range(0..LISTS);
        let value = self.next_value();
        t.ops.push(Op::Append(list, value));
        let mut push = push(list, value);
        push.push("txnNumber", Value::Int64(self.txn));
        push.push("writeConcern", doc! { "w": "majority" });
        let reply = self.insist(&push).await?;
        t.status = Status::Committed;
        match reply.get("n").and_then(Value::as_i64) {
            Some(1) => Ok(()),
            _ => Err(format!("an append to list {list} gave {reply:?}")),
        }
    }

    /// All lists as of one moment.
    pub(crate) async fn read_all(&mut self) -> Result<Lists, String> {
        let mut find = find_all();
        find.push("readConcern", doc! { "level": "snapshot" });
        Ok(lists_of(&self.insist(&find).await?))
    }
}

fn find_all() -> Document {
    doc! { "find": "c", "filter": { "_id": { "$gte": FIRST } }, "batchSize": 1000 }
}

fn lists_of(reply: &Document) -> Lists {
    let batch = reply.get_path("cursor.firstBatch").and_then(Value::as_array).into_iter().flatten();
    let list = |found: &Value| {
        let found = found.as_document()?;
        let values = found.get("v")?.as_array()?.iter().filter_map(Value::as_i64).collect();
        Some((found.get("_id")?.as_i64()? as i32 - FIRST, values))
    };
    batch.filter_map(list).collect()
}
