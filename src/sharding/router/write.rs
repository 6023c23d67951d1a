//! `insert`, `update` and `delete`: statements to the shards that own what they touch.
//!
//! ```text
//! ordered     the longest run of statements for one shard, then the next; the first error ends the command
//! unordered   what is for one shard goes there in one batch, all batches at once
//! ```
//! A statement concerns one shard, several (multi), or nobody knows which ([`one_document`]). What a shard refuses as stale
//! was not executed: an ordered batch was executed before the refused statement, an unordered one but for those refused.
//! Those statements, and only those, are targeted anew. Every statement keeps the index the client gave it, as the
//! index of its error and as its statement id, by which a shard knows a repetition.

use super::body::{Placement, Versions};
use super::cluster::Call;
use super::collation;
use super::one_document::{self, put_moved};
use super::paused_migrations::Hold;
use super::target::{self, Target};
use super::task::{Retry, Task, is_stale};
use super::timeseries::{self, Series};
use crate::chunk::ShardId;
use crate::routing::RoutingTable;
use document::error::RETRIABLE;
use document::{Doc, DocBuf, DocWriter, Document, Error, Result, Value, ValueRef, bail, codes, err};
use futures::future::join_all;
use node::write::statement::{error_details, fields_beside};
use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use wire::client::RemoteError;

/// The most statements of one command.
const BATCH_MAX: usize = 100_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Insert,
    Update,
    Delete,
}

impl Kind {
    /// The command's list of statements.
    pub fn list(self) -> &'static str {
        match self {
            Kind::Insert => "documents",
            Kind::Update => "updates",
            Kind::Delete => "deletes",
        }
    }
}

pub async fn insert(task: &Task<'_>) -> Result<DocBuf> {
    run(task, Kind::Insert).await
}
pub async fn update(task: &Task<'_>) -> Result<DocBuf> {
    run(task, Kind::Update).await
}
pub async fn delete(task: &Task<'_>) -> Result<DocBuf> {
    run(task, Kind::Delete).await
}

/// Where a statement goes.
#[derive(Clone, Debug, PartialEq)]
enum Aim {
    One(ShardId),
    Many(Vec<ShardId>),
    /// One document, of which the statement does not say where it is.
    Somewhere,
}

/// A statement: as it came, or with the `_id` the router gave it.
pub enum Statement<'a> {
    Borrowed(Doc<'a>),
    Owned(DocBuf),
}

impl Statement<'_> {
    pub fn doc(&self) -> Doc<'_> {
        match self {
            Statement::Borrowed(d) => *d,
            Statement::Owned(d) => d.doc(),
        }
    }
}

/// Runs statements of another command's making: `task` holds a command of this kind without its list. `ids` are the
/// statement ids.
pub async fn execute<'a>(
    task: &Task<'a>,
    kind: Kind,
    statements: Vec<Statement<'a>>,
    ids: Vec<i32>,
) -> Result<Outcome> {
    let ns = task.request.namespace()?;
    let mut write = Write::of(task, &ns, kind, statements);
    write.ids = Some(ids);
    write.finish().await?;
    Ok(write.outcome)
}

async fn run(task: &Task<'_>, kind: Kind) -> Result<DocBuf> {
    let ns = task.request.namespace()?;
    let mut write = Write::new(task, &ns, kind)?;
    let placement = write.placement().await?;
    write.give_ids(&placement);
    let reply = match write.in_one_batch(&placement).await? {
        Some(reply) => reply,
        None => {
            write.finish().await?;
            std::mem::take(&mut write.outcome).reply(kind)
        }
    };
    write.count(placement.table.as_deref());
    if !task.op.write_concern.is_unacknowledged() {
        return Ok(reply);
    }
    let mut reply = reply.doc().to_document();
    reply.remove("writeErrors");
    Ok(reply.to_doc_buf())
}

/// A write command under way.
pub struct Write<'t, 'a> {
    pub task: &'t Task<'a>,
    pub ns: &'t str,
    pub kind: Kind,
    pub statements: Vec<Statement<'a>>,
    pub outcome: Outcome,
    ordered: bool,
    /// Not executed yet, in order.
    pending: VecDeque<usize>,
    retry: Retry,
    stopped: bool,
    ids_given: bool,
    /// Statement ids that are not the client's list of this command.
    ids: Option<Vec<i32>>,
    /// Whether the client's command has this statement alone: only then may it move its document to another shard.
    alone: bool,
    /// A statement that was refused because it moves its document, and is executed anew in a transaction.
    moves: Option<usize>,
    /// What the statements concern, if it is a sharded time series.
    series: Option<Box<OfSeries>>,
    /// The shards of a sharded collection that statements went to.
    reached: BTreeSet<ShardId>,
}

/// A sharded time series, and the client's command said of its buckets.
struct OfSeries {
    series: Series,
    body: DocBuf,
}

/// What a batch came to.
enum Sent {
    Executed(DocBuf),
    Failed(Box<RemoteError>),
}

impl<'t, 'a> Write<'t, 'a> {
    fn new(task: &'t Task<'a>, ns: &'t str, kind: Kind) -> Result<Write<'t, 'a>> {
        let statements: Vec<Statement<'a>> =
            task.request.documents(kind.list()).map(Statement::Borrowed).collect();
        let n = statements.len();
        if !task.request.has_documents(kind.list()) {
            let name = task.request.name();
            bail!(IDL_FAILED_TO_PARSE, "BSON field '{name}.{}' is missing but a required field", kind.list());
        }
        check_list(task, kind)?;
        if !(1..=BATCH_MAX).contains(&n) {
            bail!(INVALID_LENGTH, "Write batch sizes must be between 1 and {BATCH_MAX}. Got {n} operations.");
        }
        node::write::statement::check_statement_ids(task.body(), n)?;
        // Targeting asks every statement for its filter, and would make one up.
        if kind != Kind::Insert && statements.iter().any(|s| s.doc().get("q").is_none()) {
            let (name, list) = (task.request.name(), kind.list());
            bail!(IDL_FAILED_TO_PARSE, "BSON field '{name}.{list}.q' is missing but a required field");
        }
        Ok(Write::of(task, ns, kind, statements))
    }
    fn of(task: &'t Task<'a>, ns: &'t str, kind: Kind, statements: Vec<Statement<'a>>) -> Write<'t, 'a> {
        Write {
            task,
            ns,
            kind,
            pending: (0..statements.len()).collect(),
            alone: statements.len() == 1,
            moves: None,
            series: None,
            reached: BTreeSet::new(),
            statements,
            outcome: Outcome::default(),
            ordered: !matches!(task.body().get("ordered"), Some(ValueRef::Boolean(false))),
            retry: Retry::default(),
            stopped: false,
            ids_given: false,
            ids: None,
        }
    }
    /// Statement `i` as a command of its own, which is a part of `task`'s transaction.
    pub(super) fn one<'s>(&'s self, task: &'s Task<'s>, i: usize, series: Option<&Series>) -> Write<'s, 's>
    where
        'a: 's,
    {
        let statement = Statement::Borrowed(self.statements[i].doc());
        let mut one = Write::of(task, self.ns, self.kind, vec![statement]);
        one.concern(series.cloned());
        Write { ids: Some(vec![self.statement_id(i)]), alone: self.alone, ..one }
    }
    /// Executes what is pending.
    async fn finish(&mut self) -> Result<()> {
        while !self.is_finished() {
            let placement = self.placement().await?;
            self.give_ids(&placement);
            if self.ordered {
                self.next_run(&placement).await?;
            } else {
                self.all_batches(&placement).await?;
            }
            if let Some(error) = self.outcome.fatal.take() {
                return Err(error);
            }
        }
        Ok(())
    }
    /// Where what the statements concern is now.
    async fn placement(&mut self) -> Result<Placement> {
        let placed = timeseries::placed(self.task, self.ns).await?;
        self.concern(placed.series);
        Ok(placed.placement)
    }
    fn concern(&mut self, series: Option<Series>) {
        self.series = series.map(|series| {
            let body = series.renamed(self.task.body());
            Box::new(OfSeries { series, body })
        });
    }
    /// Notes that statement `i` asks all shards for its one document.
    fn count_broadcast(&mut self, placement: &Placement, i: usize) {
        self.reached.extend(placement.shards());
        let statement = self.statements[i].doc();
        let operators = statement
            .get_document("u")
            .and_then(|u| u.iter().next())
            .is_some_and(|e| e.name_bytes().first() == Some(&b'$'));
        if self.kind == Kind::Update
            && operators
            && statement.get_document("q").is_some_and(target::names_one)
        {
            self.task.router.targeted.broadcast_by_id.increment();
        }
    }
    /// Counts the command by the shards it concerned.
    fn count(&self, table: Option<&RoutingTable>) {
        let targeted = &self.task.router.targeted;
        let spread = match self.kind {
            Kind::Insert => &targeted.insert,
            Kind::Update => &targeted.update,
            Kind::Delete => &targeted.delete,
        };
        spread.note(table, self.reached.len());
    }
    fn is_finished(&self) -> bool {
        self.stopped || self.pending.is_empty()
    }

    /// Gives documents for a sharded collection their `_id` here, so that a repetition has the same.
    fn give_ids(&mut self, placement: &Placement) {
        if self.kind != Kind::Insert || placement.table.is_none() || self.ids_given {
            return;
        }
        self.ids_given = true;
        for statement in &mut self.statements {
            if let Some(owned) = self.task.router.with_id(statement.doc()) {
                *statement = Statement::Owned(owned);
            }
        }
    }

    /// Where statement `i` goes.
    fn aim(&self, placement: &Placement, i: usize) -> Result<Aim> {
        let Some(table) = &placement.table else { return Ok(Aim::One(placement.home().clone())) };
        let statement = self.statements[i].doc();
        if let Some(of) = &self.series {
            return self.aim_in_series(&of.series, table, statement);
        }
        match self.kind {
            Kind::Insert => Ok(Aim::One(target::document(table, statement)?)),
            Kind::Update => self.aim_update(table, statement),
            Kind::Delete => {
                let target = self.filter_target(table, statement)?;
                Ok(aim_of(target, statement.get_i64("limit") == Some(0)))
            }
        }
    }
    fn aim_in_series(&self, series: &Series, table: &RoutingTable, statement: Doc<'_>) -> Result<Aim> {
        if self.kind == Kind::Insert {
            return Ok(Aim::One(target::document(table, series.key_fields(statement)?.doc())?));
        }
        let filter = statement.get_document("q").unwrap_or(Doc::empty());
        let context = collation::context(self.task, statement, table)?;
        let target = target::filter(table, series.key_filter(filter).doc(), &context);
        let flag = |name: &str| statement.get(name).is_some_and(|v| v.truthy());
        match self.kind {
            // Any shard refuses what no time series takes.
            Kind::Update if !flag("multi") || flag("upsert") || series.options.meta.is_none() => {
                Ok(Aim::One(target.shards[0].clone()))
            }
            Kind::Delete => Ok(aim_of(target, !flag("limit"))),
            _ => Ok(aim_of(target, true)),
        }
    }
    fn aim_update(&self, table: &RoutingTable, statement: Doc<'_>) -> Result<Aim> {
        let flag = |name: &str| statement.get(name).is_some_and(|v| v.truthy());
        let target = self.filter_target(table, statement)?;
        if flag("upsert") && target.key.is_none() {
            if flag("multi") {
                bail!(
                    SHARD_KEY_NOT_FOUND,
                    "An {{upsert:true}} update on a sharded collection must target a single shard"
                );
            }
            return Ok(Aim::Somewhere);
        }
        Ok(aim_of(target, flag("multi")))
    }
    fn filter_target(&self, table: &RoutingTable, statement: Doc<'_>) -> Result<Target> {
        let filter = statement.get_document("q").unwrap_or(Doc::empty());
        let simple = collation::is_simple(statement, table);
        if let Some(key) = target::equality_key(&table.key, filter, simple) {
            return Ok(Target { shards: vec![table.find(&key).shard.clone()], key: Some(key) });
        }
        Ok(target::filter(table, filter, &collation::context(self.task, statement, table)?))
    }

    /// The common case: everything is for one shard, whose reply is the client's. `None` when there is more to do.
    async fn in_one_batch(&mut self, placement: &Placement) -> Result<Option<DocBuf>> {
        let Ok(Aim::One(shard)) = self.aim(placement, 0) else { return Ok(None) };
        let same = |i: usize| matches!(self.aim(placement, i), Ok(Aim::One(s)) if s == shard);
        if placement.table.is_some() && !(1..self.statements.len()).all(same) {
            return Ok(None);
        }
        let indexes: Vec<usize> = std::mem::take(&mut self.pending).into();
        match self.send(&shard, &placement.versions(&shard), &indexes).await {
            Sent::Executed(reply) if stale_in(reply.doc()).is_none() && !moves_in(reply.doc()) => {
                return Ok(Some(reply));
            }
            Sent::Executed(reply) => {
                self.take_in(&indexes, reply.doc());
                self.run_moving().await?;
            }
            Sent::Failed(e) if is_stale(&e.error) => {
                self.pending = indexes.into();
                self.retarget(e.error).await?;
                return Ok(None);
            }
            Sent::Failed(e) => return Err(e.error),
        }
        self.after_stale().await?;
        Ok(None)
    }

    /// Ordered: the longest run of pending statements for one shard.
    async fn next_run(&mut self, placement: &Placement) -> Result<()> {
        let first = self.pending[0];
        let shard = match self.aim(placement, first) {
            Ok(Aim::One(shard)) => shard,
            Ok(Aim::Many(shards)) => return self.on_many(placement, first, shards).await,
            Ok(Aim::Somewhere) => {
                self.count_broadcast(placement, first);
                return self.somewhere(first).await;
            }
            Err(e) => {
                self.take_up(first);
                self.fail(&[first], &e);
                return Ok(());
            }
        };
        let same = |i: &&usize| matches!(self.aim(placement, **i), Ok(Aim::One(s)) if s == shard);
        let run = 1 + self.pending.iter().skip(1).take_while(same).count();
        self.reached.insert(shard.clone());
        let indexes: Vec<usize> = self.pending.drain(..run).collect();
        let sent = self.send(&shard, &placement.versions(&shard), &indexes).await;
        self.settle(&indexes, sent);
        self.run_moving().await?;
        self.after_stale().await
    }

    /// Unordered: a batch for each shard, all at once; then what concerns several shards, one by one.
    async fn all_batches(&mut self, placement: &Placement) -> Result<()> {
        let mut batches: Vec<(ShardId, Vec<usize>)> = Vec::new();
        let mut others = Vec::new();
        for i in std::mem::take(&mut self.pending) {
            match self.aim(placement, i) {
                Ok(Aim::One(shard)) => match batches.iter_mut().find(|(s, _)| *s == shard) {
                    Some((_, indexes)) => indexes.push(i),
                    None => batches.push((shard, vec![i])),
                },
                Ok(aim) => others.push((i, aim)),
                Err(e) => self.outcome.fail(i, &e),
            }
        }
        self.reached.extend(batches.iter().map(|(shard, _)| shard.clone()));
        let this = &*self;
        let sent = batches.iter().map(|(shard, indexes)| async move {
            this.send(shard, &placement.versions(shard), indexes).await
        });
        let sent = join_all(sent).await;
        for ((_, indexes), sent) in batches.into_iter().zip(sent) {
            self.settle(&indexes, sent);
        }
        self.run_moving().await?;
        for (i, aim) in others {
            // The transaction is lost, and the whole command fails.
            if self.outcome.fatal.is_some() {
                return Ok(());
            }
            match aim {
                Aim::Many(shards) => self.on_many(placement, i, shards).await?,
                _ => {
                    self.count_broadcast(placement, i);
                    self.somewhere(i).await?;
                }
            }
        }
        self.after_stale().await
    }

    /// Takes in what became of a batch.
    fn settle(&mut self, indexes: &[usize], sent: Sent) {
        match sent {
            Sent::Executed(reply) => self.take_in(indexes, reply.doc()),
            Sent::Failed(e) if is_stale(&e.error) => {
                self.put_back(indexes);
                self.outcome.stale = Some(e.error);
            }
            Sent::Failed(e) => {
                let failed = if self.ordered { &indexes[..1] } else { indexes };
                self.fail(failed, &e.error);
            }
        }
    }
    /// After statements were refused as stale: prepares for targeting them anew, or fails them.
    async fn after_stale(&mut self) -> Result<()> {
        match self.outcome.stale.take() {
            Some(e) => self.retarget(e).await,
            None => Ok(()),
        }
    }
    async fn retarget(&mut self, error: Error) -> Result<()> {
        if self.outcome.progressed {
            self.outcome.progressed = false;
            self.retry.reset();
        }
        if let Err(e) = self.retry.absorb(self.task, self.ns, error).await {
            let pending: Vec<usize> = std::mem::take(&mut self.pending).into();
            let failed = if self.ordered { &pending[..pending.len().min(1)] } else { &pending[..] };
            self.fail(failed, &e);
        }
        Ok(())
    }
    /// Statement `i` is being dealt with: an unordered command has taken it up before.
    fn take_up(&mut self, i: usize) {
        if self.pending.front() == Some(&i) {
            self.pending.pop_front();
        }
    }
    fn put_back(&mut self, indexes: &[usize]) {
        if !indexes.is_empty() {
            self.pending.extend(indexes);
            self.pending.make_contiguous().sort_unstable();
        }
    }
    fn fail(&mut self, indexes: &[usize], error: &Error) {
        let transient = error.labels.contains(&"TransientTransactionError");
        // A shard that cannot be reached has said nothing, and taken the transaction with it all the same.
        if transient || (self.task.in_transaction() && error.is(RETRIABLE)) {
            self.outcome.fatal.get_or_insert_with(|| error.clone());
        }
        for i in indexes {
            self.outcome.fail(*i, error);
        }
        self.stopped |= self.ordered;
    }

    /// A batch's reply: counts, errors under the client's indexes, and which statements were not executed.
    fn take_in(&mut self, indexes: &[usize], reply: Doc<'_>) {
        let mut refused = Vec::new();
        self.outcome.add_counts(indexes, reply);
        for e in array(reply, "writeErrors") {
            let Some(at) =
                e.get_i64("index").and_then(|i| usize::try_from(i).ok()).filter(|i| *i < indexes.len())
            else {
                continue;
            };
            let error = error_of(e);
            if error.code == codes::WOULD_CHANGE_OWNING_SHARD && self.alone && !self.task.in_transaction() {
                self.moves = Some(indexes[at]);
            } else if is_stale(&error) {
                if self.ordered {
                    refused.extend_from_slice(&indexes[at..]);
                } else {
                    refused.push(indexes[at]);
                }
                self.outcome.stale = Some(error);
            } else {
                self.outcome.add_error(indexes[at], e);
                self.stopped |= self.ordered;
            }
        }
        self.outcome.progressed |= refused.len() < indexes.len();
        if !self.stopped {
            self.put_back(&refused);
        }
    }

    /// Sends statements to one shard. Where the shard can recognise a repetition it is sent again when the connection breaks.
    async fn send(&self, shard: &str, versions: &Versions, indexes: &[usize]) -> Sent {
        let docs: Vec<Doc<'_>> = indexes.iter().map(|i| self.statements[*i].doc()).collect();
        self.send_docs(shard, versions, indexes, &docs).await
    }
    async fn send_docs(&self, shard: &str, versions: &Versions, indexes: &[usize], docs: &[Doc<'_>]) -> Sent {
        let list = self.kind.list();
        let of_series = self.series.is_some();
        let command = self.series.as_ref().map_or(self.task.body(), |of| of.body.doc());
        let without = &[list, "stmtIds", "stmtId", "isTimeseriesNamespace"][..];
        let body = self.task.forward_as(command, without, versions, |w| {
            self.write_ids(w, indexes);
            if of_series {
                w.bool("isTimeseriesNamespace", true);
            }
            if self.alone && self.kind == Kind::Update && self.task.in_transaction() {
                w.bool("mayMoveDocument", true);
            }
        });
        let brief = docs.iter().all(|d| match self.kind {
            Kind::Insert => true,
            Kind::Update | Kind::Delete => d.get_document("q").is_some_and(target::names_one),
        });
        let call = Call { sequence: Some((list, docs)), brief, ..Call::new(shard, body.doc()) };
        let reply = match self.task.write_call(call).await {
            Ok(reply) => reply,
            Err(e) => return Sent::Failed(e),
        };
        match put_moved(self.task, self.ns, reply).await {
            Ok(reply) => Sent::Executed(reply),
            Err(error) => Sent::Failed(Box::new(RemoteError { error, reply: None, not_sent: false })),
        }
    }
    fn write_ids(&self, w: &mut DocWriter<'_>, indexes: &[usize]) {
        if self.task.op.is_retryable_write() {
            w.array_with("stmtIds", |w| {
                for (at, i) in indexes.iter().enumerate() {
                    let id = self.statement_id(*i);
                    w.with_index(at, |w, name| w.i32(name, id));
                }
            });
        }
    }
    /// The statement id the client gave, or its index.
    pub fn statement_id(&self, i: usize) -> i32 {
        match &self.ids {
            Some(ids) => ids.get(i).copied().unwrap_or(-1),
            None => statement_id(self.task, i),
        }
    }

    /// A multi statement on several shards. Shards that executed it are not asked again: those that refused it are.
    async fn on_many(&mut self, placement: &Placement, i: usize, shards: Vec<ShardId>) -> Result<()> {
        self.take_up(i);
        self.reached.extend(shards.iter().cloned());
        let Some(hold) = Hold::wanted(self.task, self.ns) else {
            return self.on_shards(placement, i, shards, None).await;
        };
        let done = tokio::select! {
            biased;
            done = self.on_shards(placement, i, shards, Some(&hold)) => Some(done),
            lost = hold.lost() => {
                self.fail(&[i], &lost);
                None
            }
        };
        let kept = hold.release().await;
        done.unwrap_or(Ok(()))?;
        if let Err(e) = kept
            && !self.outcome.errors.iter().any(|(failed, _)| *failed == i)
        {
            self.fail(&[i], &e);
        }
        Ok(())
    }
    async fn on_shards(
        &mut self,
        placement: &Placement,
        i: usize,
        shards: Vec<ShardId>,
        hold: Option<&Hold<'_, '_>>,
    ) -> Result<()> {
        let (mut placement, mut remaining) = (Cow::Borrowed(placement), shards);
        let mut retry = Retry::default();
        let mut asked = false;
        loop {
            if let Some(hold) = hold
                && let Err(e) = hold.on(&remaining).await
            {
                self.fail(&[i], &e);
                return Ok(());
            }
            let this = &*self;
            let at = &placement;
            if !asked && let Some(e) = this.stale_on(at, &remaining, i).await {
                if let Err(e) = retry.absorb(self.task, self.ns, e).await {
                    self.fail(&[i], &e);
                    return Ok(());
                }
                placement = Cow::Owned(self.placement().await?);
                remaining = match self.aim(&placement, i) {
                    Ok(Aim::Many(shards)) => shards,
                    Ok(Aim::One(shard)) => vec![shard],
                    _ => remaining,
                };
                continue;
            }
            asked = true;
            let sent = remaining.iter().map(|shard| async move {
                (shard.clone(), this.send(shard, &at.versions(shard), &[i]).await)
            });
            let (mut refused, mut stale, mut failed) = (Vec::new(), None, None);
            for (shard, sent) in join_all(sent).await {
                match sent {
                    Sent::Failed(e) if is_stale(&e.error) => {
                        refused.push(shard);
                        stale = Some(e.error);
                    }
                    Sent::Failed(e) => failed = Some(e.error),
                    Sent::Executed(reply) => match stale_in(reply.doc()) {
                        Some(e) => {
                            self.outcome.add_counts(&[i], reply.doc());
                            refused.push(shard);
                            stale = Some(e);
                        }
                        None => self.take_in_one(i, reply.doc()),
                    },
                }
            }
            if let Some(e) = failed {
                self.fail(&[i], &e);
                return Ok(());
            }
            let Some(e) = stale else { return Ok(()) };
            if let Err(e) = retry.absorb(self.task, self.ns, e).await {
                self.fail(&[i], &e);
                return Ok(());
            }
            let nobody_did = refused.len() == remaining.len();
            placement = Cow::Owned(self.placement().await?);
            remaining = match self.aim(&placement, i) {
                Ok(Aim::Many(shards)) if nobody_did => shards,
                Ok(Aim::One(shard)) if nobody_did => vec![shard],
                _ => refused,
            };
        }
    }
    /// Whether a shard would refuse statement `i` now: each is asked by one that matches nothing. A shard that is giving a
    /// range away answers when that has moved. Had the others executed the statement meanwhile, the one that receives the
    /// range among them, nobody would do so for its documents.
    async fn stale_on(&self, placement: &Placement, shards: &[ShardId], i: usize) -> Option<Error> {
        // Of a time series an update can only speak of the meta field.
        let meta = self.series.as_ref().and_then(|of| of.series.options.meta.as_deref());
        let field = meta.filter(|_| self.kind == Kind::Update).unwrap_or("_id");
        let never = document::doc! { field: { "$in": [] } }.to_doc_buf();
        let never = one_document::with_filter(self.statements[i].doc(), never.doc());
        let asked = shards.iter().map(|shard| {
            let never = &never;
            async move {
                match self.send_docs(shard, &placement.versions(shard), &[i], &[never.doc()]).await {
                    Sent::Executed(reply) => stale_in(reply.doc()),
                    Sent::Failed(e) => Some(e.error).filter(is_stale),
                }
            }
        });
        join_all(asked).await.into_iter().flatten().next()
    }
    fn take_in_one(&mut self, i: usize, reply: Doc<'_>) {
        self.outcome.add_counts(&[i], reply);
        for e in array(reply, "writeErrors") {
            self.outcome.add_error(i, e);
            self.stopped |= self.ordered;
        }
    }

    /// A single-document statement that does not say where its document is.
    async fn somewhere(&mut self, i: usize) -> Result<()> {
        self.take_up(i);
        match one_document::run(self.task, &one_document::Statement::Write(self, i)).await {
            Ok(reply) => {
                self.take_in_one(i, reply.doc());
                Ok(())
            }
            Err(e) if e.is(document::error::INTERRUPTION) => Err(e),
            Err(e) => {
                self.fail(&[i], &e);
                Ok(())
            }
        }
    }
    /// Executes in a transaction what was refused because it moves its document.
    async fn run_moving(&mut self) -> Result<()> {
        match self.moves.take() {
            Some(i) => self.somewhere(i).await,
            None => Ok(()),
        }
    }
    /// Sends a changed form of statement `i` to one shard.
    pub async fn send_changed(
        &self,
        placement: &Placement,
        shard: &str,
        i: usize,
        changed: Doc<'_>,
    ) -> Result<DocBuf> {
        match self.send_docs(shard, &placement.versions(shard), &[i], &[changed]).await {
            Sent::Executed(reply) => match stale_in(reply.doc()) {
                Some(e) => Err(e),
                None => Ok(reply),
            },
            Sent::Failed(e) => Err(e.error),
        }
    }
}

/// The id of the command's `i`-th statement: as the client gave it, or counted from 0.
pub fn statement_id(task: &Task<'_>, i: usize) -> i32 {
    match task.op.session.as_ref().map(|s| s.stmt_ids.as_slice()) {
        Some([first]) => first.saturating_add(i as i32),
        Some(ids) if !ids.is_empty() => ids.get(i).copied().unwrap_or(-1),
        _ => i as i32,
    }
}

fn aim_of(target: Target, multi: bool) -> Aim {
    match (target.shards.as_slice(), multi) {
        ([one], _) => Aim::One(one.clone()),
        (_, true) => Aim::Many(target.shards),
        (_, false) => Aim::Somewhere,
    }
}

/// The documents of an array member.
fn array<'d>(reply: Doc<'d>, name: &str) -> impl Iterator<Item = Doc<'d>> + use<'d> {
    let array = reply.get(name).and_then(|v| v.as_array());
    array.into_iter().flat_map(|a| a.iter()).filter_map(|e| e.value().as_document())
}

/// The statements in the body must be documents in an array.
fn check_list(task: &Task<'_>, kind: Kind) -> Result<()> {
    let Some(list) = task.get(kind.list()) else { return Ok(()) };
    let wrong = |name: String, v: ValueRef<'_>, wanted: &str| {
        err!(
            TYPE_MISMATCH,
            "BSON field '{}.{name}' is the wrong type '{}', expected type '{wanted}'",
            task.request.name(),
            v.type_name()
        )
    };
    let ValueRef::Array(items) = list else { return Err(wrong(kind.list().to_string(), list, "array")) };
    match items.iter().find(|e| e.value().as_document().is_none()) {
        Some(e) => Err(wrong(format!("{}.{}", kind.list(), e.name()), e.value(), "object")),
        None => Ok(()),
    }
}

/// What a client hears of an update in a batch after which its document would belong to another shard.
fn would_move() -> Error {
    err!(
        INVALID_OPTIONS,
        "Document shard key value updates that cause the doc to move shards must be sent with write batch of size 1"
    )
}

fn moves_in(reply: Doc<'_>) -> bool {
    array(reply, "writeErrors")
        .any(|e| e.get_i64("code") == Some(i64::from(codes::WOULD_CHANGE_OWNING_SHARD)))
}

/// The first of a reply's write errors.
pub fn first_error(reply: Doc<'_>) -> Option<Error> {
    array(reply, "writeErrors").next().map(error_of)
}

/// The first stale error among a reply's write errors.
pub fn stale_in(reply: Doc<'_>) -> Option<Error> {
    array(reply, "writeErrors").map(error_of).find(is_stale)
}

/// A member of `writeErrors` as an error.
pub fn error_of(e: Doc<'_>) -> Error {
    let code =
        e.get_i64("code").and_then(|c| i32::try_from(c).ok()).unwrap_or(document::codes::UNKNOWN_ERROR);
    let error = Error::new(code, e.get_str("errmsg").unwrap_or(""));
    // What the node puts beside the code; everything else is under errInfo.
    let beside = fields_beside(error.code);
    if !beside.is_empty() {
        return error.with_info(super::body::take(e, beside));
    }
    match e.get_document("errInfo") {
        Some(info) => error.with_info(info.to_document()),
        None => error,
    }
}

/// What the command did so far, under the client's indexes.
#[derive(Default)]
pub struct Outcome {
    pub n: i64,
    pub modified: i64,
    pub upserted: Vec<(usize, Value)>,
    pub errors: Vec<(usize, Document)>,
    pub concern_errors: Vec<Document>,
    pub retried: Vec<i32>,
    /// A stale error that has not been dealt with.
    stale: Option<Error>,
    /// A transaction's statement has met what ends the transaction: the command fails as a whole.
    fatal: Option<Error>,
    /// Some statement was executed since the last time the placement was read anew.
    progressed: bool,
}

impl Outcome {
    fn fail(&mut self, i: usize, error: &Error) {
        let mut e = Document::new();
        e.push("index", i as i32);
        e.push("code", error.code);
        error_details(error, &mut e);
        e.push("errmsg", error.message.as_str());
        self.push_error(i, e);
    }
    fn add_error(&mut self, i: usize, e: Doc<'_>) {
        if e.get_i64("code") == Some(i64::from(codes::WOULD_CHANGE_OWNING_SHARD)) {
            return self.fail(i, &would_move());
        }
        let mut e = e.to_document();
        e.insert("index", i as i32);
        self.push_error(i, e);
    }
    /// A statement has one error, also where several shards have refused it: the first, or one made of them if they differ.
    fn push_error(&mut self, i: usize, e: Document) {
        let Some((_, first)) = self.errors.last_mut().filter(|(last, _)| *last == i) else {
            return self.errors.push((i, e));
        };
        if first.get_i64("code") == e.get_i64("code") {
            return;
        }
        let said = |e: &Document| e.get_str("errmsg").unwrap_or_default().to_string();
        let before = match first.get_i64("code") == Some(i64::from(codes::MULTIPLE_ERRORS_OCCURRED)) {
            true => said(first),
            false => format!("multiple errors for op : {}", said(first)),
        };
        *first = document::doc! {
            "index": i as i32, "code": codes::MULTIPLE_ERRORS_OCCURRED,
            "errmsg": format!("{before} :: and :: {}", said(&e)),
        };
    }
    fn add_counts(&mut self, indexes: &[usize], reply: Doc<'_>) {
        self.n += reply.get_i64("n").unwrap_or(0);
        self.modified += reply.get_i64("nModified").unwrap_or(0);
        for u in array(reply, "upserted") {
            let at = u.get_i64("index").and_then(|i| usize::try_from(i).ok()).and_then(|i| indexes.get(i));
            if let (Some(i), Some(id)) = (at, u.get("_id")) {
                self.upserted.push((*i, id.to_value()));
            }
        }
        self.concern_errors.extend(reply.get_document("writeConcernError").map(|d| d.to_document()));
        let retried = reply.get("retriedStmtIds").and_then(|v| v.as_array());
        self.retried.extend(
            retried
                .into_iter()
                .flat_map(|a| a.iter())
                .filter_map(|e| e.value().as_i64().and_then(|n| i32::try_from(n).ok())),
        );
    }
    fn reply(mut self, kind: Kind) -> DocBuf {
        let mut reply = Document::new();
        reply.push("n", super::count::number(self.n));
        if kind == Kind::Update {
            reply.push("nModified", super::count::number(self.modified));
        }
        if !self.upserted.is_empty() {
            self.upserted.sort_by_key(|(i, _)| *i);
            let list =
                self.upserted.into_iter().map(|(i, id)| document::doc! { "index": i as i32, "_id": id });
            reply.push("upserted", list.collect::<Vec<Document>>());
        }
        if !self.errors.is_empty() {
            self.errors.sort_by_key(|(i, _)| *i);
            reply.push("writeErrors", self.errors.into_iter().map(|(_, e)| e).collect::<Vec<Document>>());
        }
        if let Some(e) = self.concern_errors.into_iter().next() {
            reply.push("writeConcernError", e);
        }
        if !self.retried.is_empty() {
            let list = self.retried.into_iter().map(Value::Int32).collect();
            reply.push("retriedStmtIds", Value::Array(list));
        }
        super::body::ok_reply(reply)
    }
}
