//! A set of one from its birth through step-down, reconfiguration and restart; its documents field by field.

use super::testing::{config, node};
use super::*;
use crate::local::LocalClient;
use document::{Doc, Value, codes};
use std::sync::Weak;
use std::sync::atomic::AtomicUsize;
use storage::files::MemoryFiles;

const SAFE: Change = Change::Safe { cluster_default: false };

fn open(set: Option<&str>, files: &MemoryFiles) -> Arc<Node> {
    testing::open(set, files, |_| {})
}
fn code<T>(r: Result<T>) -> i32 {
    r.err().map_or(0, |e| e.code)
}

#[test]
fn a_configuration_is_completed_with_the_defaults() {
    let mut config = config();
    // One without a term is a forced one.
    assert_eq!((config.term(), config.document().contains_key("term")), (-1, false));
    config.set_term(0);
    let shown = config.document();
    let names: Vec<_> = shown.keys().collect();
    let expected = [
        "_id",
        "version",
        "term",
        "members",
        "protocolVersion",
        "writeConcernMajorityJournalDefault",
        "settings",
    ];
    assert_eq!(names, expected);
    let member = doc! {
        "_id": 0, "host": "h:1", "arbiterOnly": false, "buildIndexes": true, "hidden": false, "priority": 1,
        "tags": {}, "secondaryDelaySecs": 0i64, "votes": 1,
    };
    assert_eq!(shown.get("members"), Some(&Value::Array(vec![Value::from(member)])));
    let bare = SetConfig::parse(&doc! {"_id": "rs", "members": [{"_id": 0, "host": "h"}]}).unwrap();
    assert_eq!(bare.members()[0].host, "h:27017");
}

#[test]
fn what_cannot_be_is_refused() {
    let members = |m: Value| code(SetConfig::parse(&doc! {"_id": "rs", "members": m}));
    assert_eq!(members(document::array![]), 93);
    assert_eq!(members(document::array![{"_id": 0, "host": "a:1", "priority": 0}]), 93);
    assert_eq!(members(document::array![{"_id": 0, "host": "a:1", "arbiterOnly": true}]), 93);
    assert_eq!(members(document::array![{"_id": 0, "host": "a:1", "x": 1}]), 93);
    assert_eq!(members(document::array![{"host": "a:1"}]), 93);
    assert_eq!(
        code(SetConfig::parse(&doc! {"_id": "rs", "members": [{"_id": 0, "host": "a"}], "version": 0})),
        93
    );
}

#[tokio::test]
async fn a_set_is_initiated_once_and_only_where_it_was_asked_for() {
    let alone = node(None);
    assert!(alone.is_writable());
    assert_eq!(code(alone.initiate(config()).await), 76);
    assert_eq!(code(alone.set_status(0, true)), 76);
    let member = node(Some("rs"));
    assert!(!member.is_writable());
    assert_eq!(code(member.set_status(0, true)), 94);
    let other = SetConfig::parse(&SetConfig::default_for("other", "h:1")).unwrap();
    assert_eq!(code(member.initiate(other).await), 93);
    member.initiate(config()).await.unwrap();
    assert!(member.is_writable());
    let again = member.initiate(config()).await.unwrap_err();
    assert_eq!((again.code, again.message.as_str()), (23, "already initialized"));
    let standing = member.replication.standing();
    assert_eq!((standing.state, standing.term), (MemberState::Primary, 1));
}

#[tokio::test]
async fn the_observer_hears_every_state_in_order() {
    struct Heard(Mutex<Vec<&'static str>>);
    impl StandingObserver for Heard {
        fn changed(&self, from: &Standing, to: &Standing) {
            if from.state != to.state {
                self.0.lock().push(to.state.name());
            }
        }
    }
    let member = node(Some("rs"));
    let heard = Arc::new(Heard(Mutex::default()));
    member.replication.observe(heard.clone());
    member.initiate(config()).await.unwrap();
    assert_eq!(*heard.0.lock(), ["STARTUP2", "SECONDARY", "PRIMARY"]);
}

#[tokio::test]
async fn a_step_down_ends_by_itself_in_a_higher_term() {
    let member = node(Some("rs"));
    assert_eq!(code(member.step_down(&Operation::internal(), 1, 0, true).await), 10107);
    member.initiate(config()).await.unwrap();
    assert_eq!(code(member.freeze_elections(5).await), 95);
    member.step_down(&Operation::internal(), 1, 0, true).await.unwrap();
    assert!(!member.is_writable());
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!member.is_writable());
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert!(member.is_writable());
    assert_eq!(member.replication.standing().term, 2);
    assert_eq!(member.log.last_optime().term, 2);
    // A timer of a step-down that was ended early must not hold another election.
    member.step_down(&Operation::internal(), 1, 0, true).await.unwrap();
    member.freeze_elections(0).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1200)).await;
    assert_eq!(member.replication.standing().term, 3);
}

/// In a set of several: the commit point of a later term is beyond the entry, which was rolled back.
#[tokio::test]
async fn what_was_written_in_a_reign_is_acknowledged_in_that_one_alone() {
    let member = node(Some("rs"));
    member.initiate(config()).await.unwrap();
    let client = crate::local::LocalClient::new(member.clone());
    let (wrote, found_done) = (Operation::internal(), Operation::internal());
    found_done.note_reign(member.reigns_ended());
    member.append_note(&wrote, doc! { "msg": "in the first" }).unwrap();
    member.step_down(&Operation::internal(), 1, 0, true).await.unwrap();
    member.replication.commit.set_shared(true);
    let later = member.log.last_optime();
    member.replication.commit.advance(storage::log::OpTime { ts: later.ts + 100, term: later.term + 1 });
    for op in [&wrote, &found_done] {
        assert_eq!(code(member.wait_operation_committed(op).await), 189);
        assert_eq!(code(member.wait_all_committed_for(op).await), 189);
        let members = crate::operation::WriteConcern {
            w: crate::operation::WriteAck::Nodes(2),
            ..crate::operation::WriteConcern::majority()
        };
        assert_eq!(code(member.wait_replicated(op, &members, false).await), 189);
    }
    // Who has only read owes no reign anything.
    member.wait_operation_committed(&Operation::internal()).await.unwrap();
    assert!(client.insert("d.c", &doc! { "_id": 1 }).await.is_err());
}

#[tokio::test]
async fn a_new_configuration_needs_a_higher_version() {
    let member = node(Some("rs"));
    assert_eq!(code(member.reconfigure(config(), SAFE, Duration::from_secs(1)).await), 94);
    member.initiate(config()).await.unwrap();
    assert_eq!(code(member.reconfigure(config(), SAFE, Duration::from_secs(1)).await), 103);
    let mut newer = config();
    newer.set_version(2);
    member.reconfigure(newer, SAFE, Duration::from_secs(1)).await.unwrap();
    assert_eq!(member.set_config().unwrap().get_i64("version"), Some(2));
}

/// Members on both sides of a cut may be told so. Were the versions the same, neither would follow the other.
#[tokio::test]
async fn forced_configurations_differ_in_their_versions() {
    let mut versions = Vec::new();
    for _ in 0..2 {
        let member = node(Some("rs"));
        member.initiate(config()).await.unwrap();
        member.reconfigure(config(), Change::Forced, Duration::from_secs(1)).await.unwrap();
        versions.extend(member.set_config().unwrap().get_i64("version"));
    }
    assert!(versions.iter().all(|version| (10_001..110_001).contains(version)), "{versions:?}");
    assert_ne!(versions[0], versions[1]);
}

#[tokio::test]
async fn a_restarted_member_is_primary_again_in_a_higher_term() {
    let files = MemoryFiles::default();
    let member = open(Some("rs"), &files);
    assert!(!member.resume_set().await.unwrap());
    member.initiate(config()).await.unwrap();
    member.shutdown();
    drop(member);
    let member = open(Some("rs"), &files);
    assert!(member.resume_set().await.unwrap());
    assert_eq!(member.replication.standing().term, 2);
    member.shutdown();
    drop(member);
    assert_eq!(code(open(Some("other"), &files).resume_set().await), 93);
}

#[tokio::test]
async fn status_has_the_fields_that_tools_read() {
    let member = node(Some("rs"));
    member.initiate(config()).await.unwrap();
    let status = member.set_status(7, true).unwrap();
    assert_eq!(status.get_i64("myState"), Some(1));
    let text = |path: &str| status.get_path(path).and_then(|v| v.as_str().map(str::to_string));
    assert_eq!(text("set").as_deref(), Some("rs"));
    let Some(Value::Array(members)) = status.get("members") else { panic!("no members") };
    let m = members[0].as_document().unwrap();
    for field in
        ["_id", "name", "health", "state", "stateStr", "uptime", "optime", "optimeDate", "electionTime"]
    {
        assert!(m.contains_key(field), "{field}");
    }
    assert_eq!((m.get_str("stateStr"), m.get_i64("uptime")), (Some("PRIMARY"), Some(7)));
}

/// Other members as tests need them: at no address is there anybody, unless something else is said here.
trait Members: Send + Sync + 'static {
    fn answer<'a>(&'a self, host: &'a str, _: DocBuf) -> BoxFuture<'a, Result<DocBuf>> {
        Box::pin(async move { bail!(HOST_UNREACHABLE, "{host} is nowhere") })
    }
    fn is_self(&self, _: &str) -> bool {
        false
    }
    fn is_self_elsewhere<'a>(&'a self, _: &'a str) -> BoxFuture<'a, bool> {
        Box::pin(async { false })
    }
    fn has_process(&self, _: &str) -> bool {
        false
    }
    fn note(&self, _: &str, _: Document) {}
}
impl<M: Members> Peers for M {
    fn call<'a>(
        &'a self,
        host: &'a str,
        _: &'a str,
        command: DocBuf,
        _: Duration,
    ) -> BoxFuture<'a, Result<DocBuf>> {
        self.answer(host, command)
    }
    fn stream<'a>(
        &'a self,
        host: &'a str,
        _: &'a str,
        _: DocBuf,
        _: Duration,
    ) -> BoxFuture<'a, Result<Box<dyn Replies>>> {
        Box::pin(async move { bail!(HOST_UNREACHABLE, "{host} is nowhere") })
    }
    fn is_self<'a>(&'a self, host: &'a str) -> BoxFuture<'a, bool> {
        Box::pin(async move { Members::is_self(self, host) })
    }
    fn is_self_elsewhere<'a>(&'a self, host: &'a str) -> BoxFuture<'a, bool> {
        Members::is_self_elsewhere(self, host)
    }
    fn process_at<'a>(&'a self, host: &'a str) -> BoxFuture<'a, Option<document::ObjectId>> {
        Box::pin(async move { self.has_process(host).then_some(document::ObjectId([1; 12])) })
    }
    fn note(&self, text: &str, attributes: Document) {
        Members::note(self, text, attributes);
    }
}

/// Addresses of which one, `own:1`, is this node's, and any other says late that it is not.
struct SlowAddresses {
    asked: tokio::sync::mpsc::UnboundedSender<()>,
    answers: tokio::sync::Semaphore,
}
impl Members for SlowAddresses {
    fn is_self(&self, host: &str) -> bool {
        host == "own:1"
    }
    fn is_self_elsewhere<'a>(&'a self, _: &'a str) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let _ = self.asked.send(());
            let answer = self.answers.acquire().await;
            answer.unwrap().forget();
            false
        })
    }
}

#[tokio::test]
async fn a_member_that_looks_for_itself_can_be_reconfigured_meanwhile() {
    let files = MemoryFiles::default();
    let member = open(Some("rs"), &files);
    member.initiate(config()).await.unwrap();
    member.shutdown();
    drop(member);
    let member = open(Some("rs"), &files);
    let (asked, mut asks) = tokio::sync::mpsc::unbounded_channel();
    // The start has its answer; what looks on afterwards waits for one.
    let answers = tokio::sync::Semaphore::new(1);
    member.replication.reach_by(Arc::new(SlowAddresses { asked, answers }));
    assert!(member.resume_set().await.unwrap());
    assert_eq!(member.replication.standing().me, None);
    for _ in 0..2 {
        asks.recv().await.unwrap();
    }
    let own = SetConfig::parse(&SetConfig::default_for("rs", "own:1")).unwrap();
    member.reconfigure(own, Change::Forced, Duration::from_secs(1)).await.unwrap();
    assert_eq!(member.replication.standing().me, Some(0));
}

/// This node behind an address that is forwarded, which may be cut.
struct Forwarded {
    open: std::sync::atomic::AtomicBool,
}
impl Members for Forwarded {
    fn is_self_elsewhere<'a>(&'a self, host: &'a str) -> BoxFuture<'a, bool> {
        Box::pin(async move { host == "forwarded:1" && self.open.load(Ordering::SeqCst) })
    }
    fn has_process(&self, host: &str) -> bool {
        host != "forwarded:1" || self.open.load(Ordering::SeqCst)
    }
}

/// Every election makes a configuration, also that which a cut has caused.
#[tokio::test]
async fn a_member_that_cannot_be_reached_stays_one() {
    let at = |version: i32, hosts: [&str; 2]| {
        let members = hosts.iter().enumerate().map(|(id, host)| doc! { "_id": (id as i32), "host": *host });
        let members: Vec<Document> = members.collect();
        doc! { "_id": "rs", "version": version, "members": members }
    };
    let member = node(Some("rs"));
    let forwarded = Arc::new(Forwarded { open: true.into() });
    member.replication.reach_by(forwarded.clone());
    let me = || member.replication.standing().me;
    member.follow_config(&at(1, ["other:1", "forwarded:1"])).await.unwrap();
    assert_eq!(me(), Some(1));
    forwarded.open.store(false, Ordering::SeqCst);
    member.follow_config(&at(2, ["forwarded:1", "other:1"])).await.unwrap();
    assert_eq!(me(), Some(0));
    // One in which that address does not stand has removed it.
    member.follow_config(&at(3, ["other:1", "another:1"])).await.unwrap();
    assert_eq!(me(), None);
}

#[tokio::test]
async fn stored_defaults_that_cannot_be_read_are_reported_and_those_before_stay() {
    let member = node(Some("rs"));
    let others = Arc::new(Others::default());
    member.replication.reach_by(others.clone());
    member.initiate(SetConfig::parse(&SetConfig::default_for("rs", "own:1")).unwrap()).await.unwrap();
    member.replication.set_default_read_level(Some(ReadLevel::Majority));
    let stored = doc! {
        "_id": "ReadWriteConcernDefaults", "defaultReadConcern": { "level": "nonsense" }, "defaultWriteConcern": 7,
    };
    LocalClient::new(member.clone()).put("config.settings", &stored).await.unwrap();
    assert_eq!(member.replication.default_read_level(), Some(ReadLevel::Majority));
    let notes = others.notes.lock();
    let fields: Vec<&str> = notes.iter().filter_map(|(_, field)| field.as_deref()).collect();
    assert_eq!(fields, ["defaultReadConcern", "defaultWriteConcern"], "{notes:?}");
}

/// It would count for two of a majority, and hold one copy.
#[tokio::test]
async fn a_node_that_two_addresses_lead_to_is_no_member() {
    let at = |version: i32, hosts: &[&str]| {
        let line = |(i, host): (usize, &&str)| Value::from(doc! { "_id": i as i32, "host": *host });
        let members: Vec<Value> = hosts.iter().enumerate().map(line).collect();
        SetConfig::parse(&doc! { "_id": "rs", "version": version, "members": members }).unwrap()
    };
    let member = node(Some("rs"));
    member.replication.reach_by(Arc::new(Others::default()));
    let twice = ["own:1", "own.alias:1"];
    assert_eq!(code(member.initiate(at(1, &twice)).await), codes::INVALID_REPLICA_SET_CONFIG);
    member.initiate(at(1, &["own:1"])).await.unwrap();
    for how in [SAFE, Change::Forced] {
        let changed = member.reconfigure(at(2, &twice), how, Duration::from_secs(1)).await;
        assert_eq!(code(changed), codes::INVALID_REPLICA_SET_CONFIG);
    }
    assert_eq!(member.replication.standing().me, Some(0));
    // Another member's configuration is in force, whatever it says of this one.
    let mut theirs = at(2, &twice);
    theirs.set_term(member.replication.look(|m| m.term()));
    member.follow_config(&theirs.document()).await.unwrap();
    assert_eq!(member.replication.standing().me, None);
    let beat = HeartbeatRequest { set: "rs".to_string(), from_id: 7, ..HeartbeatRequest::default() };
    assert_eq!(code(member.answer_heartbeat(&beat).await), codes::INVALID_REPLICA_SET_CONFIG);
}

#[tokio::test]
async fn without_its_set_an_interrupted_copy_stays_with_what_was_written_since() {
    let files = MemoryFiles::default();
    let interval = std::time::Duration::from_millis(100);
    let synced =
        |set| testing::open(set, &files, |log| log.sync = storage::log::SyncPolicy::Group { interval });
    let member = synced(Some("rs"));
    member.initiate(config()).await.unwrap();
    member.replication.state.change(|kept| kept.copying = true).unwrap();
    let before = member.log.appended();
    member.log.wait_durable_blocking(before).unwrap();
    drop(member);
    let alone = synced(None);
    assert!(alone.is_detached);
    assert!(alone.log.appended() >= before, "the directory was emptied");
    drop(alone);
    assert!(!synced(Some("rs")).is_detached);
}

/// Members that vote for the node, have its configuration, and have every entry that it has when they are asked.
struct Others {
    node: OnceLock<Weak<Node>>,
    /// Hosts where no member answers, and where an empty one does.
    silent: Mutex<Vec<&'static str>>,
    empty: Mutex<Vec<&'static str>>,
    /// A host that answers when it is let.
    slow: tokio::sync::Semaphore,
    slow_asked: Notify,
    /// The newest entry of one that opens a copy, and is gone then.
    newest: Option<OpTime>,
    /// What was noted, with the fields that it was about.
    notes: Mutex<Vec<(String, Option<String>)>>,
}
const SLOW: &str = "slow:1";

impl Default for Others {
    fn default() -> Self {
        Others {
            node: OnceLock::new(),
            silent: Mutex::default(),
            empty: Mutex::default(),
            slow: tokio::sync::Semaphore::new(0),
            slow_asked: Notify::new(),
            newest: None,
            notes: Mutex::default(),
        }
    }
}

impl Others {
    fn reply(&self, host: &str, command: Doc<'_>) -> Option<Document> {
        if command.get("_replSetCopyOpen").is_some() {
            let entry = doc! {
                "op": "n", "ns": "", "o": { "msg": "newest" }, "ts": Timestamp::from_u64(self.newest?.ts), "t": self.newest?.term,
                "v": 2i64, "wall": Value::DateTime(1),
            };
            return Some(doc! { "copy": 1i64, "entry": entry });
        }
        if command.get("_replSetCopyNext").is_some() {
            let bytes = Value::Binary(document::Binary { subtype: 0, bytes: Vec::new() });
            return Some(doc! { "bytes": bytes, "done": true });
        }
        let node = self.node.get()?.upgrade()?;
        let term = node.replication.look(|m| m.term());
        if command.get("replSetRequestVotes").is_some() {
            return Some(doc! { "term": term, "voteGranted": true });
        }
        command.get("replSetHeartbeat")?;
        if self.empty.lock().contains(&host) {
            return Some(doc! { "state": 0, "v": -2, "set": "", "term": -1i64 });
        }
        let last = super::driver::optime_document(known(node.log.last_optime()));
        let number = |name: &str| command.get_i64(name).unwrap_or(-1);
        Some(doc! {
            "state": 2, "v": number("configVersion"), "configTerm": number("configTerm"), "set": "rs", "term": term,
            "opTime": last.clone(), "durableOpTime": last,
        })
    }
}

impl Members for Others {
    fn answer<'a>(&'a self, host: &'a str, command: DocBuf) -> BoxFuture<'a, Result<DocBuf>> {
        Box::pin(async move {
            if host == SLOW {
                self.slow_asked.notify_one();
                self.slow.acquire().await.unwrap().forget();
            }
            let reply = self.reply(host, command.doc()).filter(|_| !self.silent.lock().contains(&host));
            reply.map(|d| d.to_doc_buf()).ok_or_else(|| err!(HOST_UNREACHABLE, "{host} is nowhere"))
        })
    }
    fn is_self(&self, host: &str) -> bool {
        host == "own:1" || host == "own.alias:1"
    }
    fn note(&self, text: &str, attributes: Document) {
        self.notes.lock().push((text.to_string(), attributes.get_str("field").map(str::to_string)));
    }
}

/// Its log is gone, as after a start in the midst of a copy; only the floor says what it had. Terms come before times.
#[tokio::test]
async fn nothing_is_copied_from_a_source_that_lacks_what_this_member_had() {
    let had = OpTime { ts: 100, term: 2 };
    for (source, refused) in [((90, 2), true), ((150, 1), true), ((100, 2), false), ((50, 3), false)] {
        let member = node(Some("rs"));
        member.replication.state.change(|kept| kept.floor = known(had)).unwrap();
        let source = OpTime { ts: source.0, term: source.1 };
        member.replication.reach_by(Arc::new(Others { newest: Some(source), ..Others::default() }));
        let outcome = code(member.copy_from("b:1").await);
        assert_eq!(outcome == document::codes::INVALID_SYNC_SOURCE, refused, "{source:?}: {outcome}");
    }
}

/// The other member is `source`, of which is noted how long its replies are.
struct Copied {
    source: Arc<Node>,
    longest: AtomicUsize,
}

impl Members for Copied {
    fn answer<'a>(&'a self, _: &'a str, command: DocBuf) -> BoxFuture<'a, Result<DocBuf>> {
        Box::pin(async move {
            let command = command.doc();
            let number = |name: &str| command.get_i64(name);
            let reply = match (number("_replSetCopyNext"), number("describe"), number("index")) {
                (None, ..) => self.source.open_copy()?,
                (Some(id), Some(offset), _) => self.source.description_of_copy(id, offset as usize)?,
                (Some(id), None, Some(index)) => {
                    self.source.next_of_copy(id, index as usize, number("after").unwrap())?
                }
                (Some(id), None, None) => {
                    self.source.end_copy(id);
                    Document::new()
                }
            };
            let reply = reply.to_doc_buf();
            self.longest.fetch_max(reply.bytes().len(), Ordering::Relaxed);
            Ok(reply)
        })
    }
}

/// A dozen clients that have inserted a hundred thousand documents each leave more statements than a message holds.
#[tokio::test]
async fn what_there_is_to_copy_may_be_longer_than_a_message() {
    let source = node(Some("rs"));
    source.initiate(config()).await.unwrap();
    LocalClient::new(source.clone()).put("d.c", &doc! { "_id": 1 }).await.unwrap();
    let at = source.log.last_optime();
    let at = protocol::session::EntryTime { ts: at.ts, term: at.term };
    let statements: Vec<i32> = (0..120_000).collect();
    for n in 0..2 {
        let id = crate::operation::SessionId { id: [n; 16], uid: [0; 32], child: None };
        source.sessions.apply(id, 1, &statements, at, source.now_ms());
    }
    let image = source.sessions.image();
    assert!(image.clone().to_doc_buf().bytes().len() > 8 << 20);
    let copied = Arc::new(Copied { source, longest: AtomicUsize::new(0) });
    let member = node(Some("rs"));
    member.replication.reach_by(copied.clone());
    member.copy_from("b:1").await.unwrap();
    assert!(copied.longest.load(Ordering::Relaxed) < 5 << 20);
    let sorted = |d: Document| {
        let mut sessions = d.get_array("sessions").unwrap().clone();
        sessions.sort_by_key(|s| format!("{s:?}"));
        sessions
    };
    assert!(sorted(member.sessions.image()) == sorted(image));
    let slot = member.namespaces.slot("d.c");
    assert_eq!(slot.read_unchecked().collection.as_ref().map(|c| c.len()), Some(1));
}

/// Counts what it is told.
#[derive(Default)]
struct Told(Mutex<Vec<(char, i64)>>);

impl crate::observer::WriteObserver for Told {
    fn inserted(&self, _: &str, d: Doc<'_>) {
        self.0.lock().push(('i', d.get_i64("x").unwrap()));
    }
    fn updated(&self, _: &str, d: Doc<'_>) {
        self.0.lock().push(('u', d.get_i64("x").unwrap()));
    }
    fn deleted(&self, _: &str, _: Doc<'_>) {
        self.0.lock().push(('d', 0));
    }
}

/// Users and roles are changed together, in one entry.
#[tokio::test]
async fn a_member_tells_its_observers_of_each_write_of_a_batch() {
    let member = node(Some("rs"));
    let told = Arc::new(Told::default());
    member.observers.add("d.c", told.clone());
    let ui = || Value::uuid([7; 16]);
    let entries = [
        doc! { "op": "c", "ns": "d.$cmd", "ui": ui(), "o": { "create": "c" } },
        doc! { "op": "i", "ns": "d.c", "ui": ui(), "o": { "_id": 1, "x": 1 } },
        doc! { "op": "c", "ns": "admin.$cmd", "o": { "applyOps": [
            { "op": "i", "ns": "d.c", "ui": ui(), "o": { "_id": 2, "x": 2 } },
            { "op": "u", "ns": "d.c", "ui": ui(), "o": { "_id": 1, "x": 3 }, "o2": { "_id": 1 } },
        ] } },
        doc! { "op": "c", "ns": "admin.$cmd", "o": { "applyOps": [
            { "op": "d", "ns": "d.c", "ui": ui(), "o": { "_id": 2 } },
        ] } },
    ];
    let fetched = entries.into_iter().enumerate().map(|(at, mut entry)| {
        entry.0.extend(doc! { "ts": Timestamp::from_u64(1 << 32 | at as u64), "t": 1i64, "v": 2i64, "wall": Value::DateTime(1) }.0);
        apply::Fetched::read(entry.to_doc_buf().doc()).unwrap()
    });
    member.apply_entries(&fetched.collect::<Vec<_>>()).unwrap();
    assert_eq!(*told.0.lock(), [('i', 1), ('i', 2), ('u', 3), ('d', 0)]);
}

fn of_hosts(version: i32, hosts: &[&str]) -> SetConfig {
    of_members(version, hosts.iter().copied().enumerate())
}
fn of_members<'a>(version: i32, members: impl IntoIterator<Item = (usize, &'a str)>) -> SetConfig {
    let line = |(id, host)| Value::from(doc! { "_id": id as i32, "host": host });
    let members = Value::Array(members.into_iter().map(line).collect());
    let settings = doc! { "heartbeatIntervalMillis": 20 };
    SetConfig::parse(&doc! { "_id": "rs", "version": version, "members": members, "settings": settings })
        .unwrap()
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..1000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what}");
}

/// The primary of a set of three.
async fn primary_of_three() -> (Arc<Node>, Arc<Others>) {
    let (member, others) = (node(Some("rs")), Arc::new(Others::default()));
    others.node.set(Arc::downgrade(&member)).unwrap();
    member.replication.reach_by(others.clone());
    member.initiate(of_hosts(1, &["own:1", "b:1", "c:1"])).await.unwrap();
    until("no primary", || member.is_writable()).await;
    (member, others)
}
const PATIENCE: Duration = Duration::from_secs(10);

#[tokio::test]
async fn voters_that_move_together_leave_no_majority_of_one() {
    let (member, others) = primary_of_three().await;
    let moved = || of_hosts(2, &["own:1", "b:2", "c:2"]);
    *others.silent.lock() = vec!["b:2", "c:2"];
    assert_eq!(code(member.reconfigure(moved(), SAFE, PATIENCE).await), 103);
    others.silent.lock().clear();
    member.reconfigure(moved(), SAFE, PATIENCE).await.unwrap();
    member.wait_all_committed().await.unwrap();
    *others.silent.lock() = vec!["b:2", "c:2"];
    member.append_noop(doc! { "msg": "alone" }).unwrap();
    let committed = tokio::time::timeout(Duration::from_millis(300), member.wait_all_committed()).await;
    assert!(committed.is_err(), "it was committed by one of three: {committed:?}");
}

/// Its answer was on its way when another configuration came, in which another member stands in its place.
#[tokio::test]
async fn a_position_counts_for_the_member_that_told_it() {
    let (member, others) = primary_of_three().await;
    member.reconfigure(of_members(2, [(0, "own:1"), (2, "c:1")]), SAFE, PATIENCE).await.unwrap();
    others.silent.lock().push("c:1");
    member.append_noop(doc! { "msg": "the other lacks this" }).unwrap();
    let (term, last) = (member.replication.look(|m| m.term()), member.last_known());
    let position = super::driver::optime_document(last);
    let late = doc! {
        "state": 2, "v": 1, "configTerm": term, "set": "rs", "term": term, "opTime": position.clone(),
        "durableOpTime": position,
    };
    member.heard("b:1", late.to_doc_buf().doc(), 0, Duration::ZERO).await.unwrap();
    assert!(known(member.committed()) < last, "a member that is none any more has been counted");
    // The others in a report that names one that was removed are counted.
    let report = [(2, last, last, (0, 0)), (1, last, last, (0, 0))];
    assert_eq!(code(member.take_positions(&report).await), codes::NODE_NOT_FOUND);
    assert_eq!(known(member.committed()), last);
}

#[tokio::test]
async fn a_voter_that_moves_to_an_empty_host_waits_for_its_data() {
    let (member, others) = primary_of_three().await;
    others.empty.lock().push("c:2");
    member.reconfigure(of_hosts(2, &["own:1", "b:1", "c:2"]), SAFE, PATIENCE).await.unwrap();
    let voters = || member.replication.look(|m| m.config().map_or(0, |c| c.voters().count()));
    assert_eq!(voters(), 2);
    others.empty.lock().clear();
    until("it was not admitted", || voters() == 3).await;
}

#[tokio::test]
async fn a_reconfiguration_ends_with_its_reign() {
    let (member, others) = primary_of_three().await;
    let changed = of_hosts(2, &["own:1", "b:1", "c:1", SLOW]);
    let changing = runtime::spawn({
        let member = member.clone();
        async move { member.reconfigure(changed, SAFE, PATIENCE).await }
    });
    others.slow_asked.notified().await;
    let term = member.replication.look(|m| m.term());
    member.see_term(term + 5).await.unwrap();
    member.step_up(true).await.unwrap();
    others.slow.add_permits(1000);
    assert_eq!(code(changing.await.unwrap()), codes::PRIMARY_STEPPED_DOWN);
    let config = member.replication.standing().config.clone().unwrap();
    assert_eq!((config.version(), config.term()), (1, member.replication.look(|m| m.term())));
}

/// It was asked for before a reign of this member's own, and answered afterwards by the leader of the next.
#[tokio::test]
async fn what_was_asked_for_before_a_reign_is_not_taken_after_it() {
    let (member, _others) = primary_of_three().await;
    let asked = member.last_known();
    member.append_noop(doc! { "msg": "of this reign, and of no other log" }).unwrap();
    let own = member.last_known();
    let term = own.term + 1;
    member.see_term(term).await.unwrap();
    let newer = Timestamp::from_u64(own.ts + (1 << 32));
    let entry = doc! {
        "op": "n", "ns": "", "o": { "msg": "of the next" }, "ts": newer, "t": term, "v": 2i64, "wall": Value::DateTime(1),
    };
    let entries = [super::apply::Fetched::read(entry.to_doc_buf().doc()).unwrap()];
    let taken = member.take_batch(asked, &entries).await.unwrap();
    assert!(matches!(taken, super::fetch::Taken::Overtaken));
    assert_eq!(member.last_known(), own);
    drop(member.positions());
    let said = doc! { "$oplogQueryData": { "term": term, "lastOpCommitted": { "ts": newer, "t": term } } };
    member.take_metadata(said.to_doc_buf().doc(), asked).await.unwrap();
    assert!(known(member.committed()) <= asked, "{:?}", member.committed());
    assert!(matches!(member.take_batch(own, &entries).await.unwrap(), super::fetch::Taken::All));
}

/// Its answer may be from before what the others are to be asked about: who leads, or how far they are.
#[tokio::test]
async fn a_member_is_asked_again_for_what_came_while_it_was_asked() {
    let (member, others) = (node(Some("rs")), Arc::new(Others::default()));
    others.node.set(Arc::downgrade(&member)).unwrap();
    member.replication.reach_by(others.clone());
    others.slow.add_permits(1000);
    let members = document::array![{"_id": 0, "host": "own:1"}, {"_id": 1, "host": SLOW}];
    // Nobody is asked in turn.
    let settings = doc! { "heartbeatIntervalMillis": 3_600_000, "electionTimeoutMillis": 3_600_000 };
    let config = doc! { "_id": "rs", "version": 1, "members": members, "settings": settings };
    member.initiate(SetConfig::parse(&config).unwrap()).await.unwrap();
    until("no primary", || member.is_writable()).await;
    let quiet = Duration::from_millis(200);
    while tokio::time::timeout(quiet, others.slow_asked.notified()).await.is_ok() {}
    others.slow.forget_permits(1000);
    member.replication.ask_members_now();
    others.slow_asked.notified().await;
    member.replication.ask_members_now();
    others.slow.add_permits(1);
    let again = tokio::time::timeout(PATIENCE, others.slow_asked.notified()).await;
    assert!(again.is_ok(), "it is not asked again");
}

/// Its id has been given to another, which is down: the primary would stay one, and take writes that nobody else gets.
#[tokio::test]
async fn a_member_that_was_removed_keeps_nobody_in_office() {
    let (member, others) = primary_of_three().await;
    let (heard, term) = (|| member.replication.peer(1).unwrap().heard, member.replication.look(|m| m.term()));
    *others.silent.lock() = vec!["b:1", "c:1"];
    let beat = |from: &str| HeartbeatRequest {
        set: "rs".to_string(),
        config_version: 1,
        config_term: term,
        from: from.to_string(),
        from_id: 1,
        term: if from == "b:1" { term } else { term + 1 },
        check_empty: false,
    };
    // What was answered before the others fell silent may still come.
    tokio::time::sleep(Duration::from_millis(50)).await;
    let before = heard();
    member.answer_heartbeat(&beat("removed:1")).await.unwrap();
    assert_eq!((heard(), member.replication.look(|m| m.term())), (before, term));
    member.answer_heartbeat(&beat("b:1")).await.unwrap();
    assert!(heard() > before);
}

/// A leader counts positions that are told in its term. Those of entries that came after a vote for its successor are told in that
/// one's, and what was told is there when the next candidate is compared with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_position_is_told_in_the_term_in_which_it_was_reached() {
    const TERMS: i64 = 60_000;
    let (member, _others) = primary_of_three().await;
    let first = member.replication.look(|m| m.term()) + 1;
    member.see_term(first).await.unwrap();
    member.freeze_elections(3600).await.unwrap();
    // Entry n is appended when the term is first + n, after a vote in it.
    let base = member.log.last_optime().ts + (1 << 32);
    let voter = std::thread::spawn({
        let member = member.clone();
        move || {
            for n in 0..TERMS {
                member.replication.with(|m, now, offset| m.see_term(first + n, now, offset));
                let at = OpTime { ts: base + n as u64, term: first };
                let payload = doc! { "op": "n", "ns": "", "o": { "msg": "late" } }.to_doc_buf();
                member.log.append_at(storage::log::Class::Oplog, at, 1, &[payload.bytes()]);
            }
        }
    });
    let tellers = [(), ()].map(|()| {
        let member = member.clone();
        std::thread::spawn(move || {
            while member.log.last_optime().ts < base + TERMS as u64 - 1 {
                member.positions();
            }
        })
    });
    let request = HeartbeatRequest { set: "rs".to_string(), from_id: -1, ..HeartbeatRequest::default() };
    while !voter.is_finished() {
        let reply = member.answer_heartbeat(&request).await.unwrap();
        let told = reply.get_document("opTime").and_then(|d| d.get("ts")).cloned();
        let Some(Value::Timestamp(told)) = told else { panic!("{reply:?}") };
        let term = reply.get_i64("term").unwrap();
        let reached_in = first + told.as_u64().saturating_sub(base) as i64;
        assert!(term >= reached_in, "in term {term} a position was told that was reached in {reached_in}");
        for _ in 0..64 {
            let known = member.replication.look(|m| m.applied()).ts;
            assert!(known >= told.as_u64(), "{told:?} was told, and a vote goes by {known}");
        }
    }
    voter.join().unwrap();
    tellers.into_iter().for_each(|teller| teller.join().unwrap());
}

#[tokio::test]
async fn a_step_down_that_is_dropped_opens_writes_again() {
    let (member, others) = primary_of_three().await;
    *others.silent.lock() = vec!["b:1", "c:1"];
    member.append_noop(doc! { "msg": "others lack this" }).unwrap();
    let op = Operation::internal();
    let waiting = tokio::time::timeout(Duration::from_millis(100), member.step_down(&op, 60, 30, false));
    assert!(waiting.await.is_err());
    assert!(member.is_writable());
    member.append_noop(doc! { "msg": "goes on" }).unwrap();
}

#[tokio::test]
async fn a_step_down_and_a_freeze_may_have_no_end() {
    let member = node(Some("rs"));
    member.initiate(config()).await.unwrap();
    member.step_down(&Operation::internal(), u64::MAX, 0, true).await.unwrap();
    member.freeze_elections(u64::MAX).await.unwrap();
    assert!(!member.replication.look(|m| m.is_leader()));
    member.freeze_elections(0).await.unwrap();
    assert!(member.is_writable());
}

/// Two requests are answered at once, and the earlier vote comes to the file last: after a crash only the file says in which terms
/// this member has voted.
#[tokio::test]
async fn a_vote_does_not_take_the_place_of_one_of_a_later_term() {
    let member = node(Some("rs"));
    let vote = |term| protocol::replication::member::Vote { term, candidate: 1 };
    for term in [3, 6, 5] {
        member.store_vote(vote(term)).unwrap();
    }
    assert_eq!(member.replication.state.get().vote, Some(vote(6)));
}

#[tokio::test]
async fn writes_open_only_in_the_reign_that_opens_them() {
    let member = node(Some("rs"));
    member.initiate(config()).await.unwrap();
    member.close_writes();
    assert!(!member.open_writes(0));
    assert_eq!(code(member.append_noop(doc! { "msg": "of a reign that is over" })), 10107);
    assert!(member.open_writes(1));
    member.append_noop(doc! { "msg": "of this one" }).unwrap();
}

/// A reign that could not begin is soon followed by another.
fn quick_config() -> SetConfig {
    let mut quick = config().document();
    quick.insert("settings", doc! { "electionTimeoutMillis": 500 });
    SetConfig::parse(&quick).unwrap()
}

#[tokio::test]
async fn a_reign_that_cannot_begin_ends_and_another_follows() {
    let member = node(Some("rs"));
    member.initiate(quick_config()).await.unwrap();
    let failing = Arc::new(AtomicBool::new(false));
    let fails = failing.clone();
    let service = PrimaryService {
        recover: Arc::new(move || {
            let fails = fails.swap(false, Ordering::SeqCst);
            Box::pin(async move {
                match fails {
                    true => bail!(INTERNAL_ERROR, "what an earlier reign left is damaged"),
                    false => Ok(()),
                }
            })
        }),
        ..PrimaryService::task("fails once", std::future::pending::<()>)
    };
    member.replication.services.register(service).await.unwrap();
    failing.store(true, Ordering::SeqCst);
    member.step_down(&Operation::internal(), 1, 0, true).await.unwrap();
    until("no primary after a reign that did not begin", || member.is_writable()).await;
    assert_eq!(member.replication.look(|m| m.term()), 3);
    member.append_noop(doc! { "msg": "of the third reign" }).unwrap();
}

/// Tasks that perform what the machine has decided may overtake one another.
#[tokio::test]
async fn an_end_that_comes_late_leaves_no_primary_without_writes() {
    let member = node(Some("rs"));
    member.initiate(quick_config()).await.unwrap();
    member.stepped_down().await;
    until("no primary after a late end", || member.is_writable()).await;
    assert_eq!(member.replication.look(|m| m.term()), 2);
    member.append_noop(doc! { "msg": "of the second reign" }).unwrap();
    // One that comes while services recover.
    let cuts = Arc::new(AtomicBool::new(false));
    let (cut, cut_off) = (cuts.clone(), Arc::downgrade(&member));
    let service = PrimaryService {
        recover: Arc::new(move || {
            let ended = cut_off.upgrade().filter(|_| cut.swap(false, Ordering::SeqCst));
            Box::pin(async move {
                if let Some(node) = ended {
                    runtime::spawn(async move { node.replication.services.stop().await });
                    std::future::pending::<()>().await;
                }
                Ok(())
            })
        }),
        ..PrimaryService::task("recovers", std::future::pending::<()>)
    };
    member.replication.services.register(service).await.unwrap();
    cuts.store(true, Ordering::SeqCst);
    member.step_down(&Operation::internal(), 1, 0, true).await.unwrap();
    let leads = || member.is_writable() && member.replication.look(|m| m.term()) == 4;
    until("no primary after a reign that was cut off", leads).await;
}

#[tokio::test]
async fn a_default_write_concern_that_cannot_be_read_is_passed_over() {
    let files = MemoryFiles::default();
    let member = open(Some("rs"), &files);
    member.initiate(config()).await.unwrap();
    let defaults = doc! { "_id": "ReadWriteConcernDefaults", "defaultWriteConcern": { "w": 51 } };
    LocalClient::new(member.clone()).put("config.settings", &defaults).await.unwrap();
    member.step_down(&Operation::internal(), 1, 0, true).await.unwrap();
    until("no primary with such defaults", || member.is_writable()).await;
    member.shutdown();
    drop(member);
    let member = open(Some("rs"), &files);
    assert!(member.resume_set().await.unwrap());
    assert!(member.is_writable());
}

#[tokio::test]
async fn a_panic_ends_a_reign_and_not_the_elections() {
    let member = node(Some("rs"));
    member.initiate(config()).await.unwrap();
    member.outliving_panics(async { panic!("a test wants it") }).await;
    member.wake_lonely();
    let leads_again = async {
        while !(member.is_writable() && member.replication.standing().term == 2) {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), leads_again).await.expect("it leads again");
}

/// Views come and go with the entries that define them, for snapshots too, and keep their collation beside other entries.
#[tokio::test]
async fn views_of_a_member_are_those_of_its_definitions() {
    let follower = node(Some("rs"));
    let french = document::Collation::of_document(&doc! { "locale": "fr" }).unwrap();
    let apply = |ts: u64, mut entry: Document| {
        let mut shown = doc! { "ts": Timestamp::from_u64(ts), "t": 1i64, "v": 2i64 };
        shown.0.append(&mut entry.0);
        follower.apply_entries(&[super::apply::Fetched::read(shown.to_doc_buf().doc()).unwrap()]).unwrap();
    };
    let uuid = Value::uuid([7; 16]);
    let on = |slot: &crate::namespace::Slot| slot.read_unchecked().view.as_ref().map(|v| v.on.clone());
    let definition = |on: &str| {
        let view = doc! { "_id": "d.v", "viewOn": on, "pipeline": document::array![], "collation": { "locale": "fr" } };
        Value::from(view)
    };
    let slot = follower.namespaces.slot("d.v");
    apply(1 << 32, doc! { "op": "c", "ns": "d.$cmd", "ui": uuid.clone(), "o": { "create": "system.views" } });
    let before = follower.snapshot(&Operation::internal()).await.unwrap();
    let key = doc! { "_id": "d.v" };
    apply(
        2 << 32,
        doc! { "op": "i", "ns": "d.system.views", "ui": uuid.clone(), "o": definition("a"), "o2": key.clone() },
    );
    assert_eq!(on(&slot), Some("a".to_string()));
    assert!(before.read(&slot, &slot.read_unchecked()).view.is_none());
    let between = follower.snapshot(&Operation::internal()).await.unwrap();
    apply(3 << 32, doc! { "op": "u", "ns": "d.system.views", "ui": uuid, "o": definition("b"), "o2": key });
    assert_eq!(on(&slot), Some("b".to_string()));
    let then = between.read(&slot, &slot.read_unchecked()).view.unwrap();
    assert_eq!(then.on, "a");
    let other = doc! { "_id": "d.w", "viewOn": "c", "pipeline": document::array![] };
    let insert = doc! { "op": "i", "ns": "d.system.views", "ui": Value::uuid([7; 16]), "o": other };
    apply(4 << 32, doc! { "op": "c", "ns": "admin.$cmd", "o": { "applyOps": [insert] } });
    assert_eq!(on(&follower.namespaces.slot("d.w")), Some("c".to_string()));
    // One that may concern any namespace takes all collections out of their slots and puts them back.
    apply(5 << 32, doc! { "op": "c", "ns": "admin.$cmd", "o": { "abortTransaction": 1 } });
    assert_eq!(slot.collation(), french);
}
