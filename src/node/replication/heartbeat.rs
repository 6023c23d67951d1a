//! Heartbeats: how the members know each other's state, term and position, and how configurations spread.
//!
//! A task for each other member asks it at an interval, and again at once when something changed here. A member that answers
//! with a newer configuration is followed; one that asks with a newer configuration is asked for it. A member without a
//! configuration learns its first one so.

use super::driver::{optime_document, read_optime};
use super::{MemberState, Replication, SetConfig, Standing, known};
use crate::Node;
use document::{Doc, DocBuf, Document, Result, Timestamp, Value, bail, doc};
use protocol::replication::OpTime;
use protocol::replication::config::newer;
use protocol::replication::member::{Action, Beat};
use runtime::Instant;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The version of a member without configuration. DO NOT CHANGE: it is on the wire.
const NO_CONFIG: i64 = -2;
/// Failed heartbeats in a row after which a member is down; so it is after `heartbeatTimeoutSecs`.
const FAILURES_MAX: u32 = 3;

/// What a heartbeat says of its sender.
#[derive(Clone, Debug, Default)]
pub struct HeartbeatRequest {
    pub set: String,
    pub config_version: i64,
    pub config_term: i64,
    pub from: String,
    pub from_id: i64,
    pub term: i64,
    pub check_empty: bool,
}

impl Replication {
    /// Has every other member asked how it is, now.
    pub fn ask_members_now(&self) {
        self.heartbeat_now.notify_waiters();
    }
}

impl Node {
    /// Asks every other member from now on, and lets go of the tasks of an older configuration.
    pub(super) fn start_heartbeats(self: &Arc<Self>) {
        let generation = self.replication.generation.fetch_add(1, Ordering::SeqCst) + 1;
        let standing = self.replication.standing();
        let Some(config) = &standing.config else { return };
        let mut tasks = self.replication.tasks.lock();
        tasks.retain(|task| !task.is_finished());
        for index in (0..config.members().len()).filter(|i| Some(*i) != standing.me) {
            let weak = Arc::downgrade(self);
            tasks.push(self.spawn_for_good(move || ask(weak.clone(), index, generation)));
        }
    }

    fn heartbeat_command(&self, check_empty: bool) -> DocBuf {
        let standing = self.replication.standing();
        let (version, term) = standing.config.as_ref().map_or((NO_CONFIG, -1), |c| (c.version(), c.term()));
        let own = standing.own();
        let mut command = doc! {
            "replSetHeartbeat": self.options.replica_set.as_deref().unwrap_or(""), "configVersion": version,
            "configTerm": term, "hbv": 1, "from": own.map_or(String::new(), |m| m.host.clone()),
            "fromId": own.map_or(-1, |m| m.id as i32), "term": standing.term, "$replData": 1,
        };
        if check_empty {
            command.push("checkEmpty", true);
        }
        if let Some(primary) = standing.primary.and_then(|i| standing.config.as_ref()?.members().get(i)) {
            command.push("primaryId", primary.id as i32);
        }
        command.to_doc_buf()
    }

    /// Asks a host once.
    ///
    /// # Errors
    /// NewReplicaSetConfigurationIncompatible (103) where it is of another set of this name: nothing that it says concerns this one.
    pub(super) async fn heartbeat(&self, host: &str, limit: Duration, check_empty: bool) -> Result<DocBuf> {
        let command = self.heartbeat_command(check_empty);
        let reply = self.replication.peers()?.call(host, "admin", command, limit).await?;
        let standing = self.replication.standing();
        let ours = standing.config.as_ref().and_then(|c| c.set_id());
        let theirs =
            reply.doc().get_document("$replData").and_then(|d| d.get("replicaSetId")).map(|id| id.to_value());
        if let (Some(ours), Some(theirs)) = (ours, theirs)
            && *ours != theirs
        {
            bail!(
                NEW_REPLICA_SET_CONFIGURATION_INCOMPATIBLE,
                "replica set IDs do not match, ours: {}; remote node's: {}",
                document::shell::value(ours),
                document::shell::value(&theirs)
            );
        }
        Ok(reply)
    }

    /// `$replData` of a reply: what this member knows of its set. `None` before it is in one.
    pub fn set_data(&self) -> Option<Document> {
        let standing = self.replication.standing();
        let config = standing.config.as_ref()?;
        let committed = optime_document(known(self.committed()));
        let mut data = doc! {
            "term": standing.term, "lastOpCommitted": committed, "lastOpVisible": optime_document(self.last_known()),
            "configVersion": config.version(), "configTerm": config.term(),
        };
        if let Some(id) = config.set_id() {
            data.push("replicaSetId", id.clone());
        }
        data.push("syncSourceIndex", self.sync_source().1.map_or(-1, |i| i as i32));
        data.push("isPrimary", standing.writable);
        Some(data)
    }

    /// A host has answered what it was asked at `asked`. Another configuration may have come meanwhile, in which it stands elsewhere.
    pub(super) async fn heard(
        self: &Arc<Self>,
        host: &str,
        reply: Doc<'_>,
        asked: u64,
        ping: Duration,
    ) -> Result<()> {
        let wall = self.now_ms();
        let data = reply.get_document("$replData");
        let commit = data.and_then(|d| d.get_document("lastOpCommitted")).and_then(read_optime);
        let beat = read_beat(reply, asked);
        let actions = self.replication.with(|m, now, offset| {
            let mut actions = self.tell_positions(m);
            if let Some(index) = m.index_of(host) {
                actions.extend(m.heard_beat(index, beat, ping.as_millis() as u64, now, wall, offset));
            }
            if let Some(commit) = commit {
                actions.extend(m.learn_commit_from_heartbeat(commit));
            }
            actions
        });
        self.perform(actions).await?;
        self.replication.note_progress();
        if let Some(config) = reply.get_document("config") {
            self.follow_config(&config.to_document()).await?;
        }
        self.admit_if_ready(host);
        Ok(())
    }

    /// A new voter that has its data is admitted, by the primary. What fails is tried after the next heartbeat.
    fn admit_if_ready(self: &Arc<Self>, host: &str) {
        let ready = self.replication.look(|m| {
            let index = m.index_of(host)?;
            let waits = m.config()?.members().get(index).filter(|member| member.newly_added)?;
            let has_data = m.peer(index).is_some_and(|p| p.up && p.state.has_data());
            (m.is_writable() && has_data).then_some(waits.id)
        });
        let Some(id) = ready.filter(|_| !self.failpoint("doNotRemoveNewlyAddedOnHeartbeats")) else { return };
        let node = self.clone();
        runtime::spawn(async move { drop(node.admit_member(id).await) });
    }

    /// `replSetHeartbeat`.
    ///
    /// # Errors
    /// InconsistentReplicaSetNames (108), BadValue (2) for a sender with this member's id, NoReplicationEnabled (76),
    /// InvalidReplicaSetConfig (93) from a member that has been removed.
    pub async fn answer_heartbeat(self: &Arc<Self>, request: &HeartbeatRequest) -> Result<Document> {
        let Some(name) = &self.options.replica_set else {
            bail!(NO_REPLICATION_ENABLED, "not running with --replSet");
        };
        if request.set != *name {
            bail!(
                INCONSISTENT_REPLICA_SET_NAMES,
                "Our set name of {name} does not match name {} reported by remote node",
                request.set
            );
        }
        let standing = self.replication.standing();
        let ours = standing.config.as_ref().map_or((-1, NO_CONFIG), |c| (c.term(), c.version()));
        if standing.own().is_some_and(|m| m.id == request.from_id) {
            bail!(
                BAD_VALUE,
                "Received heartbeat from member with the same member ID as ourself: {}",
                request.from_id
            );
        }
        let theirs = (request.config_term, request.config_version);
        if !request.from.is_empty() && request.config_version > 0 && newer(theirs, ours) {
            self.fetch_config(request.from.clone());
        }
        // One that was removed does not keep a primary in office by the id that another has now, nor does a member of another set of
        // this name; their terms are of no reign here.
        let wall = self.now_ms();
        let is_member = self.replication.with(|m, now, _| {
            let index = m.index_of(&request.from);
            let index = index.filter(|i| m.config().is_some_and(|c| c.members()[*i].id == request.from_id));
            index.inspect(|index| m.heard_of(*index, now, wall)).is_some()
        });
        if is_member {
            self.see_term(request.term).await?;
        }
        // What stands in no line, or in several, is no member: it holds nothing and hears nothing for the set.
        if standing.config.is_some() && standing.me.is_none() {
            bail!(
                INVALID_REPLICA_SET_CONFIG,
                "Our replica set configuration is invalid or does not include us"
            );
        }
        let (reply, actions) = self.beat_reply(newer(ours, theirs));
        self.perform(actions).await?;
        Ok(reply)
    }

    /// The term is that of the moment at which the positions are: a leader of an earlier one must not count what came after a vote for
    /// its successor.
    fn beat_reply(&self, with_config: bool) -> (Document, Vec<Action>) {
        let standing = self.replication.standing();
        let Some(config) = &standing.config else {
            let reply = doc! {
                "state": MemberState::Startup as i32, "v": NO_CONFIG as i32, "set": "", "term": -1i64,
            };
            return (reply, Vec::new());
        };
        let (actions, term, applied, durable) = self.replication.with(|m, _, _| {
            let actions = self.tell_positions(m);
            (actions, m.term(), m.applied(), m.durable())
        });
        let copying = standing.state == MemberState::Startup2;
        let position = |t: OpTime| if copying { OpTime::NONE } else { t };
        let (applied, durable) = (position(applied), position(durable));
        let mut reply = Document::new();
        if let Some(election) = standing.election.filter(|_| standing.state == MemberState::Primary) {
            reply.push("electionTime", Timestamp::from_u64(election.first.ts));
        }
        if with_config {
            reply.push("config", config.document());
        }
        reply.push("state", standing.state as i32);
        reply.push("v", config.version() as i32);
        reply.push("configTerm", config.term());
        reply.push("set", config.name());
        // By it whoever asks learns that an address which is forwarded has led to another member.
        if let Some(own) = standing.own() {
            reply.push("memberId", own.id);
        }
        let source = self.replication.source.lock().host.clone();
        if !source.is_empty() {
            reply.push("syncingTo", source);
        }
        reply.push("term", term);
        if let Some(primary) = standing.primary.and_then(|i| config.members().get(i)) {
            reply.push("primaryId", primary.id as i32);
        }
        reply.push("durableOpTime", optime_document(durable));
        reply.push("durableWallTime", Value::DateTime(self.log.durable_wall()));
        reply.push("opTime", optime_document(applied));
        reply.push("wallTime", Value::DateTime(self.log.last_wall()));
        reply.push("electable", standing.own().is_some_and(|m| m.is_electable()));
        (reply, actions)
    }

    /// Asks a member for its configuration, in the background.
    fn fetch_config(self: &Arc<Self>, host: String) {
        let node = self.clone();
        runtime::spawn(async move {
            let Ok(reply) = node.heartbeat(&host, Duration::from_secs(10), false).await else { return };
            if let Some(config) = reply.doc().get_document("config")
                && let Err(error) = node.follow_config(&config.to_document()).await
            {
                node.replication.note(
                    "A configuration from a heartbeat was not installed",
                    doc! { "error": error.message },
                );
            }
        });
    }

    /// Installs a configuration that another member has, if it is newer.
    pub(super) async fn follow_config(self: &Arc<Self>, document: &Document) -> Result<()> {
        let config = SetConfig::parse(document)?;
        let _changing = self.replication.changing.lock().await;
        let standing = self.replication.standing();
        let current = standing.config.clone();
        if Some(config.name()) != self.options.replica_set.as_deref() || !self.may_follow(&config) {
            return Ok(());
        }
        // It comes again with the next heartbeat.
        if self.failpoint("blockHeartbeatReconfigFinish") {
            return Ok(());
        }
        if let (Some(ours), Some(theirs)) = (current.as_ref().and_then(|c| c.set_id()), config.set_id())
            && ours != theirs
        {
            bail!(INVALID_REPLICA_SET_CONFIG, "the other member belongs to another set of this name");
        }
        let me = self.find_me_again(&config, &standing).await;
        if me.is_none() && current.is_none() {
            return Ok(());
        }
        let _installing = self.replication.installing.lock().await;
        // This member may have become primary while it looked for itself.
        if !self.may_follow(&config) {
            return Ok(());
        }
        self.store_and_install(config, me).await?;
        if me.is_none() {
            self.look_for_me();
        }
        Ok(())
    }

    /// Where this member stands in a configuration that follows. An address that was its own and says nothing is so still: what is in
    /// between may be cut, and one that took itself for removed would be of no use to its set before yet another configuration.
    async fn find_me_again(&self, config: &SetConfig, standing: &Standing) -> Option<usize> {
        let found = self.find_me(config).await;
        if let Ok(None) = &found
            && let Some(own) = standing.own()
            && let Some(index) = config.index_of_host(&own.host)
            && let Ok(peers) = self.replication.peers()
            && peers.process_at(&own.host).await.is_none()
        {
            return Some(index);
        }
        self.found_or_none(found)
    }

    /// Whether the configuration is newer than this member's. A primary that cannot write yet finishes first; the
    /// configuration comes again.
    fn may_follow(&self, config: &SetConfig) -> bool {
        self.replication.look(|m| {
            let begins = m.is_leader() && !m.is_writable() && config.term() != -1;
            m.config().is_none_or(|c| config.is_newer_than(c)) && !m.is_candidate() && !begins
        })
    }
}

fn read_beat(reply: Doc<'_>, asked: u64) -> Beat {
    let optime = |name: &str| reply.get_document(name).and_then(read_optime).unwrap_or(OpTime::NONE);
    let wall = |name: &str| match reply.get(name) {
        Some(document::ValueRef::DateTime(ms)) => ms,
        _ => 0,
    };
    let version = reply.get_i64("v").unwrap_or(NO_CONFIG);
    Beat {
        asked,
        id: reply.get_i64("memberId"),
        state: reply.get_i64("state").and_then(MemberState::from_number).unwrap_or(MemberState::Unknown),
        term: reply.get_i64("term").unwrap_or(-1),
        config: (version > 0).then(|| (reply.get_i64("configTerm").unwrap_or(-1), version)),
        applied: optime("opTime"),
        durable: optime("durableOpTime"),
        applied_wall: wall("wallTime"),
        durable_wall: wall("durableWallTime"),
        sync_source: reply.get_str("syncingTo").unwrap_or("").to_string(),
        election_time: reply.get("electionTime").and_then(|v| v.as_timestamp()).map_or(0, |t| t.as_u64()),
    }
}

/// Asks one member, until the configuration changes or the node is gone.
async fn ask(node: Weak<Node>, index: usize, generation: u64) {
    let (mut failures, mut silent_since) = (0, None);
    loop {
        let Some(node) = node.upgrade() else { return };
        if node.replication.generation.load(Ordering::SeqCst) != generation {
            return;
        }
        let standing = node.replication.standing();
        let (Some(config), Some(host)) = (standing.config.clone(), standing.host(index)) else { return };
        // What happens while it is asked makes it be asked again.
        let asker = node.clone();
        let news = asker.replication.heartbeat_now.notified();
        let (asked, begun) = (node.replication.now(), Instant::now());
        let limit = Duration::from_millis(config.heartbeat_timeout_ms().min(config.election_timeout_ms()));
        let outcome = match node.heartbeat(&host, limit, false).await {
            Ok(reply) => node.heard(&host, reply.doc(), asked, begun.elapsed()).await,
            Err(error) => Err(error),
        };
        match outcome {
            Ok(()) => (failures, silent_since) = (0, None),
            Err(error) => {
                failures += 1;
                let silence = silent_since.get_or_insert(begun).elapsed();
                let silent = silence >= Duration::from_millis(config.heartbeat_timeout_ms());
                if failures >= FAILURES_MAX || silent {
                    let wall = node.now_ms();
                    node.replication.with(|m, _, _| {
                        if let Some(index) = m.index_of(&host) {
                            m.asked_in_vain(index, wall);
                            m.lost(index, &error.message);
                        }
                    });
                }
            }
        }
        let pause = pause(&node, &config, failures);
        drop(node);
        drop(tokio::time::timeout(pause, news).await);
    }
}

/// Short while the set has no primary or this member is not yet what it should be.
fn pause(node: &Node, config: &SetConfig, failures: u32) -> Duration {
    let forced = node.failpoints.should_with("forceHeartbeatIntervalMS", |_| true);
    if let Some(ms) = forced.and_then(|data| data.get_i64("intervalMS")).and_then(|ms| u64::try_from(ms).ok())
    {
        return Duration::from_millis(ms.max(1));
    }
    let standing = node.replication.standing();
    let usual = config.heartbeat_interval_ms().min(config.election_timeout_ms() / 3).max(1);
    let unsettled = standing.primary.is_none()
        || !matches!(standing.state, MemberState::Primary | MemberState::Secondary | MemberState::Arbiter);
    let primary_alone = standing.state == MemberState::Primary
        && node.replication.look(|m| m.peers().any(|(_, p)| p.up && p.state == MemberState::Startup2));
    let retry = (1..FAILURES_MAX).contains(&failures);
    Duration::from_millis(if retry || unsettled || primary_alone { usual.min(100) } else { usual })
}
