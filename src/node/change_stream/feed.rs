//! Which waiting stream is told of which entry.
//!
//! Most entries concern few streams. Were every stream to read the log, a thousand of them that wait for other collections
//! would each be woken by every write. So one of those that wait reads for all:
//!
//! ```text
//! leader   reads each committed entry once, and tells those whom it may concern
//! others   sleep until they are told, or lead, or have waited long enough; then they pass over what was read for them
//! ```
//! A leader that leaves, whatever the reason, hands over to the next in line by letting go of `lead`. Nobody waits: nobody reads,
//! and a write meets nothing of this.
//!
//! Invariant: no entry between a waiter's `from` and [`State::read`] concerns it unless it was told.
//! Invariant: only committed entries are passed, so no rollback takes back what was.

use super::Scope;
use super::unwind::previous;
use crate::replication::commit::order;
use crate::write::retry::operations_of;
use crate::{Node, log_failed};
use document::{Result, is_internal_database};
use parking_lot::Mutex;
use runtime::Instant;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use storage::entry::{Entry, Op};
use storage::log::{Class, FrameRef, LogError, LogReader, OpTime, Position, ReadFrom};
use storage::split_namespace;
use tokio::sync::Notify;

/// The longest that reading goes on without letting other tasks run.
const SLICE_TIME_MAX: Duration = Duration::from_millis(1);

/// How far the log is committed.
#[derive(Clone, Copy)]
pub(super) struct Reach {
    limit: Position,
    pub(super) point: OpTime,
}

impl Reach {
    /// Only optimes say what a set of several has committed; of a set of one the log itself does.
    pub(super) fn now(node: &Node) -> Reach {
        match node.replication.commit.is_shared() {
            true => Reach { limit: node.log.appended(), point: node.committed() },
            false => Reach { limit: node.log.durable(), point: OpTime { ts: u64::MAX, term: i64::MAX } },
        }
    }

    /// The next frame, if it is committed.
    pub(super) fn next<'r>(
        &self,
        reader: &'r mut LogReader,
    ) -> std::result::Result<Option<FrameRef<'r>>, LogError> {
        reader.next_if(self.limit, |class, at| class != Class::Oplog || order(at) <= order(self.point))
    }

    /// Waits until more is committed than this, which was read up to `position`.
    pub(super) async fn grow(&self, node: &Node, position: Position) -> std::result::Result<(), LogError> {
        if node.replication.commit.is_shared() {
            let mut rises = node.replication.commit.subscribe();
            let _ = rises.wait_for(|now| order(*now) > order(self.point)).await;
            return Ok(());
        }
        node.log.wait_appended(position).await?;
        node.log.wait_durable(node.log.appended()).await
    }
}

/// A place in the log, and the newest time before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) position: Position,
    pub(super) ts: u64,
}

/// What a stream waits for.
pub(super) struct Interest {
    pub(super) scope: Scope,
    /// Notes that only move the time on are news, too.
    pub(super) notes: bool,
}

impl Interest {
    /// By what [`State::tell`] finds it: a namespace, a database, or nothing for all of them.
    fn key(&self) -> String {
        match &self.scope {
            Scope::Collection(ns) => ns.to_string(),
            Scope::Database(db) => db.clone(),
            Scope::Cluster => String::new(),
        }
    }
}

struct Waiter {
    interest: Interest,
    from: Position,
    /// The first entry that may concern it.
    told: OnceLock<Position>,
    wakes: Notify,
}

impl Waiter {
    fn tell(&self, position: Position) {
        if position >= self.from && self.told.set(position).is_ok() {
            self.wakes.notify_one();
        }
    }
}

/// The streams of a node that wait.
#[derive(Default)]
pub(crate) struct Feed {
    lead: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// How far the log was read for those that wait; `None` while nobody does.
    read: Option<Mark>,
    waiting: BTreeMap<String, BTreeMap<u64, Arc<Waiter>>>,
    serial: u64,
}

/// A stream's place among those that wait, until it is dropped.
pub(super) struct Ticket<'a> {
    feed: &'a Feed,
    waiter: Arc<Waiter>,
    serial: u64,
    /// How far was read before it came: up to there it looks for itself.
    pub(super) read_before: Position,
}

impl Feed {
    /// Joins those that wait, having read up to `own`.
    pub(super) fn join(&self, interest: Interest, own: Mark) -> Ticket<'_> {
        let key = interest.key();
        let waiter = Waiter { interest, from: own.position, told: OnceLock::new(), wakes: Notify::new() };
        let waiter = Arc::new(waiter);
        let mut state = self.state.lock();
        state.serial += 1;
        let serial = state.serial;
        state.waiting.entry(key).or_default().insert(serial, waiter.clone());
        let read_before = state.read.get_or_insert(own).position;
        Ticket { feed: self, waiter, serial, read_before }
    }

    /// Waits until the holder of the ticket is told something, reading for all while no other does.
    ///
    /// # Errors
    /// Those of the log. They end the waiting of all.
    pub(super) async fn wait(&self, node: &Node, ticket: &Ticket<'_>) -> std::result::Result<(), LogError> {
        tokio::select! {
            biased;
            () = ticket.waiter.wakes.notified() => Ok(()),
            _leads = self.lead.lock() => {
                let read = self.read_for_all(node, &ticket.waiter).await;
                if read.is_err() {
                    self.state.lock().tell_all_to_look();
                }
                read
            }
        }
    }

    async fn read_for_all(&self, node: &Node, own: &Waiter) -> std::result::Result<(), LogError> {
        let Some(mark) = self.state.lock().read else { return Ok(()) };
        let mut reader = node.log.reader(ReadFrom::Position(mark.position))?;
        let mut until = Instant::now() + SLICE_TIME_MAX;
        loop {
            let reach = Reach::now(node);
            while own.told.get().is_none()
                && let Some(frame) = reach.next(&mut reader)?
            {
                self.state.lock().pass(&frame);
                if Instant::now() > until {
                    tokio::task::yield_now().await;
                    until = Instant::now() + SLICE_TIME_MAX;
                }
            }
            if own.told.get().is_some() {
                return Ok(());
            }
            reach.grow(node, reader.position()).await?;
        }
    }
}

impl Ticket<'_> {
    /// Whether anything in a frame may concern the holder.
    pub(super) fn concerns(&self, frame: &FrameRef<'_>) -> bool {
        let mut found = false;
        if frame.class == Class::Oplog {
            news(frame, |news| found |= news.concerns(&self.waiter.interest));
        }
        found
    }

    /// Up to where nothing concerns the holder, which has told its feed all it can.
    pub(super) fn clear(&self) -> Option<Mark> {
        match self.waiter.told.get() {
            Some(at) => Some(Mark { position: *at, ts: 0 }),
            None => self.feed.state.lock().read,
        }
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let mut state = self.feed.state.lock();
        let key = self.waiter.interest.key();
        if let Some(here) = state.waiting.get_mut(&key) {
            here.remove(&self.serial);
            if here.is_empty() {
                state.waiting.remove(&key);
            }
        }
        if state.waiting.is_empty() {
            state.read = None;
        }
    }
}

impl State {
    /// Tells of a frame, and is past it.
    fn pass(&mut self, frame: &FrameRef<'_>) {
        let mut ts = self.read.map_or(0, |mark| mark.ts);
        if frame.class == Class::Oplog {
            ts = frame.optime.ts;
            news(frame, |news| self.tell(news, frame.position));
        }
        self.read = Some(Mark { position: frame.end, ts });
    }

    fn tell(&self, news: News<'_>, at: Position) {
        if let News::Written(ns) = news {
            let db = split_namespace(ns).0;
            let all = (!is_internal_database(db)).then_some("");
            let keys = [Some(ns), Some(db), all].into_iter().flatten();
            let found = keys.filter_map(|key| self.waiting.get(key)).flat_map(BTreeMap::values);
            return found.for_each(|waiter| waiter.tell(at));
        }
        let concerned = |w: &&Arc<Waiter>| news.concerns(&w.interest);
        let all = self.waiting.values().flat_map(BTreeMap::values);
        all.filter(concerned).for_each(|waiter| waiter.tell(at));
    }

    /// The log has failed, or was cut: who waits looks for itself, and what comes next begins anew.
    fn tell_all_to_look(&mut self) {
        self.read = None;
        self.waiting.values().flat_map(BTreeMap::values).for_each(|waiter| waiter.tell(waiter.from));
    }
}

/// What an entry, or an operation in it, is to streams: at least to those that show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum News<'a> {
    /// A document of the namespace.
    Written(&'a str),
    /// A change of the catalog of a database.
    Catalog(&'a str),
    /// The time has moved on.
    Note,
    /// What cannot be told from the entry alone.
    Any,
}

impl News<'_> {
    fn concerns(self, interest: &Interest) -> bool {
        match self {
            News::Written(ns) => {
                let (db, name) = split_namespace(ns);
                interest.scope.sees(db, name, true)
            }
            News::Catalog(db) => interest.scope.sees_database(db),
            News::Note => interest.notes,
            News::Any => true,
        }
    }
}

fn news(frame: &FrameRef<'_>, mut tell: impl FnMut(News<'_>)) {
    match Entry::of_frame(frame) {
        Ok(entry) => news_in(&entry, &mut tell),
        // Those that watch will report it.
        Err(_) => tell(News::Any),
    }
}

fn news_in(entry: &Entry<'_>, tell: &mut dyn FnMut(News<'_>)) {
    let is = |name: &str| entry.o.get_bool(name) == Some(true);
    let command = entry.command().map(|(name, _)| name);
    match (entry.op, command) {
        (Op::Insert | Op::Update | Op::Delete, _) => tell(News::Written(entry.ns)),
        (Op::Noop, _) if entry.o2.is_none() => tell(News::Note),
        (Op::Command, Some("abortTransaction")) => {}
        (Op::Command, Some("applyOps")) if is("partialTxn") || is("prepare") => {}
        (Op::Command, Some("applyOps")) if previous(entry).is_none() => {
            for operation in operations_of(entry.doc()) {
                match Entry::read(operation) {
                    Ok(inner) => news_in(&inner, tell),
                    Err(_) => tell(News::Any),
                }
            }
        }
        // Both databases of a rename are concerned, and the operations of the others stand elsewhere.
        (Op::Noop, _) | (Op::Command, None | Some("renameCollection" | "commitTransaction" | "applyOps")) => {
            tell(News::Any);
        }
        (Op::Command, Some(_)) => tell(News::Catalog(split_namespace(entry.ns).0)),
    }
}

/// An error of the log where a stream waits: a cut is found by whoever reads on.
pub(super) fn waited(outcome: std::result::Result<(), LogError>) -> Result<()> {
    match outcome {
        Err(e) if !matches!(e, LogError::Truncated { .. } | LogError::PositionLost { .. }) => {
            Err(log_failed(e))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Operation;
    use crate::exec::batch::Documents;
    use crate::replication::testing;
    use document::{Document, Value, array, doc};
    use query::pipeline::{Context, Namespace, Run, parse};
    use std::future::Future;
    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Wake, Waker};

    use super::super::ChangeStreamRows;

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn open(node: &Arc<Node>, collection: &str) -> ChangeStreamRows {
        let ns = Namespace::new("d", collection);
        let context = Context::new(ns.clone(), node.parse_context(Document::new()));
        let pipeline = parse(&[doc! { "$changeStream": {} }.into()], &context).unwrap();
        let run = Run::new(&context);
        ChangeStreamRows::open(node, &Operation::internal(), &ns.to_string(), &pipeline, run, false).unwrap()
    }

    fn insert(node: &Node, ns: &str) {
        let entry =
            doc! { "op": "i", "ns": ns, "ui": (Value::uuid([7; 16])), "o": { "_id": 1 }, "o2": { "_id": 1 } };
        node.log.append(Class::Oplog, &[&[&entry.to_vec()]]);
    }

    async fn count(node: &Arc<Node>, stream: &mut ChangeStreamRows) -> usize {
        let mut out = Documents::default();
        stream.fill(node, &Arc::new(Operation::internal()), &mut out).await.unwrap();
        out.list.len()
    }

    /// Waits until the log was read for all that wait.
    async fn read(node: &Node) {
        while node.stream_feed.state.lock().read.is_none_or(|mark| mark.position < node.log.appended()) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    #[tokio::test]
    async fn an_entry_wakes_the_streams_that_may_show_it_and_no_others() {
        let node = testing::node(Some("rs"));
        let far = Instant::now() + Duration::from_secs(600);
        let mut leading = open(&node, "leads");
        assert_eq!(count(&node, &mut leading).await, 0);
        let leader = runtime::spawn({
            let node = node.clone();
            async move { leading.await_news(&node, &Operation::internal(), far).await }
        });
        while node.stream_feed.state.lock().read.is_none() {
            tokio::task::yield_now().await;
        }
        let mut idle = open(&node, "idle");
        assert_eq!(count(&node, &mut idle).await, 0);
        let before = idle.token();
        let (op, wakes) = (Operation::internal(), Arc::new(Wakes::default()));
        let waker = Waker::from(wakes.clone());
        {
            let mut waits = pin!(idle.await_news(&node, &op, far));
            let mut poll = || waits.as_mut().poll(&mut std::task::Context::from_waker(&waker)).is_ready();
            assert!(!poll());
            for _ in 0..20 {
                insert(&node, "d.other");
            }
            read(&node).await;
            assert_eq!(wakes.0.load(Ordering::SeqCst), 0);
            insert(&node, "d.idle");
            read(&node).await;
            assert!(wakes.0.load(Ordering::SeqCst) > 0);
            assert!(poll());
        }
        assert_eq!(count(&node, &mut idle).await, 1);
        assert_ne!(idle.token(), before);
        assert!(!leader.is_finished());
        insert(&node, "d.leads");
        leader.await.unwrap().unwrap();
    }

    /// It promises that time without having read what came before.
    #[tokio::test]
    async fn a_stream_that_has_waited_in_vain_is_past_what_was_read_for_it() {
        let node = testing::node(Some("rs"));
        let mut stream = open(&node, "idle");
        assert_eq!(count(&node, &mut stream).await, 0);
        let op = Operation::internal();
        {
            let far = Instant::now() + Duration::from_millis(500);
            let mut waits = pin!(stream.await_news(&node, &op, far));
            let inserts = async {
                while node.stream_feed.state.lock().read.is_none() {
                    tokio::task::yield_now().await;
                }
                insert(&node, "d.other");
                read(&node).await;
            };
            tokio::select! {
                biased;
                waited = &mut waits => panic!("woken: {waited:?}"),
                () = inserts => {}
            }
            waits.await.unwrap();
        }
        assert!(node.stream_feed.state.lock().read.is_none());
        assert_eq!(stream.position(), node.log.appended());
        assert_eq!(count(&node, &mut stream).await, 0);
        let newest = query::change_stream::Token::high_water_mark(document::Timestamp::from_u64(
            node.log.last_optime().ts,
        ));
        assert_eq!(stream.token().get_str("_data"), Some(newest.data().as_str()));
    }

    #[test]
    fn what_an_entry_concerns() {
        let of = |entry: Document| {
            let mut found = Vec::new();
            let entry = entry.to_doc_buf();
            news_in(&Entry::read(entry.doc()).unwrap(), &mut |news| found.push(format!("{news:?}")));
            found.join(" ")
        };
        let command = |o: Document| of(doc! { "op": "c", "ns": "d.$cmd", "o": o });
        let inner = array![
            { "op": "u", "ns": "d.a", "o": {}, "o2": {} },
            { "op": "c", "ns": "e.$cmd", "o": { "create": "x" } },
        ];
        assert_eq!(of(doc! { "op": "d", "ns": "d.c", "o": { "_id": 1 } }), "Written(\"d.c\")");
        assert_eq!(of(doc! { "op": "n", "ns": "", "o": { "msg": "periodic noop" } }), "Note");
        assert_eq!(of(doc! { "op": "n", "ns": "d.c", "o": {}, "o2": { "shardCollection": "d.c" } }), "Any");
        assert_eq!(command(doc! { "drop": "c" }), "Catalog(\"d\")");
        assert_eq!(command(doc! { "dropDatabase": 1 }), "Catalog(\"d\")");
        assert_eq!(command(doc! { "renameCollection": "d.c", "to": "e.c" }), "Any");
        assert_eq!(command(doc! { "applyOps": (inner.clone()) }), "Written(\"d.a\") Catalog(\"e\")");
        assert_eq!(command(doc! { "applyOps": (inner.clone()), "prepare": true }), "");
        assert_eq!(command(doc! { "applyOps": (inner), "partialTxn": true }), "");
        assert_eq!(command(doc! { "abortTransaction": 1 }), "");
        assert_eq!(command(doc! { "commitTransaction": 1 }), "Any");
        let none = Value::Array(Vec::new());
        let mut chain =
            doc! { "op": "c", "ns": "admin.$cmd", "o": { "applyOps": none }, "lsid": {}, "txnNumber": 1i64 };
        chain.push("prevOpTime", doc! { "ts": (document::Timestamp::new(1, 1)), "t": 1i64 });
        assert_eq!(of(chain), "Any");
    }
}
