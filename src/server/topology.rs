//! What this node tells clients about the deployment: its membership, and the version that wakes waiting `hello`s.
//!
//! The replication of the node publishes a new [`Membership`] at each change; the counter then rises and every
//! awaitable hello answers at once.

use arc_swap::ArcSwap;
use document::{Document, ObjectId, Result, Timestamp, Value, doc, err};
use protocol::replication::horizons;
use runtime::Instant;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::watch;

/// `{processId, counter}`. The process id is chosen at start, so clients notice a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopologyVersion {
    pub process_id: ObjectId,
    pub counter: i64,
}

impl TopologyVersion {
    pub fn to_document(self) -> Document {
        doc! { "processId": self.process_id, "counter": self.counter }
    }
}

/// Where the node stands. There is one for each node, so its size does not matter.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, PartialEq)]
pub enum Membership {
    Standalone,
    Router,
    /// Started with --replSet and not yet initiated.
    Uninitiated,
    /// In a set whose configuration does not name this node any more.
    Removed {
        set_name: String,
    },
    Member(Member),
}

/// A member's view of its set, as `hello` shows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Member {
    pub set_name: String,
    pub set_version: i64,
    pub hosts: Vec<String>,
    pub passives: Vec<String>,
    pub arbiters: Vec<String>,
    pub me: String,
    pub primary: Option<String>,
    pub is_primary: bool,
    pub is_secondary: bool,
    pub arbiter_only: bool,
    pub passive: bool,
    pub hidden: bool,
    pub delay_secs: i64,
    pub without_indexes: bool,
    pub tags: Option<Document>,
    /// What the horizons of the set make of the members' addresses.
    pub horizons: Vec<Horizon>,
    pub term: i64,
    /// Made from the term; only a primary shows it.
    pub election_id: Option<ObjectId>,
}

/// One horizon: the addresses that its clients are shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Horizon {
    /// This member's own.
    pub me: String,
    /// By the addresses of the configuration.
    pub addresses: BTreeMap<String, String>,
}

/// 7fffffff and the term: the form in which drivers compare elections.
pub fn election_id(term: i64) -> ObjectId {
    let mut bytes = [0; 12];
    bytes[..4].copy_from_slice(&[0x7f, 0xff, 0xff, 0xff]);
    bytes[4..].copy_from_slice(&term.to_be_bytes());
    ObjectId(bytes)
}

#[derive(Clone, Debug)]
pub struct State {
    pub version: TopologyVersion,
    pub membership: Arc<Membership>,
    /// Shutting down: hello answers at once with an error, which says that the node serves until then.
    pub quiescing: Option<Instant>,
}

impl State {
    /// The error of a hello to a node that goes.
    ///
    /// # Errors
    /// ShutdownInProgress (91), with the version by which clients that wait hear of it.
    pub fn check_stays(&self) -> Result<()> {
        let Some(until) = self.quiescing else { return Ok(()) };
        let remaining = until.saturating_duration_since(Instant::now());
        let info = doc! {
            "remainingQuiesceTimeMillis": remaining.as_millis() as i64, "topologyVersion": self.version.to_document(),
        };
        Err(err!(SHUTDOWN_IN_PROGRESS, "The server is in quiesce mode and will shut down").with_info(info))
    }
}

/// The published state.
pub struct Topology {
    state: watch::Sender<State>,
    /// The state's, to be read without its lock: every request asks.
    membership: ArcSwap<Membership>,
    /// Beside the state, because every reply asks.
    times_shown: AtomicBool,
}

impl Topology {
    pub fn new(process_id: ObjectId, membership: Membership) -> Topology {
        let version = TopologyVersion { process_id, counter: 0 };
        let times_shown = AtomicBool::new(membership.shows_times());
        let state = State { version, membership: Arc::new(membership), quiescing: None };
        let membership = ArcSwap::new(state.membership.clone());
        Topology { state: watch::Sender::new(state), membership, times_shown }
    }
    /// Whether replies carry `$clusterTime` and `operationTime`: on routers and members of an initiated set.
    pub fn times_shown(&self) -> bool {
        self.times_shown.load(Ordering::Relaxed)
    }
    pub fn state(&self) -> State {
        self.state.borrow().clone()
    }
    pub fn version(&self) -> TopologyVersion {
        self.state.borrow().version
    }
    pub fn membership(&self) -> arc_swap::Guard<Arc<Membership>> {
        self.membership.load()
    }
    pub fn subscribe(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }
    /// Replaces the membership; if it differs the counter rises and waiting hellos answer.
    pub fn publish(&self, membership: Membership) {
        self.times_shown.store(membership.shows_times(), Ordering::Relaxed);
        self.state.send_if_modified(|state| {
            if *state.membership == membership {
                return false;
            }
            state.membership = Arc::new(membership);
            self.membership.store(state.membership.clone());
            state.version.counter += 1;
            true
        });
    }
    /// The node goes: clients are told to leave, and served until then.
    pub fn quiesce(&self, until: Instant) {
        self.state.send_modify(|state| {
            state.quiescing = Some(until);
            state.version.counter += 1;
        });
    }
}

impl Membership {
    /// The fields of `hello` that depend on the membership. `legacy` names the primary flag `ismaster`; `server_name` is what
    /// the client has asked for over TLS.
    pub fn hello_fields(&self, legacy: bool, server_name: Option<&str>) -> Document {
        let flag = if legacy { "ismaster" } else { "isWritablePrimary" };
        let mut d = Document::new();
        match self {
            Membership::Standalone => d.push(flag, true),
            Membership::Router => {
                d.push(flag, true);
                d.push("msg", "isdbgrid");
            }
            Membership::Uninitiated => {
                d.push(flag, false);
                d.push("secondary", false);
                d.push("info", "Does not have a valid replica set config");
                d.push("isreplicaset", true);
            }
            Membership::Removed { set_name } => {
                d.push(flag, false);
                d.push("secondary", false);
                d.push("info", "Does not have a valid replica set config");
                d.push("isreplicaset", true);
                d.push("setName", set_name.as_str());
            }
            Membership::Member(member) => member.seen_by(server_name).hello_fields(flag, &mut d),
        }
        d
    }
    fn shows_times(&self) -> bool {
        matches!(self, Membership::Router | Membership::Member(_))
    }
    pub fn is_writable(&self) -> bool {
        match self {
            Membership::Standalone | Membership::Router => true,
            Membership::Uninitiated | Membership::Removed { .. } => false,
            Membership::Member(member) => member.is_primary,
        }
    }
}

impl Member {
    /// The member as a client sees it that has asked for this server name.
    fn seen_by(&self, server_name: Option<&str>) -> Cow<'_, Member> {
        let asked = |h: &&Horizon| server_name.is_some_and(|name| horizons::names(&h.me, name));
        let Some(horizon) = self.horizons.iter().find(asked) else { return Cow::Borrowed(self) };
        let shown = |host: &String| horizon.addresses.get(host).unwrap_or(host).clone();
        Cow::Owned(Member {
            hosts: self.hosts.iter().map(shown).collect(),
            passives: self.passives.iter().map(shown).collect(),
            arbiters: self.arbiters.iter().map(shown).collect(),
            me: shown(&self.me),
            primary: self.primary.as_ref().map(shown),
            ..self.clone()
        })
    }
    fn hello_fields(&self, flag: &str, d: &mut Document) {
        let list = |hosts: &[String]| Value::from(hosts.to_vec());
        for (name, hosts) in
            [("hosts", &self.hosts), ("passives", &self.passives), ("arbiters", &self.arbiters)]
        {
            if !hosts.is_empty() {
                d.push(name, list(hosts));
            }
        }
        d.push("setName", self.set_name.as_str());
        d.push("setVersion", i32::try_from(self.set_version).unwrap_or(i32::MAX));
        d.push(flag, self.is_primary);
        d.push("secondary", self.is_secondary);
        if let Some(primary) = &self.primary {
            d.push("primary", primary.as_str());
        }
        for (name, on) in
            [("arbiterOnly", self.arbiter_only), ("passive", self.passive), ("hidden", self.hidden)]
        {
            if on {
                d.push(name, true);
            }
        }
        if self.delay_secs > 0 {
            d.push("secondaryDelaySecs", self.delay_secs);
        }
        if self.without_indexes {
            d.push("buildIndexes", false);
        }
        if let Some(tags) = self.tags.as_ref().filter(|t| !t.is_empty()) {
            d.push("tags", tags);
        }
        d.push("me", self.me.as_str());
        if let Some(id) = self.election_id.filter(|_| self.is_primary) {
            d.push("electionId", id);
        }
    }
}

/// The positions that `lastWrite` of hello shows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LastWrite {
    pub op_time: Timestamp,
    pub term: i64,
    pub majority: Timestamp,
    pub majority_term: i64,
}

impl LastWrite {
    /// The dates are those of the optimes, to the second: drivers compare them between members, whose newest entry may be the same.
    pub fn to_document(self) -> Document {
        let date = |ts: Timestamp| Value::DateTime(i64::from(ts.secs) * 1000);
        doc! {
            "opTime": { "ts": self.op_time, "t": self.term },
            "lastWriteDate": date(self.op_time),
            "majorityOpTime": { "ts": self.majority, "t": self.majority_term },
            "majorityWriteDate": date(self.majority),
        }
    }
}
