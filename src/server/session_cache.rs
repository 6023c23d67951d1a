//! The logical sessions that this process has seen used since `config.system.sessions` was refreshed last, and those that their
//! clients have ended.
//!
//! This is apart from a node's table of what sessions have written ([`node::session`]): a session that only reads is here
//! alone. [`crate::session_refresh`] takes everything out regularly and writes it to the collection:
//!
//! ```text
//! a command comes       used: its session, and when
//! endSessions           the session goes from used to ended
//! a refresh             takes both; puts both back where they cannot be written
//! ```
//! Invariant: a session is not in both. One that is used after its end is in use, and one that ends after its use has ended; what a
//! refresh puts back gives way to what has come since.

use document::{Document, Result, Value, bail, doc, encoding};
use node::operation::SessionId;
use parking_lot::Mutex;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Sessions that are to be written.
#[derive(Default)]
pub struct Sessions {
    /// Sessions in use, and when they were used last, in milliseconds.
    used: HashMap<SessionId, i64>,
    ended: HashSet<SessionId>,
}

impl Sessions {
    /// The sessions in use, in order.
    pub fn used(&self) -> Vec<(SessionId, i64)> {
        let mut used: Vec<(SessionId, i64)> = self.used.iter().map(|(id, at)| (*id, *at)).collect();
        used.sort_unstable();
        used
    }
    /// Those that have ended, in order.
    pub fn ended(&self) -> Vec<SessionId> {
        let mut ended: Vec<SessionId> = self.ended.iter().copied().collect();
        ended.sort_unstable();
        ended
    }
}

/// How old a connection's note of a session's use may be, in milliseconds, before it is made anew.
const NOTE_AGE_MS: i64 = 1000;

/// That a session's use is noted: a connection looks at this before it asks the cache.
#[derive(Clone, Copy, Debug)]
pub struct Noted {
    id: SessionId,
    at_ms: i64,
    generation: u64,
}

impl Noted {
    /// Whether the note serves for a use of this session now.
    pub fn covers(&self, id: SessionId, now_ms: i64, generation: u64) -> bool {
        self.id == id && self.generation == generation && now_ms.saturating_sub(self.at_ms) < NOTE_AGE_MS
    }
}

/// What the last run of a regular job has done, and how many runs there were.
#[derive(Default)]
struct Job {
    runs: i32,
    started_ms: i64,
    took: Duration,
}

impl Job {
    fn begin(&mut self, now_ms: i64) {
        *self = Job { runs: self.runs.saturating_add(1), started_ms: now_ms, took: Duration::ZERO };
    }
}

/// What `serverStatus` tells of refreshing the collection and of reaping the table.
#[derive(Default)]
struct Jobs {
    refresh: Job,
    refreshed: usize,
    ended: usize,
    cursors_closed: usize,
    reap: Job,
    reaped: usize,
}

/// The sessions of one process node.
pub struct SessionCache {
    sessions: Mutex<Sessions>,
    /// Rises when a session may have gone from the used ones: notes of an earlier generation serve no more.
    generation: AtomicU64,
    jobs: Mutex<Jobs>,
}

impl SessionCache {
    /// A cache of a node that starts at `now_ms`.
    pub fn new(now_ms: i64) -> SessionCache {
        let job = || Job { started_ms: now_ms, ..Job::default() };
        let jobs = Jobs { refresh: job(), reap: job(), ..Jobs::default() };
        SessionCache { sessions: Mutex::default(), generation: AtomicU64::new(0), jobs: Mutex::new(jobs) }
    }

    /// To be asked before a note is made.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }
    fn outdate_notes(&self) {
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Notes that a client's session was used. `most` is how many sessions may be in use.
    ///
    /// # Errors
    /// TooManyLogicalSessions (261) for one that is not in use yet.
    pub fn note(&self, id: SessionId, now_ms: i64, most: usize) -> Result<()> {
        let mut sessions = self.sessions.lock();
        let is_full = sessions.used.len() >= most;
        match sessions.used.entry(id) {
            Entry::Occupied(mut e) => *e.get_mut() = now_ms.max(*e.get()),
            Entry::Vacant(_) if is_full => bail!(
                TOO_MANY_LOGICAL_SESSIONS,
                "Unable to add session ID {} into the cache because the number of active sessions is too high",
                shown(&id)
            ),
            Entry::Vacant(e) => drop(e.insert(now_ms)),
        }
        sessions.ended.remove(&id);
        Ok(())
    }
    /// As [`SessionCache::note`], for what a connection does again and again: only now and then it asks more than its own note.
    pub fn note_again(
        &self,
        noted: &Mutex<Option<Noted>>,
        id: SessionId,
        now_ms: i64,
        most: impl FnOnce() -> usize,
    ) -> Result<()> {
        let generation = self.generation();
        if noted.lock().is_some_and(|noted| noted.covers(id, now_ms, generation)) {
            return Ok(());
        }
        self.note(id, now_ms, most())?;
        *noted.lock() = Some(Noted { id, at_ms: now_ms, generation });
        Ok(())
    }
    /// Notes that operations of these sessions are running: they are in use, however many there are, unless they have ended.
    pub fn note_running(&self, ids: &[SessionId], now_ms: i64) {
        let mut sessions = self.sessions.lock();
        for id in ids {
            if !sessions.ended.contains(id) {
                sessions.used.insert(*id, now_ms);
            }
        }
    }
    /// Notes that their clients have ended these sessions. What goes beyond `most` expires by its age.
    pub fn end(&self, ids: &[SessionId], most: usize) {
        let mut sessions = self.sessions.lock();
        for id in ids {
            sessions.used.remove(id);
            if sessions.ended.len() < most {
                sessions.ended.insert(*id);
            }
        }
        drop(sessions);
        self.outdate_notes();
    }

    /// Takes everything out.
    pub fn take(&self) -> Sessions {
        let taken = std::mem::take(&mut *self.sessions.lock());
        self.outdate_notes();
        taken
    }
    /// Puts back what was taken and could not be written.
    pub fn put_back(&self, taken: Sessions) {
        let mut sessions = self.sessions.lock();
        let newer = std::mem::replace(&mut *sessions, taken);
        for (id, at) in newer.used {
            sessions.ended.remove(&id);
            sessions.used.insert(id, at);
        }
        for id in newer.ended {
            sessions.used.remove(&id);
            sessions.ended.insert(id);
        }
    }
    /// Forgets sessions that were not used since `before_ms`.
    pub fn forget_unused(&self, before_ms: i64) {
        self.sessions.lock().used.retain(|_, at| *at >= before_ms);
        self.outdate_notes();
    }
    /// Forgets that sessions have ended: there is nothing to remove them from.
    pub fn forget_ended(&self) {
        self.sessions.lock().ended.clear();
    }

    /// Whether the session was used since it was taken out last.
    pub fn is_used(&self, id: &SessionId) -> bool {
        self.sessions.lock().used.contains_key(id)
    }
    /// The sessions in use, in order, and when they were used last.
    pub fn list(&self) -> Vec<(SessionId, i64)> {
        self.sessions.lock().used()
    }

    pub fn refresh_begins(&self, now_ms: i64) {
        let mut jobs = self.jobs.lock();
        jobs.refresh.begin(now_ms);
        (jobs.refreshed, jobs.ended, jobs.cursors_closed) = (0, 0, 0);
    }
    pub fn count_refreshed(&self, sessions: usize) {
        self.jobs.lock().refreshed = sessions;
    }
    pub fn count_ended(&self, sessions: usize) {
        self.jobs.lock().ended = sessions;
    }
    pub fn count_closed(&self, cursors: usize) {
        self.jobs.lock().cursors_closed = cursors;
    }
    pub fn refresh_ends(&self, took: Duration) {
        self.jobs.lock().refresh.took = took;
    }
    pub fn reap_begins(&self, now_ms: i64) {
        let mut jobs = self.jobs.lock();
        jobs.reap.begin(now_ms);
        jobs.reaped = 0;
    }
    pub fn reap_ends(&self, took: Duration, reaped: usize) {
        let mut jobs = self.jobs.lock();
        jobs.reap.took = took;
        jobs.reaped = reaped;
    }

    /// `serverStatus.logicalSessionRecordCache`; `catalog` is the size of the table of what sessions have written.
    pub fn status(&self, catalog: usize) -> Document {
        let active = self.sessions.lock().used.len();
        let jobs = self.jobs.lock();
        let count = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
        let millis = |job: &Job| i32::try_from(job.took.as_millis()).unwrap_or(i32::MAX);
        doc! {
            "activeSessionsCount": count(active),
            "sessionsCollectionJobCount": jobs.refresh.runs,
            "lastSessionsCollectionJobDurationMillis": millis(&jobs.refresh),
            "lastSessionsCollectionJobTimestamp": Value::DateTime(jobs.refresh.started_ms),
            "lastSessionsCollectionJobEntriesRefreshed": count(jobs.refreshed),
            "lastSessionsCollectionJobEntriesEnded": count(jobs.ended),
            "lastSessionsCollectionJobCursorsClosed": count(jobs.cursors_closed),
            "transactionReaperJobCount": jobs.reap.runs,
            "lastTransactionReaperJobDurationMillis": millis(&jobs.reap),
            "lastTransactionReaperJobTimestamp": Value::DateTime(jobs.reap.started_ms),
            "lastTransactionReaperJobEntriesCleanedUp": count(jobs.reaped),
            "sessionCatalogSize": count(catalog),
        }
    }
}

/// A client's session as error messages name it: its UUID and owner, and the places of a child's number and UUID.
fn shown(id: &SessionId) -> String {
    format!("{} - {} -  - ", document::uuid::to_string(&id.id), encoding::base64(&id.uid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::codes;
    use node::operation::NO_USER;

    fn id(n: u8) -> SessionId {
        SessionId::of_client([n; 16], NO_USER)
    }
    fn used(cache: &SessionCache) -> Vec<(SessionId, i64)> {
        cache.list()
    }
    fn ended(cache: &SessionCache) -> Vec<SessionId> {
        cache.sessions.lock().ended()
    }

    #[test]
    fn no_more_sessions_are_in_use_than_may_be_and_those_in_use_stay() {
        let cache = SessionCache::new(0);
        cache.note(id(1), 10, 2).unwrap();
        cache.note(id(2), 10, 2).unwrap();
        let error = cache.note(id(3), 20, 2).unwrap_err();
        assert_eq!(error.code, codes::TOO_MANY_LOGICAL_SESSIONS);
        let name =
            "03030303-0303-0303-0303-030303030303 - 47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU= -  - ";
        assert!(error.message.contains(name), "{}", error.message);
        cache.note(id(1), 20, 2).unwrap();
        cache.note(id(2), 5, 2).unwrap();
        assert_eq!(used(&cache), [(id(1), 20), (id(2), 10)]);
        // An end makes room, and so does a refresh.
        cache.end(&[id(1)], 2);
        cache.note(id(3), 30, 2).unwrap();
        cache.take();
        cache.note(id(4), 30, 2).unwrap();
    }

    #[test]
    fn what_is_put_back_gives_way_to_what_has_come_since() {
        let cache = SessionCache::new(0);
        for n in [1, 2, 3, 4] {
            cache.note(id(n), 10 * i64::from(n), 10).unwrap();
        }
        cache.end(&[id(5), id(6)], 10);
        let taken = cache.take();
        assert_eq!((used(&cache), ended(&cache)), (vec![], vec![]));
        cache.note(id(2), 100, 10).unwrap();
        cache.note(id(5), 100, 10).unwrap();
        cache.end(&[id(3)], 10);
        cache.put_back(taken);
        assert_eq!(used(&cache), [(id(1), 10), (id(2), 100), (id(4), 40), (id(5), 100)]);
        assert_eq!(ended(&cache), [id(3), id(6)]);
    }

    #[test]
    fn a_session_that_is_used_after_its_end_is_in_use() {
        let cache = SessionCache::new(0);
        let noted = Mutex::new(None);
        let note = |now| cache.note_again(&noted, id(1), now, || 10).unwrap();
        note(10);
        note(11);
        assert_eq!(used(&cache), [(id(1), 10)], "a note serves for a while");
        cache.end(&[id(1)], 10);
        // An operation that runs keeps no session that has ended.
        cache.note_running(&[id(1), id(2)], 12);
        assert_eq!((used(&cache), ended(&cache)), (vec![(id(2), 12)], vec![id(1)]));
        note(13);
        assert_eq!((used(&cache), ended(&cache)), (vec![(id(1), 13), (id(2), 12)], vec![]));
        // What is used after a refresh has taken it is for the next one.
        cache.take();
        note(14);
        assert_eq!(used(&cache), [(id(1), 14)]);
    }

    #[test]
    fn where_nothing_is_written_sessions_go_by_their_age() {
        let cache = SessionCache::new(0);
        cache.note(id(1), 10, 10).unwrap();
        cache.note(id(2), 20, 10).unwrap();
        cache.end(&[id(3)], 10);
        cache.forget_unused(20);
        cache.forget_ended();
        assert_eq!((used(&cache), ended(&cache)), (vec![(id(2), 20)], vec![]));
    }

    #[test]
    fn jobs_are_counted_and_their_last_run_is_told() {
        let cache = SessionCache::new(5);
        let number = |name: &str| cache.status(7).get_i64(name).unwrap();
        assert_eq!(cache.status(7).get("lastSessionsCollectionJobTimestamp"), Some(&Value::DateTime(5)));
        cache.refresh_begins(10);
        cache.count_refreshed(3);
        cache.count_ended(2);
        cache.count_closed(1);
        cache.refresh_ends(Duration::from_millis(4));
        let names = ["EntriesRefreshed", "EntriesEnded", "CursorsClosed", "DurationMillis"];
        let last = || names.map(|name| number(&format!("lastSessionsCollectionJob{name}")));
        assert_eq!(last(), [3, 2, 1, 4]);
        cache.refresh_begins(20);
        assert_eq!(last(), [0; 4]);
        cache.reap_begins(30);
        cache.reap_ends(Duration::from_millis(6), 9);
        assert_eq!(number("lastTransactionReaperJobEntriesCleanedUp"), 9);
        assert_eq!((number("sessionsCollectionJobCount"), number("transactionReaperJobCount")), (2, 1));
        assert_eq!((number("activeSessionsCount"), number("sessionCatalogSize")), (0, 7));
    }
}
