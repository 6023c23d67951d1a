//! Which of several plans a query takes: the one remembered for its shape, or the one that does best in a trial.
//!
//! A trial walks each plan over the collection until one has ended or found enough; it is short, because it happens
//! under the latch. The plan that found most for its work is taken, of equals the first by rule.

use super::query::Wanted;
use super::shown::{Whole, with_counters};
use super::walk::{Budget, Context, Counters, Progress, Taken, Walk};
use crate::Node;
use crate::plan_cache::{Entry, PlanCache, signature};
use document::number::count;
use document::{Document, Result, Value, doc, meter};
use query::explain::{Extras, winning_plan};
use query::planner::{IndexInfo, Plan, Request, by_id, cover, distinct, plans, same_key};
use std::sync::Arc;
use std::time::Duration;
use storage::Collection;

/// Records that a plan may look at in a trial, results that end it, and time that the trials of all plans may take.
pub(crate) const WORKS_MAX: u32 = 256;
const RESULTS_MAX: u64 = 101;
const TRIALS_TIME: Duration = Duration::from_millis(5);
/// Quanta of evaluation, likewise.
const TRIAL_QUANTA: u32 = 1;

/// A plan, and how it came to be taken.
pub struct Choice {
    pub plan: Plan,
    pub rejected: Vec<Plan>,
    /// An index filter stands for the query's shape.
    pub filtered: bool,
    /// The entry that the plan was taken from.
    pub cached: Option<Arc<Entry>>,
    /// Those of the plan and of the rejected ones, where there were several.
    pub trials: Vec<Trial>,
    /// The filter is too dear for a trial.
    dear: bool,
}

/// What a plan did in a trial.
#[derive(Clone)]
pub struct Trial {
    pub works: u64,
    pub advanced: u64,
    pub ended: bool,
    pub score: f64,
    pub counters: Counters,
    /// Those of each access to the collection.
    examined: Vec<Counters>,
    plan: Plan,
}

/// The entry that a plan was taken from, until the plan has found as much as ends a trial: so long it can turn out to be
/// far dearer than it was.
#[derive(Default)]
pub struct Watched(Option<Arc<Entry>>);

impl Watched {
    pub fn new(cached: Option<Arc<Entry>>) -> Watched {
        Watched(cached)
    }
    /// Takes note, after each slice, of what was examined and found since the beginning.
    pub fn note(&mut self, counters: Counters, found: u64) {
        if let Some(entry) = &self.0 {
            entry.note(counters.keys.max(counters.docs));
            if found >= RESULTS_MAX {
                self.0 = None;
            }
        }
    }
}

/// How a choice deals with what is remembered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    Used,
    /// An explanation looks and leaves it as it is.
    Looked,
}

impl Choice {
    pub fn only(plan: Plan) -> Choice {
        let (rejected, trials) = (Vec::new(), Vec::new());
        Choice { plan, rejected, filtered: false, cached: None, trials, dear: false }
    }
}

impl Wanted<'_> {
    /// The plan to take. A query for one `_id` is settled before anything is allocated or locked. What is remembered may
    /// then weigh too much: the caller trims the node's plan caches once it holds no latch any more.
    pub fn choose(&self, node: &Node, collection: &Collection, memory: Memory) -> Result<Choice> {
        if let Some(plan) = &self.chosen {
            return Ok(Choice::only(plan.clone()));
        }
        let free = self.hint.is_none() && self.min.is_none() && self.max.is_none();
        let has_id_index = collection.indexes().first().is_some_and(|i| i.spec().is_id());
        if free
            && has_id_index
            && let Some(plan) = by_id(&self.filter, collection.collation())
        {
            return Ok(Choice::only(plan));
        }
        let mut indexes = super::index_infos(collection);
        let filtered = node.plan_caches.restrict(collection.uuid(), self, &mut indexes);
        let held = filtered || self.allowed.is_some_and(|allowed| keep_allowed(allowed, &mut indexes));
        let request = Request {
            filter: &self.filter,
            sort: self.sort,
            hint: self.hint.filter(|_| !held),
            indexes: &indexes,
            collation: &self.collation,
            id_collation: collection.collation(),
            min: self.min,
            max: self.max,
        };
        let skipping = self.distinct.filter(|_| free).and_then(|wanted| distinct(&request, wanted));
        let mut plans = match skipping {
            Some(plan) => vec![plan],
            None => plans(&request)?,
        };
        if let Some(read) = self.read_paths() {
            plans.iter_mut().for_each(|plan| cover(plan, &read, &indexes));
        }
        if plans.len() == 1 {
            node.plan_caches.skipped.increment();
            return Ok(Choice { filtered, ..Choice::only(plans.swap_remove(0)) });
        }
        let whole = match held {
            true => signature(&super::index_infos(collection)),
            false => signature(&indexes),
        };
        let cache = node.plan_caches.make(collection.uuid());
        let shape = self.plan_shape();
        let remembered = cache.entry(&shape, whole).filter(|e| e.is_active());
        if let Some(entry) = remembered
            && let Some(at) = plans.iter().position(|p| entry.is_of(p))
        {
            plans[..=at].rotate_right(1);
            if memory == Memory::Used {
                node.plan_caches.hits.increment();
                return Ok(Choice { filtered, cached: Some(entry), ..Choice::only(plans.swap_remove(0)) });
            }
            return self.tried(plans, collection, filtered, Some(entry));
        }
        let choice = self.tried(plans, collection, filtered, None)?;
        if memory == Memory::Used {
            node.plan_caches.misses.increment();
            self.remember(node, &cache, shape, whole, &choice);
        }
        Ok(choice)
    }

    fn remember(&self, node: &Node, cache: &PlanCache, shape: Vec<u8>, signature: u64, choice: &Choice) {
        // A filter that is too dear for a trial is not tried under the latch again and again.
        if choice.trials.is_empty() && !choice.dear {
            return;
        }
        let entry = Entry::new(self, signature, choice.filtered, node.now_ms(), &choice.plan, &choice.trials);
        cache.store(shape, entry);
    }

    /// Tries the plans. Where the filter is too dear to be evaluated here, or fails, the first by rule is taken.
    fn tried(
        &self,
        plans: Vec<Plan>,
        collection: &Collection,
        filtered: bool,
        cached: Option<Arc<Entry>>,
    ) -> Result<Choice> {
        let mut trials = Vec::with_capacity(plans.len());
        let mut works = u64::from(WORKS_MAX);
        let mut dear = false;
        let time = TRIALS_TIME / u32::try_from(plans.len()).unwrap_or(u32::MAX).max(1);
        for plan in &plans {
            match meter::bounded(TRIAL_QUANTA, || self.try_out(plan, collection, works, time)) {
                Ok(trial) => {
                    if trial.ended || trial.advanced >= RESULTS_MAX {
                        works = works.min(trial.works.max(1));
                    }
                    trials.push(trial);
                }
                Err(e) => {
                    dear = e.code == meter::OVERRUN;
                    trials.clear();
                    break;
                }
            }
        }
        for trial in &mut trials {
            trial.rate(works);
        }
        let mut order: Vec<usize> = (0..plans.len()).collect();
        if cached.is_none() && !trials.is_empty() {
            order.sort_by(|a, b| trials[*b].score.total_cmp(&trials[*a].score));
        }
        let mut plans: Vec<Option<Plan>> = plans.into_iter().map(Some).collect();
        let trials = order.iter().filter_map(|i| trials.get(*i).cloned()).collect();
        let mut ordered = order.iter().filter_map(|i| plans[*i].take());
        let plan = ordered.next().unwrap_or(Plan::Eof);
        Ok(Choice { plan, rejected: ordered.collect(), filtered, cached, trials, dear })
    }

    fn try_out(&self, plan: &Plan, collection: &Collection, works: u64, time: Duration) -> Result<Trial> {
        let limit = self.shape.limit.map_or(u64::MAX, |n| n.saturating_add(self.shape.skip));
        let enough = RESULTS_MAX.min(limit.max(1));
        let blocking = plan.needs_sort();
        let mut walk = Walk::new(plan.access().clone(), None, None);
        let (mut found, mut counters) = (0, Counters::default());
        let mut context = Context { owner: None, counters: &mut counters, keys: None };
        let mut budget = Budget::of(u32::try_from(works).unwrap_or(WORKS_MAX), time);
        let progress = walk.run(collection, &mut context, &mut budget, &mut |_| {
            found += 1;
            Ok(if !blocking && found >= enough { Taken::Last } else { Taken::More })
        })?;
        let ended = progress == Progress::End;
        // A sort gives nothing before it has seen everything.
        let advanced = match (blocking, ended) {
            (true, false) => 0,
            (true, true) => found.min(enough),
            _ => found,
        };
        let works = counters.keys.max(counters.docs) + if blocking { advanced } else { 0 } + u64::from(ended);
        let mut examined = Vec::new();
        walk.examined(counters, &mut examined);
        Ok(Trial { works: works.max(1), advanced, ended, score: 0.0, counters, examined, plan: plan.clone() })
    }
}

/// Takes away the indexes that settings do not allow; false where they allow none that is there, and so count for nothing.
fn keep_allowed(allowed: &[Value], indexes: &mut Vec<IndexInfo>) -> bool {
    let natural = allowed.iter().any(|v| v.as_document().is_some_and(|d| d.contains_key("$natural")));
    let is_allowed = |index: &IndexInfo| names(allowed, index);
    if !natural && !indexes.iter().any(is_allowed) {
        return false;
    }
    indexes.retain(is_allowed);
    true
}

/// Whether one of these names or key patterns is the index's.
pub fn names(named: &[Value], index: &IndexInfo) -> bool {
    named.iter().any(|v| match v {
        Value::String(name) => name == index.clustered.as_ref().unwrap_or(&index.name),
        Value::Document(key) => same_key(key, &index.key),
        _ => false,
    })
}

impl Trial {
    /// Results for work, a little for not sorting, and much for having ended first.
    fn rate(&mut self, first_end: u64) {
        let sorted = !self.plan.needs_sort();
        let little = (1.0 / (10.0 * self.works as f64)).min(1e-4);
        let end = self.ended && self.works <= first_end;
        self.score = 1.0
            + self.advanced as f64 / self.works as f64
            + if sorted { little } else { 0.0 }
            + if end { 1.0 } else { 0.0 };
    }

    /// As `allPlansExecution` and `creationExecStats` show it.
    pub fn statistics(&self, wanted: &Wanted<'_>) -> Document {
        let projection = wanted.shape.projection.as_ref();
        let stages = winning_plan(&self.plan, &Extras { projection, ..Extras::default() });
        let whole = Whole {
            returned: self.advanced,
            counters: self.counters,
            examined: self.examined.clone(),
            ended: self.ended,
        };
        doc! {
            "nReturned": count(self.advanced), "executionTimeMillisEstimate": 0,
            "totalKeysExamined": count(self.counters.keys), "totalDocsExamined": count(self.counters.docs),
            "score": self.score, "executionStages": with_counters(stages, &whole),
        }
    }
}
