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
    /// The sort key handed on last, and the records handed on with it: two branches may meet the same, and a record has one key.
    last: Vec<u8>,
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
        let branches = walks.into_iter().map(branch).collect();
        Merge { order, branches, last: Vec::new(), seen: HashSet::new() }
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
            let Some((key, record)) = &branch.next else { return Ok(Progress::End) };
            let record = *record;
            if self.last != *key {
                self.last.clone_from(key);
                self.seen.clear();
            }
            let again = self.seen.contains(&record);
            context.counters.dups += u64::from(again);
            let Some(doc) = view.get(record).filter(|_| !again) else {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::choice::Memory;
    use crate::exec::{Budget, Wanted};
    use crate::local::LocalClient;
    use crate::replication::testing;
    use document::doc;
    use query::QueryContext;
    use query::matcher::Matcher;

    /// Both branches meet the records whose `a` and `b` are 1.
    #[tokio::test]
    async fn a_merge_remembers_the_records_of_one_sort_key() {
        let client = LocalClient::new(testing::node(None));
        let indexes = [(doc! {"a": 1, "k": 1}, doc! {}), (doc! {"b": 1, "k": 1}, doc! {})];
        client.ensure_collection("d.c", &indexes).await.unwrap();
        for i in 0..300 {
            client.insert("d.c", &doc! {"_id": i, "a": i % 2, "b": i % 3, "k": i / 5}).await.unwrap();
        }
        let filter = doc! {"$or": [{"a": 1}, {"b": 1}]}.to_doc_buf();
        let sort = SortSpec::parse(doc! {"k": 1}.to_doc_buf().doc()).unwrap();
        let filter = Matcher::parse(filter.doc(), &QueryContext::at(0)).unwrap();
        let wanted = Wanted { filter, sort: Some(&sort), ..Wanted::default() };
        let slot = client.node().namespaces.slot("d.c");
        let state = slot.read_unchecked();
        let collection = state.collection.as_ref().unwrap();
        let plan = wanted.choose(client.node(), collection, Memory::Looked).unwrap().plan;
        let Walk::Merge(mut merge) = Walk::new(plan, None, None) else { panic!("no merge") };
        let mut context = Context { owner: None, counters: &mut Counters::default(), keys: None };
        let mut found = Vec::new();
        let mut budget = Budget::of(u32::MAX, std::time::Duration::from_secs(3600));
        let progress = merge.run(collection, &mut context, &mut budget, &mut |f| {
            found.push((f.doc.get_i64("k").unwrap(), f.doc.get_i64("_id").unwrap()));
            Ok(Taken::More)
        });
        assert_eq!(progress.unwrap(), Progress::End);
        assert!(found.is_sorted_by_key(|(k, _)| *k));
        let mut ids: Vec<i64> = found.iter().map(|(_, id)| *id).collect();
        ids.sort_unstable();
        assert_eq!(ids, (0..300).filter(|i| i % 2 == 1 || i % 3 == 1).collect::<Vec<i64>>());
        assert!(merge.seen.len() <= 5, "{} records are remembered", merge.seen.len());
    }
}
