//! The replica sets that this node talks to, as it sees them from outside: who leads, who can be read from, who is silent.
//!
//! A connection string of several hosts names a set. While the set is used, a task for each member keeps asking it `hello`,
//! each time so that the member replies when something changes or after some seconds. A string of one host is that host, and
//! is asked nothing, unless work is to be given up with it ([`Silence::OfAll`]).
//!
//! ```text
//! hello of a primary        its election is the newest known -> it leads, and its list of members is the set's
//!                           it is older                      -> it has not heard yet that it leads no more
//! hello of another member   its role; hosts that are new to this node are asked too
//! no reply in time          silent: calls under way to it end, since a paused or cut-off member closes no connection
//! error of a request        the member named is asked again at once
//! ```

mod watch;

use crate::remote::{Transport, hosts};
use document::error::{NETWORK, NOT_PRIMARY};
use document::{Doc, Document, Error, ObjectId, Result, codes, doc, err};
use parking_lot::{Mutex, RwLock};
use protocol::selection::{Mode, ReadPreference, Role, Server, TagSet, select};
use runtime::Instant;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch as channel};

/// How long to look for a member: longer than an election usually takes.
const FIND_LIMIT: Duration = Duration::from_secs(20);

/// How members are watched.
#[derive(Clone, Copy)]
struct Pace {
    /// How long a member waits for a change before it replies.
    patience: Duration,
    /// How much longer than that a reply may take.
    hello: Duration,
    /// A set of which nothing was asked for this long is not watched any more.
    idle: Duration,
    /// How often a member that does not answer is asked.
    retry: Duration,
    find: Duration,
}

const PACE: Pace = Pace {
    patience: Duration::from_secs(5),
    hello: Duration::from_secs(5),
    idle: Duration::from_secs(120),
    retry: Duration::from_millis(250),
    find: FIND_LIMIT,
};

/// What is known of one member.
struct Member {
    server: Server,
    /// Calls to it are given up while this is true.
    silent: channel::Sender<bool>,
    /// The set has named it so; else this may be another name of a member.
    named: bool,
    ask_now: Arc<Notify>,
    /// Shown in `connPoolStats`.
    hidden: bool,
    task: Option<tokio::task::AbortHandle>,
}

struct State {
    members: BTreeMap<String, Member>,
    /// Election and configuration of the newest primary heard of.
    newest: (ObjectId, i64),
    used: Instant,
}

/// One set.
struct Set {
    name: String,
    seeds: Vec<String>,
    transport: Arc<dyn Transport>,
    pace: Pace,
    state: Mutex<State>,
    /// Rises with every news.
    news: channel::Sender<u64>,
}

/// Returns when a member is silent, or is a member no more; never for one that is not watched, or known by another name now.
async fn silence(of: Option<channel::Receiver<bool>>) {
    if let Some(mut silent) = of
        && silent.wait_for(|silent| *silent).await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

/// Whose silence ends a call.
#[derive(Clone, Copy, Debug)]
pub enum Silence<'a> {
    /// That of the member that was asked. A call to a string of a single host is never given up: there is no other to ask,
    /// and a client waits for it as long as it likes.
    Of(&'a str),
    /// That of every member, be it one: for work that waits for many shards, and is not to wait for one that is paused.
    OfAll,
}

/// All sets, by connection string.
pub struct Sets {
    transport: Arc<dyn Transport>,
    pace: Pace,
    sets: RwLock<BTreeMap<String, Arc<Set>>>,
}

impl Sets {
    pub fn new(transport: Arc<dyn Transport>) -> Sets {
        Sets { transport, pace: PACE, sets: RwLock::default() }
    }

    fn of(&self, connection: &str) -> Arc<Set> {
        if let Some(set) = self.sets.read().get(connection) {
            return set.clone();
        }
        let make = || Arc::new(Set::new(connection, self.transport.clone(), self.pace));
        self.sets.write().entry(connection.to_string()).or_insert_with(make).clone()
    }

    /// The member that a request goes to. The string of a single host is that host, whatever it is.
    ///
    /// # Errors
    /// HostNotFound (7) for a string without hosts; FailedToSatisfyReadPreference (133) when no member fits for long.
    pub async fn find(&self, connection: &str, preference: &ReadPreference) -> Result<String> {
        let mut all = hosts(connection);
        let Some(first) = all.next() else { return Err(err!(HOST_NOT_FOUND, "no host in '{connection}'")) };
        if all.next().is_none() {
            return Ok(first.to_string());
        }
        let set = self.of(connection);
        if let Some(host) = set.pick(preference) {
            return Ok(host);
        }
        // Boxed: rare, and large.
        Box::pin(set.wait_for(preference)).await
    }

    /// Takes in that a request to a member failed. True when another may be asked, and the request was certainly not
    /// executed: it may be sent again.
    pub fn note_failure(&self, connection: &str, host: &str, error: &Error, not_sent: bool) -> bool {
        let refused = matches!(
            error.code,
            codes::NOT_WRITABLE_PRIMARY
                | codes::NOT_PRIMARY_NO_SECONDARY_OK
                | codes::NOT_PRIMARY_OR_SECONDARY
        );
        if !error.is(NOT_PRIMARY) && !error.is(NETWORK) {
            return false;
        }
        if hosts(connection).nth(1).is_none() {
            return false;
        }
        self.of(connection).doubt(host);
        not_sent || refused
    }

    /// Awaits a call to a set, and gives it up when members are found not to answer any more: `None` then. The set is used as
    /// long as the call is under way.
    pub async fn guarded<T>(
        &self,
        connection: &str,
        whose: Silence<'_>,
        call: impl Future<Output = T>,
    ) -> Option<T> {
        let end = async {
            match whose {
                Silence::Of(_) if hosts(connection).nth(1).is_none() => std::future::pending().await,
                Silence::Of(host) => silence(self.of(connection).begin_call(host)).await,
                Silence::OfAll => self.of(connection).silence_of_all().await,
            }
        };
        tokio::select! {
            answer = call => Some(answer),
            () = end => None,
        }
    }

    /// The sets that are watched, as `connPoolStats` shows them; a host by itself is none.
    pub fn statistics(&self) -> Document {
        let mut shown = Document::new();
        for set in self.sets.read().values().filter(|set| set.seeds.first() != Some(&set.name)) {
            let state = set.state.lock();
            if state.members.is_empty() {
                continue;
            }
            let members: Vec<Document> = state.members.values().map(Member::shown).collect();
            shown.insert(set.name.as_str(), doc! { "hosts": members });
        }
        shown
    }
}

impl Member {
    fn new(host: &str) -> Member {
        Member {
            server: Server::unknown(host),
            silent: channel::Sender::new(false),
            named: false,
            ask_now: Arc::default(),
            hidden: false,
            task: None,
        }
    }
    fn shown(&self) -> Document {
        let s = &self.server;
        let mut shown = doc! {
            "addr": s.host.as_str(), "ok": s.role != Role::Other, "ismaster": s.role == Role::Primary,
            "hidden": self.hidden, "secondary": s.role == Role::Secondary, "pingTimeMillis": s.ping_ms as i32,
        };
        if !s.tags.is_empty() {
            let tags: Document = s.tags.iter().map(|(k, v)| (k.clone(), v.as_str().into())).collect();
            shown.push("tags", tags);
        }
        shown
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl Set {
    fn new(connection: &str, transport: Arc<dyn Transport>, pace: Pace) -> Set {
        let name = connection.split_once('/').map_or(connection, |(name, _)| name).to_string();
        let state = State { members: BTreeMap::new(), newest: (ObjectId([0; 12]), -1), used: Instant::now() };
        let seeds = hosts(connection).map(str::to_string).collect();
        Set { name, seeds, transport, pace, state: Mutex::new(state), news: channel::Sender::new(0) }
    }

    /// A member that fits, if one is known; begins to watch the set.
    fn pick(self: &Arc<Self>, preference: &ReadPreference) -> Option<String> {
        let mut state = self.state.lock();
        state.used = Instant::now();
        if state.members.is_empty() {
            self.watch_seeds(&mut state);
            return None;
        }
        if preference.mode == Mode::Primary {
            let leads = |m: &&Member| m.server.role == Role::Primary;
            return state.members.values().find(leads).map(|m| m.server.host.clone());
        }
        let servers: Vec<&Server> = state.members.values().filter(|m| !m.hidden).map(|m| &m.server).collect();
        let fitting = select(&servers, preference);
        let any = runtime::random::<u32>() as usize % fitting.len().max(1);
        fitting.get(any).map(|s| s.host.clone())
    }

    /// What tells that a member is silent; the set is in use as long as somebody holds it. A cursor that was left alone is asked
    /// for more when the set is not watched any more: that begins anew.
    fn begin_call(self: &Arc<Self>, host: &str) -> Option<channel::Receiver<bool>> {
        let mut state = self.state.lock();
        if state.members.is_empty() {
            state.used = Instant::now();
            self.watch_seeds(&mut state);
            self.watch(&mut state, host);
        }
        state.members.get(host).map(|m| m.silent.subscribe())
    }

    /// Returns when no member answers. The set is in use until then.
    async fn silence_of_all(self: Arc<Self>) {
        let mut news = self.news.subscribe();
        loop {
            {
                let mut state = self.state.lock();
                if state.members.is_empty() {
                    state.used = Instant::now();
                    self.watch_seeds(&mut state);
                }
                if state.members.values().all(|m| *m.silent.borrow()) {
                    return;
                }
            }
            // The sender lives as long as the set.
            drop(news.changed().await);
        }
    }

    async fn wait_for(self: &Arc<Self>, preference: &ReadPreference) -> Result<String> {
        let until = Instant::now() + self.pace.find;
        let mut news = self.news.subscribe();
        loop {
            if let Some(host) = self.pick(preference) {
                return Ok(host);
            }
            if Instant::now() >= until {
                return Err(err!(
                    FAILED_TO_SATISFY_READ_PREFERENCE,
                    "Could not find host matching read preference {{ mode: \"{}\" }} for set {}",
                    preference.mode.name(),
                    self.name
                ));
            }
            // The set lives while it is waited for, so waiting ends by news or by time.
            drop(
                tokio::time::timeout_at(until.min(Instant::now() + Duration::from_secs(1)), news.changed())
                    .await,
            );
        }
    }

    /// What was believed of the member may be wrong: it is asked now.
    fn doubt(&self, host: &str) {
        let mut state = self.state.lock();
        if let Some(member) = state.members.get_mut(host) {
            member.server.role = Role::Other;
            member.ask_now.notify_one();
        }
    }

    fn watch_seeds(self: &Arc<Self>, state: &mut State) {
        for seed in &self.seeds {
            self.watch(state, seed);
        }
    }

    fn watch(self: &Arc<Self>, state: &mut State, host: &str) {
        if state.members.contains_key(host) {
            return;
        }
        let mut member = Member::new(host);
        let task = watch::run(
            Arc::downgrade(self),
            self.transport.clone(),
            host.to_string(),
            member.ask_now.clone(),
        );
        member.task = Some(runtime::spawn(task).abort_handle());
        state.members.insert(host.to_string(), member);
    }

    /// Takes in a reply of `hello`.
    fn heard(self: &Arc<Self>, host: &str, hello: Doc<'_>, ping_ms: Option<f64>) {
        let mut state = self.state.lock();
        if !state.members.contains_key(host) {
            return;
        }
        let ours = hello.get_str("setName").is_some_and(|name| name == self.name);
        let mut role = match (hello.get_bool("isWritablePrimary"), hello.get_bool("secondary")) {
            _ if !ours => Role::Other,
            (Some(true), _) => Role::Primary,
            (_, Some(true)) => Role::Secondary,
            _ => Role::Other,
        };
        if role == Role::Primary {
            let election = match hello.get("electionId") {
                Some(document::ValueRef::ObjectId(id)) => id,
                _ => ObjectId::default(),
            };
            let reign = (election, hello.get_i64("setVersion").unwrap_or(-1));
            if reign < state.newest {
                role = Role::Other;
            } else {
                state.newest = reign;
                let others = state.members.values_mut().filter(|m| m.server.host != host);
                others.filter(|m| m.server.role == Role::Primary).for_each(|m| m.server.role = Role::Other);
            }
        }
        if ours {
            self.follow_list(&mut state, host, hello, role == Role::Primary);
        }
        if let Some(member) = state.members.get_mut(host) {
            member.take(hello, role, ping_ms);
        }
        drop(state);
        self.news.send_modify(|n| *n += 1);
    }

    /// Members that the reply names are watched; the primary's list is complete.
    fn follow_list(self: &Arc<Self>, state: &mut State, host: &str, hello: Doc<'_>, complete: bool) {
        let mut named: Vec<&str> = Vec::new();
        for list in ["hosts", "passives"] {
            let list = hello.get(list).and_then(|v| v.as_array());
            named.extend(list.into_iter().flat_map(|l| l.iter()).filter_map(|e| e.value().as_str()));
        }
        for other in &named {
            self.watch(state, other);
            state.members.entry(other.to_string()).and_modify(|member| member.named = true);
        }
        if complete {
            state.members.retain(|other, member| {
                let stays = other == host || named.contains(&other.as_str());
                if !stays && member.named {
                    member.silent.send_replace(true);
                }
                stays
            });
        }
    }

    /// The member did not answer.
    fn missed(&self, host: &str) {
        let mut state = self.state.lock();
        if let Some(member) = state.members.get_mut(host) {
            member.server.role = Role::Other;
            member.silent.send_replace(true);
        }
        drop(state);
        self.news.send_modify(|n| *n += 1);
    }

    /// Whether the set is still used; where it is not, nothing is known of it from now on.
    fn is_used(&self) -> bool {
        let mut state = self.state.lock();
        // Held by the calls under way to its members, and to all of it.
        let held = |m: &Member| m.silent.receiver_count() > 0;
        if self.news.receiver_count() > 0 || state.members.values().any(held) {
            state.used = Instant::now();
        }
        let used = state.used.elapsed() < self.pace.idle;
        if !used {
            state.members.clear();
        }
        used
    }
}

impl Member {
    fn take(&mut self, hello: Doc<'_>, role: Role, ping_ms: Option<f64>) {
        self.silent.send_if_modified(|silent| std::mem::replace(silent, false));
        self.hidden = hello.get_bool("hidden") == Some(true);
        let server = &mut self.server;
        server.role = role;
        server.heard_ms = crate::router::task::now_ms();
        if let Some(new) = ping_ms {
            server.ping_ms = if server.ping_ms == 0.0 { new } else { 0.8 * server.ping_ms + 0.2 * new };
        }
        let date = hello.get_document("lastWrite").and_then(|d| d.get("lastWriteDate"));
        if let Some(document::ValueRef::DateTime(ms)) = date {
            server.last_write_ms = ms;
        }
        let tags = hello.get_document("tags");
        server.tags = tags.map_or_else(TagSet::new, |tags| {
            tags.iter()
                .filter_map(|e| Some((e.name().to_string(), e.value().as_str()?.to_string())))
                .collect()
        });
    }
}

/// How long to go on sending a request that was refused or could not be sent.
pub fn retry_until() -> Instant {
    Instant::now() + FIND_LIMIT
}

#[cfg(test)]
mod tests;
