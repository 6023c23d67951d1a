//! Making a set, and changing its configuration.
//!
//! A configuration is durable in the state file before it is in force, and then shown in `local.system.replset`. A safe change
//! is made by the primary, alters at most one voter, and begins only when the current configuration has reached a
//! majority and an entry of this term is committed under it: so majorities of old and new overlap. A voter that moves to
//! another host goes on voting where it is found there with its data; otherwise it waits like a new one. A forced
//! configuration has no term and takes a version far ahead. One that commits by fewer than elect (a member with data beside an
//! arbiter) is left only when the next one's majority has what is committed: nothing else makes the two meet.
//!
//! Invariant: a configuration is installed under `installing`, after a look at the one that it replaces: what took long to
//! prepare never replaces a newer one.

use super::{CONFIG_NAMESPACE, SetConfig, known};
use crate::local::LocalClient;
use crate::{Node, log_failed};
use document::{Document, Result, bail, doc, err};
use protocol::replication::member::{Member, MemberState};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use storage::entry::{Entry, Op};

/// How long a member has to answer whether it can take part.
const QUORUM_LIMIT: Duration = Duration::from_secs(10);
/// What the first entry of a set's oplog says. DO NOT CHANGE: logs hold it.
const INITIATING: &str = "initiating set";

/// Whether this is the first entry that there ever was in its set.
pub(crate) fn begins_set(entry: &Entry<'_>) -> bool {
    entry.op == Op::Noop && entry.o.get_str("msg") == Some(INITIATING)
}

/// How often the initiating member tries to stand, and how long it waits in between.
const FIRST_ATTEMPTS: usize = 100;
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// How often a member that is in no line of its configuration looks for itself, and how long it waits in between.
const SELF_TRIES: usize = 100;
const SELF_PAUSE: Duration = Duration::from_millis(200);
/// How far a forced configuration is ahead of any that others may have made. Chance keeps two that are forced on both sides of a cut from
/// being of one version: neither would follow the other.
const FORCED_AHEAD: std::ops::Range<i64> = 10_000..110_000;

/// Who changes the configuration.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A client: at most one voter changes, and new ones wait until they have their data. The cluster of which the set is a shard may have
    /// a default write concern.
    Safe { cluster_default: bool },
    /// A client, whatever the majority has.
    Forced,
    /// This primary: a voter that waited has its data.
    Admission,
}

/// How long commits may wait for a majority of the next configuration, before that is given up.
const HOLD_LIMIT: Duration = Duration::from_secs(2);

/// How long an admission may take before it is tried again.
const ADMISSION_LIMIT: Duration = Duration::from_secs(10);

impl Node {
    /// Takes up the configuration of an earlier life; false when there is none. A set of one is primary when this returns.
    ///
    /// # Errors
    /// An unreadable configuration; one of a set with another name (93).
    pub async fn resume_set(self: &Arc<Self>) -> Result<bool> {
        let Some(name) = &self.options.replica_set else { return Ok(false) };
        let client = LocalClient::new(self.clone());
        let kept = self.replication.state.get();
        if let Some(bytes) = kept.oplog_bytes {
            self.log.set_retain_bytes(bytes);
        }
        if let Some(ms) = kept.oplog_ms {
            self.log.set_retain_ms(ms);
        }
        let Some(stored) = kept.config.or(client.find_one(CONFIG_NAMESPACE, &Document::new())?) else {
            return Ok(false);
        };
        let config = SetConfig::parse(&stored)?;
        if config.name() != name {
            bail!(
                INVALID_REPLICA_SET_CONFIG,
                "Local replica set configuration document reports set name of {}, but command line reports {name}",
                config.name()
            );
        }
        let _changing = self.replication.changing.lock().await;
        let me = self.find_me_or_none(&config).await;
        self.install(Arc::new(config), me).await?;
        if me.is_none() {
            self.look_for_me();
        }
        Ok(true)
    }

    /// An address that is forwarded leads to this node only once it listens.
    pub(super) fn look_for_me(self: &Arc<Self>) {
        let weak = Arc::downgrade(self);
        runtime::spawn(async move {
            for _ in 0..SELF_TRIES {
                tokio::time::sleep(SELF_PAUSE).await;
                let Some(node) = weak.upgrade() else { return };
                let lost = |node: &Node| {
                    let standing = node.replication.standing();
                    standing.config.clone().filter(|_| standing.me.is_none())
                };
                let Some(config) = lost(&node) else { return };
                // Addresses may take long to say whose they are: the configuration can be changed meanwhile.
                let me = node.find_me(&config).await.unwrap_or_default();
                if me.is_none() {
                    continue;
                }
                let _changing = node.replication.changing.lock().await;
                let _installing = node.replication.installing.lock().await;
                match lost(&node) {
                    // A failed log is what every later command says.
                    Some(now) if Arc::ptr_eq(&now, &config) => return drop(node.install(config, me).await),
                    Some(_) => {}
                    None => return,
                }
            }
        });
    }

    /// # Errors
    /// AlreadyInitialized (23): this member has a configuration.
    pub fn check_not_initiated(&self) -> Result<()> {
        if self.replication.standing().config.is_some() {
            let info = doc! { "info": "try querying local.system.replset to see current configuration" };
            return Err(err!(ALREADY_INITIALIZED, "already initialized").with_info(info));
        }
        Ok(())
    }

    /// Makes the set. A set of one is primary when this returns, any other elects one. The configuration is durable.
    ///
    /// # Errors
    /// NoReplicationEnabled (76), AlreadyInitialized (23), InvalidReplicaSetConfig (93), NodeNotFound (74).
    pub async fn initiate(self: &Arc<Self>, mut config: SetConfig) -> Result<()> {
        let Some(name) = &self.options.replica_set else {
            bail!(NO_REPLICATION_ENABLED, "This node was not started with replication enabled.")
        };
        let _changing = self.replication.changing.lock().await;
        self.check_not_initiated()?;
        if config.name() != name {
            bail!(
                INVALID_REPLICA_SET_CONFIG,
                "Attempting to initiate a replica set with name {}, but command line reports {name}; rejecting",
                config.name()
            );
        }
        let me = self.find_me(&config).await?;
        let Some(own) = me.and_then(|me| config.members().get(me)) else {
            bail!(
                INVALID_REPLICA_SET_CONFIG,
                "No host described in new configuration with {{version: {}, term: 0}} for replica set {name} maps to this \
                 node",
                config.version()
            )
        };
        if !own.is_electable() {
            bail!(
                INVALID_REPLICA_SET_CONFIG,
                "This node, with _id {} is not electable under the new configuration with {{version: {}, term: 0}} for \
                 replica set {name}",
                own.id,
                config.version()
            );
        }
        self.check_quorum(&config, me, true).await?;
        config.set_term(self.replication.look(|m| m.term()));
        let appended = self.append_noop(doc! { "msg": INITIATING })?;
        self.log.wait_durable(appended.position).await.map_err(log_failed)?;
        self.store_and_install(config, me).await?;
        self.stand_first();
        Ok(())
    }

    /// Stands as soon as a majority of a new set can be seen, rather than after the election timeout; not in a set that has had a
    /// primary, be it for less than the pause between two attempts.
    fn stand_first(self: &Arc<Self>) {
        let (weak, before) = (Arc::downgrade(self), self.last_known().term);
        runtime::spawn(async move {
            for _ in 0..FIRST_ATTEMPTS {
                let Some(node) = weak.upgrade() else { return };
                let alone = |m: &Member| m.config().is_none_or(|c| c.members().len() == 1);
                let began = node.last_known().term > before;
                if began || node.replication.look(|m| m.primary().is_some() || alone(m)) {
                    return;
                }
                let mut actions = node.positions();
                let stood = node
                    .replication
                    .with(|m, now, offset| m.stand(super::Reason::ElectionTimeout, now, offset));
                // Until it sees a majority it may not.
                actions.extend(stood.unwrap_or_default());
                node.perform_quietly(actions).await;
                drop(node);
                tokio::time::sleep(FIRST_PAUSE).await;
            }
        });
    }

    /// The member has its data: it votes from now on.
    pub(super) async fn admit_member(self: &Arc<Self>, id: i64) -> Result<()> {
        let Some(current) = self.replication.standing().config.clone() else { return Ok(()) };
        let mut config = (*current).clone();
        if !config.admit(id) {
            return Ok(());
        }
        config.set_version(current.version() + 1);
        self.replication.note("Member has its data and votes from now on", doc! { "memberId": id });
        self.reconfigure(config, Change::Admission, ADMISSION_LIMIT).await
    }

    /// Replaces the configuration by one of a higher version; a forced one raises the version by itself.
    ///
    /// # Errors
    /// NewReplicaSetConfigurationIncompatible (103), NotYetInitialized (94), NotWritablePrimary (10107),
    /// CurrentConfigNotCommittedYet (308), NodeNotFound (74), ConfigurationInProgress (109).
    pub async fn reconfigure(
        self: &Arc<Self>,
        mut config: SetConfig,
        change: Change,
        limit: Duration,
    ) -> Result<()> {
        let force = change == Change::Forced;
        // Before and after, while others are waited for, nothing is held: who steps down or forces a configuration need not wait.
        let before = self.replication.standing();
        if let Some(current) = before.config.as_ref().filter(|_| !force && before.writable) {
            self.await_config_committed(current, limit).await?;
        }
        let Ok(changing) = self.replication.changing.try_lock() else {
            bail!(
                CONFIGURATION_IN_PROGRESS,
                "Another change of the configuration or a step-down is under way"
            );
        };
        let standing = self.replication.standing();
        let Some(current) = standing.config.clone() else {
            bail!(NOT_YET_INITIALIZED, "Node not yet initialized; use the replSetInitiate command")
        };
        if !force && !standing.writable {
            bail!(
                NOT_WRITABLE_PRIMARY,
                "New config is rejected :: caused by :: replSetReconfig should only be run on a writable PRIMARY. \
                 Current state {};",
                standing.state.name()
            );
        }
        config.set_term(if force { -1 } else { standing.term });
        if force {
            // Far enough that no configuration another member made meanwhile is newer.
            let ahead = runtime::random_range(FORCED_AHEAD);
            config.set_version(config.version().max(current.version()) + ahead);
        }
        self.failpoints.pause_while_set("ReconfigHangBeforeConfigValidationCheck").await;
        let found = self.find_me(&config).await;
        if let Change::Safe { cluster_default } = change {
            let me = found.as_ref().ok().copied().flatten();
            let same = self.moved_with_data(&config, &current, me).await;
            config.let_new_voters_wait(&current, &same);
            if !cluster_default && self.replication.default_write_concern().is_none() {
                config.keep_implicit_concern(&current)?;
            }
        }
        config.follow(&current, force)?;
        let me = found?.ok_or_else(|| not_in(&config))?;
        if !force {
            if !config.members().get(me).is_some_and(|m| m.is_electable()) {
                bail!(NODE_NOT_ELECTABLE, "This node is not electable under the new configuration");
            }
            let same = before.config.as_ref().is_some_and(|before| Arc::ptr_eq(before, &current));
            if !same || before.term != standing.term {
                bail!(CONFIGURATION_IN_PROGRESS, "The configuration was changed meanwhile");
            }
            self.check_quorum(&config, Some(me), false).await?;
        }
        let installed = config.clone();
        let next = match force {
            true => None,
            false => Some(self.await_held_by_next(&config, limit).await?),
        };
        {
            // Held until the configuration is in force, or is not to be.
            let _next = next;
            let _installing = self.replication.installing.lock().await;
            if !force {
                self.check_still_leads(&current, standing.term)?;
                self.append_noop(doc! { "msg": "Reconfig set", "version": config.version() })?;
            }
            self.store_and_install(config, Some(me)).await?;
            self.replication.metrics.admissions.add(usize::from(change == Change::Admission));
        }
        drop(changing);
        if !force {
            self.await_config_majority(&installed, limit).await?;
        }
        Ok(())
    }

    /// Whether what was found out for a change of `config` still holds.
    fn check_still_leads(&self, config: &Arc<SetConfig>, term: i64) -> Result<()> {
        if !self.replication.look(|m| m.is_leader() && m.term() == term) {
            return Err(super::Replication::stepped_down());
        }
        if !self.replication.look(|m| m.config().is_some_and(|now| Arc::ptr_eq(now, config))) {
            bail!(CONFIGURATION_IN_PROGRESS, "The configuration was changed meanwhile");
        }
        Ok(())
    }

    /// Ids of members that have moved to another address and are the same members there: they have the current
    /// configuration, and data.
    async fn moved_with_data(&self, config: &SetConfig, current: &SetConfig, me: Option<usize>) -> Vec<i64> {
        let asks = config.moved(current).into_iter().map(|id| async move {
            let index = config.index_of_id(id)?;
            if Some(index) == me {
                return Some(id);
            }
            let reply = self.heartbeat(&config.members()[index].host, QUORUM_LIMIT, false).await.ok()?;
            let number = |name: &str| reply.doc().get_i64(name);
            let has_config =
                (number("configTerm"), number("v")) == (Some(current.term()), Some(current.version()));
            let state = number("state").and_then(MemberState::from_number)?;
            (has_config && state.has_data()).then_some(id)
        });
        futures::future::join_all(asks).await.into_iter().flatten().collect()
    }

    /// Waits until a majority of voters has the configuration and everything written by now is committed under it.
    async fn await_config_committed(&self, config: &SetConfig, limit: Duration) -> Result<()> {
        if config.members().len() == 1 || config.term() == -1 {
            return Ok(());
        }
        self.await_config_majority(config, limit).await?;
        match tokio::time::timeout(limit, self.wait_all_committed()).await {
            Ok(done) => done,
            Err(_) => Err(not_committed()),
        }
    }

    /// Where this configuration commits by fewer than elect, which are not to elect by the next one a member that lacks something: returns
    /// when the next one's majority has what is committed, and what is returned keeps it so. First without a stop, as long as it takes.
    async fn await_held_by_next<'a>(
        self: &'a Arc<Self>,
        next: &SetConfig,
        limit: Duration,
    ) -> Result<HeldByNext<'a>> {
        let committed = || known(self.committed());
        self.await_next_has(next, committed(), limit).await?;
        self.replication.with(|m, _, _| m.set_next(Some(Arc::new(next.clone()))));
        let held = HeldByNext(self);
        self.await_next_has(next, committed(), limit.min(HOLD_LIMIT)).await?;
        Ok(held)
    }

    async fn await_next_has(
        &self,
        next: &SetConfig,
        entry: protocol::replication::OpTime,
        limit: Duration,
    ) -> Result<()> {
        let mut progress = self.replication.progress();
        let held = async {
            while !self.replication.look(|m| m.next_has(next, entry)) {
                drop(progress.changed().await);
            }
        };
        tokio::time::timeout(limit, held).await.map_err(|_| not_committed())
    }

    async fn await_config_majority(&self, config: &SetConfig, limit: Duration) -> Result<()> {
        let mut progress = self.replication.progress();
        let version = Some((config.term(), config.version()));
        let term = self.replication.look(|m| m.term());
        let held = async {
            loop {
                self.replication.ask_members_now();
                let count = self.replication.look(|m| {
                    let voters = config.members().iter().enumerate().filter(|(_, m)| m.votes);
                    voters
                        .filter(|(i, _)| {
                            Some(*i) == m.me() || m.peer(*i).is_some_and(|p| p.up && p.config == version)
                        })
                        .count()
                });
                if count >= config.vote_majority() {
                    return Ok(());
                }
                if !self.replication.look(|m| m.is_leader() && m.term() == term) {
                    return Err(super::Replication::stepped_down());
                }
                drop(tokio::time::timeout(Duration::from_millis(50), progress.changed()).await);
            }
        };
        match tokio::time::timeout(limit, held).await {
            Ok(done) => done,
            Err(_) => Err(not_committed()),
        }
    }

    /// Whether the configuration has reached a majority: `commitmentStatus` of replSetGetConfig.
    pub async fn is_config_committed(&self) -> Result<bool> {
        let (_, config) = self.configured()?;
        if !self.replication.is_primary() {
            bail!(NOT_WRITABLE_PRIMARY, "commitmentStatus is only supported on primary.");
        }
        Ok(self.await_config_majority(&config, Duration::from_millis(1)).await.is_ok())
    }

    /// Asks the other members whether they can take part: all of them for a new set, a majority for a changed one.
    async fn check_quorum(&self, config: &SetConfig, me: Option<usize>, all: bool) -> Result<()> {
        let others: Vec<(usize, &super::MemberConfig)> =
            config.members().iter().enumerate().filter(|(i, _)| Some(*i) != me).collect();
        if others.is_empty() || (!all && self.failpoint("omitConfigQuorumCheck")) {
            return Ok(());
        }
        let asks = others.iter().map(|(_, m)| self.heartbeat(&m.host, QUORUM_LIMIT, all));
        let one_each = self.check_address_of_each(config, &others);
        let (answers, one_each) = futures::future::join(futures::future::join_all(asks), one_each).await;
        let (mut up, mut down) = (usize::from(me.is_some_and(|i| config.members()[i].votes)), Vec::new());
        for ((_, member), answer) in others.iter().zip(answers) {
            match answer {
                Ok(reply) if all && reply.doc().get_i64("v").unwrap_or(-2) > 0 => bail!(
                    NEW_REPLICA_SET_CONFIGURATION_INCOMPATIBLE,
                    "Our replica set configuration is older than or equal to that of {}, which is a member of a set already",
                    member.host
                ),
                Ok(_) => up += usize::from(member.votes),
                Err(e) if e.code == document::codes::INCONSISTENT_REPLICA_SET_NAMES => bail!(
                    NEW_REPLICA_SET_CONFIGURATION_INCOMPATIBLE,
                    "Our set name did not match that of {}",
                    member.host
                ),
                Err(e) if e.code == document::codes::NEW_REPLICA_SET_CONFIGURATION_INCOMPATIBLE => {
                    return Err(e);
                }
                Err(e) => down.push(format!("{} failed with {}", member.host, e.message)),
            }
        }
        let needed = if all { config.voters().count() } else { config.vote_majority() };
        if up < needed || (all && !down.is_empty()) {
            let kind = if all {
                "replSetInitiate quorum check failed because not all proposed set members responded \
                affirmatively"
            } else {
                "replSetReconfig quorum check failed because not enough voting nodes responded"
            };
            bail!(NODE_NOT_FOUND, "{kind}: {}", down.join(", "));
        }
        one_each
    }

    /// # Errors
    /// InvalidReplicaSetConfig (93) where one process answers at the addresses of two members, as behind a port that is forwarded.
    async fn check_address_of_each(
        &self,
        config: &SetConfig,
        others: &[(usize, &super::MemberConfig)],
    ) -> Result<()> {
        let peers = self.replication.peers()?;
        let asks = others.iter().map(|(_, member)| peers.process_at(&member.host));
        let processes = futures::future::join_all(asks).await;
        let mut found = BTreeMap::new();
        for ((_, member), process) in others.iter().zip(processes) {
            let Some(process) = process else { continue };
            if let Some(first) = found.insert(process.0, &member.host) {
                bail!(
                    INVALID_REPLICA_SET_CONFIG,
                    "The hosts {first} and {} both map to one node in new configuration with {{version: {}, term: {}}} for \
                     replica set {}",
                    member.host,
                    config.version(),
                    config.term(),
                    config.name()
                );
            }
        }
        Ok(())
    }

    /// Where this node stands in a configuration. Addresses of its own come first: what is behind a forwarded one is asked only where
    /// none of them is.
    ///
    /// # Errors
    /// InvalidReplicaSetConfig (93) where it stands there under several addresses: it would count for as many members.
    pub async fn find_me(&self, config: &SetConfig) -> Result<Option<usize>> {
        let Ok(peers) = self.replication.peers() else {
            // Without a way to other nodes there is one member, which is this one.
            return Ok(Some(0));
        };
        let mut places = Vec::new();
        for (index, member) in config.members().iter().enumerate() {
            if peers.is_self(&member.host).await {
                places.push(index);
            }
        }
        if places.is_empty() {
            let asked = config.members().iter().map(|member| peers.is_self_elsewhere(&member.host));
            let found = futures::future::join_all(asked).await;
            places.extend(found.into_iter().enumerate().filter_map(|(index, own)| own.then_some(index)));
        }
        if places.len() > 1 {
            let hosts: Vec<&str> = places.iter().map(|i| config.members()[*i].host.as_str()).collect();
            bail!(
                INVALID_REPLICA_SET_CONFIG,
                "The hosts {} all map to this node in new configuration with {{version: {}, term: {}}} for replica set {}",
                hosts.join(" and "),
                config.version(),
                config.term(),
                config.name()
            );
        }
        Ok(places.first().copied())
    }

    /// The same in a configuration that is in force: where several addresses are this node's, none is.
    pub(super) async fn find_me_or_none(&self, config: &SetConfig) -> Option<usize> {
        let found = self.find_me(config).await;
        self.found_or_none(found)
    }
    pub(super) fn found_or_none(&self, found: Result<Option<usize>>) -> Option<usize> {
        if let Err(error) = &found {
            self.replication.note(
                "Several members of the configuration are this node, which takes no part in the set until another configuration comes",
                doc! { "error": error.message.as_str() },
            );
        }
        found.unwrap_or_default()
    }

    /// Callers hold `changing`, and `installing` where there was a configuration before.
    pub(super) async fn store_and_install(
        self: &Arc<Self>,
        config: SetConfig,
        me: Option<usize>,
    ) -> Result<()> {
        let document = config.document();
        let state = &self.replication.state;
        self.replication.with(|m, _, _| m.set_reconfiguring(true));
        let stored = state.change(|k| k.config = Some(document.clone()));
        self.replication.with(|m, _, _| m.set_reconfiguring(false));
        stored.map_err(|e| err!(LOG_WRITE_FAILED, "the configuration cannot be stored: {e}"))?;
        self.show_config(document).await?;
        self.install(Arc::new(config), me).await
    }

    async fn show_config(self: &Arc<Self>, document: Document) -> Result<()> {
        let client = LocalClient::new(self.clone());
        // One document, whatever it was called before.
        client
            .delete(CONFIG_NAMESPACE, &doc! { "_id": { "$ne": document.get_str("_id").unwrap_or("") } })
            .await?;
        client.put(CONFIG_NAMESPACE, &document).await
    }

    async fn install(self: &Arc<Self>, config: Arc<SetConfig>, me: Option<usize>) -> Result<()> {
        let replication = &self.replication;
        let first = replication.standing().config.is_none();
        let voices =
            config.voters().any(|m| Some(m.id) != me.and_then(|i| config.members().get(i)).map(|m| m.id));
        let several = config.members().len() > 1;
        if voices && !first && !replication.commit.is_shared() {
            // What was committed by this member alone stays committed. After a restart nobody knows yet what is.
            replication.commit.advance(self.log.durable_optime());
        }
        replication.commit.set_shared(voices);
        replication.commit.set_implicit_is_one(config.implicit_is_one());
        if !replication.look(|m| m.is_leader()) {
            self.close_writes();
        }
        let more = self.positions();
        let built = self.builds_indexes();
        let mut actions = replication.with(|m, now, offset| m.install(config.clone(), me, now, offset));
        if self.builds_indexes() != built {
            self.build_indexes_or_not()?;
        }
        if first {
            let kept = replication.state.get();
            let has_data = !kept.copying && self.log.last_optime().ts != 0;
            let arbiter = me.and_then(|i| config.members().get(i)).is_some_and(|m| m.arbiter);
            if has_data || arbiter || !several {
                replication.metrics.secondary_attempts.add(usize::from(!arbiter));
                replication.with(|m, now, offset| m.set_follower(MemberState::Secondary, now, offset));
            }
            self.load_defaults();
        }
        actions.splice(0..0, more);
        self.perform(actions).await?;
        if several {
            self.start_tasks();
        }
        self.start_heartbeats();
        replication.note_progress();
        if !several {
            let actions = replication.with(|m, now, offset| m.tick(now, offset));
            self.perform(actions).await?;
            self.wake_lonely();
        }
        Ok(())
    }

    /// Whether this member has more indexes than those on `_id` (`buildIndexes`).
    pub(super) fn builds_indexes(&self) -> bool {
        self.replication.look(|m| m.own().is_none_or(|m| m.build_indexes))
    }

    /// The configuration says anew whether this member builds indexes. Starting, a node builds all it finds.
    fn build_indexes_or_not(&self) -> Result<()> {
        let builds = self.builds_indexes();
        let _gate = self.gate.write();
        for slot in self.namespaces.all() {
            match slot.write_unchecked().collection.as_mut() {
                Some(collection) if builds => collection.catch_up_indexes()?,
                Some(collection) => collection.defer_indexes(),
                None => {}
            }
        }
        Ok(())
    }

    /// A new primary of a set of several gives the configuration its term, so that it is newer than any of an older reign.
    pub(super) async fn reterm_config(self: &Arc<Self>, term: i64) -> Result<()> {
        let current = || self.replication.look(|m| m.config().cloned());
        // An election of a set of one is held while its configuration is installed.
        if current().is_none_or(|c| c.members().len() == 1) {
            return Ok(());
        }
        let _installing = self.replication.installing.lock().await;
        let Some(config) = current() else { return Ok(()) };
        let leads = self.replication.look(|m| m.is_leader() && m.term() == term);
        if !leads || config.term() == -1 || config.term() == term {
            return Ok(());
        }
        let mut config = (*config).clone();
        config.set_term(term);
        let document = config.document();
        let stored = self.replication.state.change(|k| k.config = Some(document.clone()));
        stored.map_err(|e| err!(LOG_WRITE_FAILED, "the configuration cannot be stored: {e}"))?;
        self.show_config(document).await?;
        let me = self.replication.look(|m| m.me());
        let actions = self.replication.with(|m, now, offset| m.install(Arc::new(config), me, now, offset));
        Box::pin(self.perform(actions)).await?;
        // Beside arbiters nothing is committed before a majority holds it.
        self.replication.ask_members_now();
        Ok(())
    }

    /// The newest optime, as the machines know it.
    pub(super) fn last_known(&self) -> protocol::replication::OpTime {
        known(self.log.last_optime())
    }
}

/// Nothing is committed that the next configuration's majority lacks, until that is installed or this is dropped.
struct HeldByNext<'a>(&'a Node);
impl Drop for HeldByNext<'_> {
    fn drop(&mut self) {
        self.0.replication.with(|m, _, _| m.set_next(None));
        self.0.count_own_log();
    }
}

fn not_in(config: &SetConfig) -> document::Error {
    err!(
        NODE_NOT_FOUND,
        "No host described in new configuration with {{version: {}, term: {}}} for replica set {} maps to this node",
        config.version(),
        config.term(),
        config.name()
    )
}

fn not_committed() -> document::Error {
    err!(CURRENT_CONFIG_NOT_COMMITTED_YET, "Current config is still not majority committed")
}
