//! Migrations of the balancer's whose answers were lost.
//!
//! Each is noted in `config.migrations` before its donor is asked, and struck off once its end is known, so that the next
//! primary of the config server knows what the one before has asked for. All of a round are noted in one commit, the only one
//! that a round adds to what its migrations commit themselves, and struck off in one write that nothing waits for. balancerStop waits for what goes on, and fences what a
//! shard out of reach was to give away; that stays noted until the shard has said that nothing of the kind is under way.
//!
//! A migration is committed only as long as its note stands and is not fenced. A deposed primary that was paused may ask for one when it
//! wakes, after its successor has stopped the balancer and struck off the note; and a donor that was paused before it began learns the
//! raised version of its chunk like any other.

use crate::config::{ConfigServer, MIGRATIONS, delete, put};
use crate::messages::Message;
use crate::messages::migration::JoinMigrations;
use crate::remote::Target;
use crate::shard::migration::MoveRange;
use document::{Document, ObjectId, Result, Value, doc};
use futures::future::BoxFuture;
use node::Operation;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// How long the end of a round looks for the ends of migrations whose answers were lost.
const SETTLE_MAX: Duration = Duration::from_secs(1);

/// Of a note: its migration is not committed any more, whatever its donor knows.
pub(crate) const FENCED: &str = "fenced";

/// Migrations whose answers were lost.
#[derive(Default)]
pub(super) struct Unsure {
    /// Shards that may be in one.
    shards: BTreeSet<String>,
    /// Those that were asked for, each once.
    migrations: Vec<Noted>,
}

impl Unsure {
    fn note(&mut self, noted: Noted) {
        self.shards.extend([noted.request.from.clone(), noted.request.to.clone()]);
        // One that was lost before was asked for again.
        self.migrations.retain(|m| m.id != noted.id);
        self.migrations.push(noted);
    }
    fn holds(&self, id: ObjectId) -> bool {
        self.migrations.iter().any(|m| m.id == id)
    }
}

/// A document of `config.migrations`.
#[derive(Clone)]
struct Noted {
    id: ObjectId,
    request: MoveRange,
    /// It cannot be committed any more, and its donor has not said yet that it knows.
    fenced: bool,
}

impl Noted {
    fn to_document(&self) -> Document {
        let mut d =
            doc! { "_id": self.id, "ns": self.request.ns.as_str(), "request": self.request.to_document() };
        if self.fenced {
            d.push(FENCED, true);
        }
        d
    }
    fn from_document(d: &Document) -> Option<Noted> {
        let request = MoveRange::parse(d.get_document("request")?.to_doc_buf().doc()).ok()?;
        let id = d.get("_id").and_then(Value::as_object_id)?;
        Some(Noted { id, request, fenced: d.get_bool(FENCED) == Some(true) })
    }
}

/// A migration that is being made. Unless its end is known, it stays noted.
pub(super) struct UnderWay {
    unsure: Arc<Mutex<Unsure>>,
    noted: Noted,
    is_over: bool,
}

impl UnderWay {
    pub(super) fn request(&self) -> &MoveRange {
        &self.noted.request
    }
    /// Its end is known, or it was not asked for.
    pub(super) fn end(&mut self) {
        self.is_over = true;
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if !self.is_over {
            self.unsure.lock().note(self.noted.clone());
        }
    }
}

impl ConfigServer {
    /// What the primary before has asked for, and may be under way still. Whatever this node knew of an earlier reign of its own
    /// is there as well, unless others have dealt with it since.
    pub(super) fn recall_migrations(&self) {
        let noted = self.local.find(MIGRATIONS, &Document::new()).unwrap_or_default();
        let migrations = noted.iter().filter_map(Noted::from_document).collect();
        let shards = self.catalog().shards().into_iter().map(|s| s.name).collect();
        *self.balancer.unsure.lock() = Unsure { shards, migrations };
    }

    /// Notes migrations that are about to be asked for, all or none.
    ///
    /// # Errors
    /// A failed log: none must be asked for.
    pub(super) async fn begin_migrations(&self, requests: Vec<MoveRange>) -> Result<Vec<UnderWay>> {
        let noted: Vec<Noted> = requests.into_iter().map(|request| self.noted(request)).collect();
        self.commit(&noted.iter().map(|n| put(MIGRATIONS, n.to_document())).collect::<Vec<_>>()).await?;
        let under_way = |noted| UnderWay { unsure: self.balancer.unsure.clone(), noted, is_over: false };
        Ok(noted.into_iter().map(under_way).collect())
    }

    fn noted(&self, request: MoveRange) -> Noted {
        // The same one may have been lost before. What was fenced stays so.
        let same = |m: &&Noted| !m.fenced && MoveRange { note: None, ..m.request.clone() } == request;
        let known = self.balancer.unsure.lock().migrations.iter().find(same).map(|m| m.id);
        let id = known.unwrap_or_else(|| self.node.new_object_id());
        Noted { id, request: MoveRange { note: Some(id), ..request }, fenced: false }
    }

    /// Strikes off those whose end is known, unless an earlier attempt at one was lost.
    pub(super) async fn end_migrations(&self, under_way: Vec<UnderWay>) {
        let ended = |u: &&UnderWay| u.is_over && !self.balancer.unsure.lock().holds(u.noted.id);
        let ids: Vec<ObjectId> = under_way.iter().filter(ended).map(|u| u.noted.id).collect();
        self.strike_off(&ids).await;
    }

    /// A note that stays, since the write failed or was rolled back, costs a chunk a version, at worst: balancerStop asks its donor
    /// once more. So no majority is waited for.
    async fn strike_off(&self, ids: &[ObjectId]) {
        let writes: Vec<_> = ids.iter().map(|id| delete(MIGRATIONS, Value::ObjectId(*id))).collect();
        drop(self.node.commit_batch(&Operation::internal(), &writes).await);
    }

    /// Waits for migrations whose answers were lost: their donors go on with them. A shard that cannot be reached is asked
    /// again next time; what it was to give away is fenced.
    ///
    /// # Errors
    /// A fence that could not be written.
    pub(super) async fn join_unsure(&self) -> Result<()> {
        for noted in self.join_reached().await.iter().filter(|m| !m.fenced) {
            let fence = put(MIGRATIONS, Noted { fenced: true, ..noted.clone() }.to_document());
            self.fence_migration(&noted.request, fence).await?;
            let mut unsure = self.balancer.unsure.lock();
            unsure.migrations.iter_mut().filter(|m| m.id == noted.id).for_each(|m| m.fenced = true);
        }
        Ok(())
    }

    /// Between rounds: strikes off what has ended since, so that notes do not add up. It takes a moment at most; what goes on is joined
    /// after another round.
    pub(super) async fn settle_unsure(&self) {
        if !self.balancer.unsure.lock().migrations.is_empty() {
            drop(tokio::time::timeout(SETTLE_MAX, self.join_reached()).await);
        }
    }

    /// Waits for migrations whose answers were lost, and strikes them off; those whose donors cannot be reached.
    async fn join_reached(&self) -> Vec<Noted> {
        let (shards, known) = {
            let unsure = self.balancer.unsure.lock();
            (unsure.shards.iter().cloned().collect::<Vec<_>>(), unsure.migrations.clone())
        };
        let joined = futures::future::join_all(shards.iter().map(|name| self.join_shard(name, &known))).await;
        let joined: BTreeSet<&String> =
            shards.iter().zip(joined).filter_map(|(s, ok)| ok.then_some(s)).collect();
        let (ended, left): (Vec<Noted>, Vec<Noted>) =
            known.into_iter().partition(|m| joined.contains(&m.request.from));
        self.strike_off(&ended.iter().map(|m| m.id).collect::<Vec<_>>()).await;
        {
            let mut unsure = self.balancer.unsure.lock();
            unsure.shards.retain(|s| !joined.contains(s));
            unsure.migrations.retain(|m| ended.iter().all(|e| e.id != m.id));
        }
        left
    }

    /// Whether no migration is under way on the shard any more.
    async fn join_shard(&self, name: &str, known: &[Noted]) -> bool {
        let Ok(shard) = self.catalog().shard(name) else {
            // It is gone.
            return true;
        };
        let join = JoinMigrations { stop: None }.to_document();
        let host = Target::Host(&shard.host);
        let mut joined: BoxFuture<'_, Result<Document>> = Box::pin(self.remote.admin(host, join));
        // A recipient waits for its donor, be that paused.
        for donor in known.iter().filter(|m| m.request.to == name).map(|m| m.request.from.as_str()) {
            joined = Box::pin(self.while_heard(donor, joined));
        }
        // And a donor tells its recipient that the migration is over, be that dead: until it is back.
        for recipient in known.iter().filter(|m| m.request.from == name).map(|m| m.request.to.as_str()) {
            joined = Box::pin(self.while_heard(recipient, joined));
        }
        self.while_heard(name, joined).await.is_ok()
    }
}
