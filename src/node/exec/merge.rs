//! Walks that are each in one order, merged into one in that order.
//!
//! Of each branch the next record is known with its sort key. The least of them is handed on, and its branch asked for another.

use super::walk::{Budget, Context, Counters, Found, Progress, Sink, Taken, Walk};
use document::Result;
use query::sort::SortSpec;
use std::collections::HashSet;
use storage::{CollectionView, RecordId};

pub struct Merge {
    order: SortSpec,
    branches: Vec<Branch>,
    /// Records handed on: two branches may meet the same.
    seen: HashSet<RecordId>,
}

struct Branch {
    walk: Walk,
    next: Option<(Vec<u8>, RecordId)>,
    ended: bool,
    counters: Counters,
}

impl Merge {
    pub(super) fn new(walks: Vec<Walk>, order: SortSpec) -> Merge {
        let branch = |walk| Branch { walk, next: None, ended: false, counters: Counters::default() };
        Merge { order, branches: walks.into_iter().map(branch).collect(), seen: HashSet::new() }
    }
    /// The branches with what each has examined.
    pub(super) fn branches(&self) -> impl Iterator<Item = (&Walk, Counters)> {
        self.branches.iter().map(|b| (&b.walk, b.counters))
    }

    pub(super) fn run<V: CollectionView>(
        &mut self,
        view: &V,
        context: &mut Context<'_>,
        budget: &mut Budget,
        sink: &mut Sink<'_>,
    ) -> Result<Progress> {
        loop {
            for branch in &mut self.branches {
                if branch.advance(&self.order, view, context, budget)? == Progress::Slice {
                    return Ok(Progress::Slice);
                }
            }
            let least =
                self.branches.iter_mut().filter(|b| b.next.is_some()).min_by(|a, b| a.next.cmp(&b.next));
            let Some(branch) = least else { return Ok(Progress::End) };
            let Some((_, record)) = branch.next else { return Ok(Progress::End) };
            let Some(doc) = view.get(record).filter(|_| !self.seen.contains(&record)) else {
                branch.next = None;
                continue;
            };
            let taken = sink(Found { record, doc })?;
            if taken != Taken::Refused {
                branch.next = None;
                self.seen.insert(record);
            }
            if taken != Taken::More {
                return Ok(Progress::Stopped);
            }
        }
    }
}

impl Branch {
    /// Sees to it that the next record is known if there is one.
    fn advance<V: CollectionView>(
        &mut self,
        order: &SortSpec,
        view: &V,
        context: &mut Context<'_>,
        budget: &mut Budget,
    ) -> Result<Progress> {
        if self.ended || self.next.is_some() {
            return Ok(Progress::End);
        }
        let Branch { walk, next, .. } = self;
        let before = *context.counters;
        let progress = walk.run(view, context, budget, &mut |found| {
            *next = Some((order.key(found.doc)?, found.record));
            Ok(Taken::Last)
        });
        self.counters.add(*context.counters, before);
        let progress = progress?;
        self.ended = progress == Progress::End;
        Ok(progress)
    }
}
