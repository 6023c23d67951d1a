//! The order of a near predicate: ring after ring around its point, each one scanned, sorted and handed on before the next.
//!
//! A ring is found by scanning all within its reach; what the rings before have handed on lies within theirs and is left out.

use super::sorter::{Means, RecordSorter};
use super::walk::{Budget, Context, Progress, Sink, Sort};
use document::Result;
use query::planner::Rings;
use query::sort::SortSpec;
use std::sync::Arc;
use storage::CollectionView;

pub struct Nearest {
    rings: Arc<Rings>,
    order: SortSpec,
    /// How many of the first are wanted.
    limit: Option<usize>,
    means: Means,
    /// How far everything has been handed on; none before the first ring has ended.
    done: Option<f64>,
    /// How far the ring at hand reaches; none after the last.
    reach: Option<f64>,
    ring: Option<Sort>,
}

impl Nearest {
    pub(super) fn new(rings: Arc<Rings>, order: SortSpec, limit: Option<usize>, means: Means) -> Nearest {
        let reach = Some(rings.first());
        Nearest { rings, order, limit, means, done: None, reach, ring: None }
    }

    pub(super) fn run<V: CollectionView>(
        &mut self,
        view: &V,
        context: &mut Context<'_>,
        budget: &mut Budget,
        sink: &mut Sink<'_>,
    ) -> Result<Progress> {
        while let Some(reach) = self.reach {
            let Nearest { rings, order, limit, means, done, ring, .. } = self;
            let ring = ring.get_or_insert_with(|| {
                Sort::new(rings.plan(reach), RecordSorter::new(order.clone(), *limit, means))
            });
            let is_new = |doc: document::Doc<'_>| done.map_or(Ok(true), |done| rings.is_beyond(done, doc));
            let progress = ring.run(view, context, budget, &is_new, sink)?;
            if progress != Progress::End {
                return Ok(progress);
            }
            self.ring = None;
            self.done = Some(reach);
            self.reach = self.rings.next(reach);
            // A ring that holds nothing is work, too.
            if self.reach.is_some() && !budget.spend() {
                return Ok(Progress::Slice);
            }
        }
        Ok(Progress::End)
    }
}
