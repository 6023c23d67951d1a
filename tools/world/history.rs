//! Searches a history of transactions that read lists and append to them for what snapshot isolation forbids.
//!
//! Every appended value is unique, so a list tells in which order its values were written, and by whom. From this follow the
//! dependencies between transactions (Adya; the method is that of Elle, Kingsbury and Alvaro, VLDB 2020):
//!
//! ```text
//! ww   the next value in a list was appended by the second
//! wr   the second read a list that ends in a value of the first
//! rw   the first read a list, the second appended the next value
//! rt   the second began after the first was acknowledged, or came later in the same session
//! ```
//! A history has snapshot isolation exactly if every cycle of dependencies has two rw in a row (Cerone and Gotsman, PODC 2016).
//! The search has two layers: an rw leads from the lower to the upper, from where only the others lead, and back to the lower.
//! Commits are strictly serialisable: ww, wr and real time between writers have no cycle. A snapshot may be older than what
//! another session has had acknowledged, so there is no rw among these.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Committed,
    Aborted,
    /// Nobody has heard.
    Unknown,
}

#[derive(Debug, Clone)]
pub(crate) enum Op {
    Append(i32, i64),
    Read(i32, Vec<i64>),
}

#[derive(Debug, Clone)]
pub(crate) struct Txn {
    pub session: usize,
    /// Milliseconds of one clock.
    pub began: i64,
    pub ended: i64,
    pub status: Status,
    pub ops: Vec<Op>,
}

impl Txn {
    fn appends(&self) -> impl Iterator<Item = (i32, i64)> {
        self.ops.iter().filter_map(|op| match op {
            Op::Append(key, value) => Some((*key, *value)),
            Op::Read(..) => None,
        })
    }
    fn last_append_to(&self, list: i32) -> Option<i64> {
        self.appends().filter(|(key, _)| *key == list).map(|(_, value)| value).last()
    }
    pub(crate) fn only_reads(&self) -> bool {
        self.appends().next().is_none()
    }
}

/// All lists after everything has ended.
pub(crate) type Lists = BTreeMap<i32, Vec<i64>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ww,
    Wr,
    Rw,
    Rt,
}

type Edge = (usize, Kind, usize);

struct History<'a> {
    txns: &'a [Txn],
    lists: &'a Lists,
    writers: BTreeMap<i64, usize>,
    committed: BTreeSet<usize>,
}

/// # Errors
/// The first anomaly found.
pub(crate) fn check(txns: &[Txn], lists: &Lists) -> Result<(), String> {
    let writers =
        txns.iter().enumerate().flat_map(|(i, t)| t.appends().map(move |(_, value)| (value, i))).collect();
    let mut history = History { txns, lists, writers, committed: BTreeSet::new() };
    history.check_commits()?;
    let mut edges = history.orders_of_lists();
    for i in history.committed.clone() {
        if txns[i].status == Status::Committed {
            history.check_reads(i, &mut edges)?;
        }
    }
    edges.retain(|(a, _, b)| a != b && history.committed.contains(a) && history.committed.contains(b));
    history.check_cycles(edges.iter().copied().chain(history.sessions()))?;
    let commits = edges.iter().copied().filter(|(_, kind, _)| *kind != Kind::Rw);
    history.check_cycles(commits.chain(history.real_time()))
}

impl History<'_> {
    /// No commit is lost or half done, nothing aborted is there, nothing stands twice.
    fn check_commits(&mut self) -> Result<(), String> {
        for (list, values) in self.lists {
            let distinct: BTreeSet<_> = values.iter().collect();
            if distinct.len() < values.len() || values.iter().any(|v| !self.writers.contains_key(v)) {
                return Err(format!("list {list} holds something twice, or of nobody: {values:?}"));
            }
        }
        for (i, t) in self.txns.iter().enumerate() {
            let is_there =
                |(list, value): &(i32, i64)| self.lists.get(list).is_some_and(|l| l.contains(value));
            let (there, gone): (Vec<_>, Vec<_>) = t.appends().partition(is_there);
            let problem = match t.status {
                Status::Aborted if !there.is_empty() => "of what was aborted is there",
                Status::Committed if !gone.is_empty() && there.is_empty() => "lost commit",
                _ if !gone.is_empty() && !there.is_empty() => "half commit",
                _ => "",
            };
            if !problem.is_empty() {
                return Err(format!("{problem}: {there:?} there, {gone:?} not, of {t:?}"));
            }
            if t.status == Status::Committed || !there.is_empty() {
                self.committed.insert(i);
            }
        }
        Ok(())
    }

    fn orders_of_lists(&self) -> Vec<Edge> {
        let pairs = self.lists.values().flat_map(|values| values.windows(2));
        pairs.map(|pair| (self.writers[&pair[0]], Kind::Ww, self.writers[&pair[1]])).collect()
    }

    /// What a transaction read is what others had committed, followed by what it had appended itself.
    fn check_reads(&self, reader: usize, edges: &mut Vec<Edge>) -> Result<(), String> {
        let t = &self.txns[reader];
        let mut own: BTreeMap<i32, Vec<i64>> = BTreeMap::new();
        for op in &t.ops {
            let (list, read) = match op {
                Op::Append(list, value) => {
                    own.entry(*list).or_default().push(*value);
                    continue;
                }
                Op::Read(list, read) => (list, read),
            };
            let wrong = |what: &str| {
                Err(format!("list {list} {what}: {read:?} read, {:?} there, by {t:?}", self.lists.get(list)))
            };
            let mine = own.get(list).map_or(&[][..], Vec::as_slice);
            let Some(outside) = read.strip_suffix(mine) else { return wrong("misses own appends") };
            let all = self.lists.get(list).map_or(&[][..], Vec::as_slice);
            if !all.starts_with(outside) {
                return wrong("was read in another order, or with what is gone");
            }
            if let Some(last) = outside.last() {
                let writer = self.writers[last];
                if writer != reader && self.txns[writer].last_append_to(*list) != Some(*last) {
                    return wrong("was read in the middle of a transaction");
                }
                edges.push((writer, Kind::Wr, reader));
            }
            edges.extend(all.get(outside.len()).map(|next| (reader, Kind::Rw, self.writers[next])));
        }
        Ok(())
    }

    fn sessions(&self) -> Vec<Edge> {
        let mut last: BTreeMap<usize, usize> = BTreeMap::new();
        let mut acknowledged: Vec<_> =
            (0..self.txns.len()).filter(|i| self.txns[*i].status == Status::Committed).collect();
        acknowledged.sort_by_key(|i| self.txns[*i].began);
        let edge = |i: usize| last.insert(self.txns[i].session, i).map(|before| (before, Kind::Rt, i));
        acknowledged.into_iter().filter_map(edge).collect()
    }

    fn real_time(&self) -> Vec<Edge> {
        let writers: Vec<_> =
            self.committed.iter().copied().filter(|i| !self.txns[*i].only_reads()).collect();
        let mut edges = Vec::new();
        for a in writers.iter().filter(|a| self.txns[**a].status == Status::Committed) {
            let later = writers.iter().filter(|b| self.txns[*a].ended < self.txns[**b].began);
            edges.extend(later.map(|b| (*a, Kind::Rt, *b)));
        }
        edges
    }

    fn check_cycles(&self, edges: impl Iterator<Item = Edge>) -> Result<(), String> {
        let mut from: BTreeMap<usize, Vec<(Kind, usize)>> = BTreeMap::new();
        edges.for_each(|(a, kind, b)| from.entry(a).or_default().push((kind, b)));
        match from.keys().find_map(|start| cycle(&from, *start)) {
            None => Ok(()),
            Some(cycle) => {
                let steps: Vec<_> =
                    cycle.iter().map(|(i, kind)| format!("{:?}\n  -{kind:?}->", self.txns[*i])).collect();
                Err(format!("a cycle:\n  {}", steps.join("\n  ")))
            }
        }
    }
}

/// A shortest cycle from `start` without two rw in a row: transactions, each with the dependency that leads to the next.
fn cycle(from: &BTreeMap<usize, Vec<(Kind, usize)>>, start: usize) -> Option<Vec<(usize, Kind)>> {
    // A place is a transaction and whether an rw has led there.
    let mut before: BTreeMap<(usize, bool), ((usize, bool), Kind)> = BTreeMap::new();
    let mut queue = VecDeque::from([(start, false)]);
    while let Some(place) = queue.pop_front() {
        for (kind, to) in from.get(&place.0).into_iter().flatten() {
            let is_rw = *kind == Kind::Rw;
            let next = (*to, is_rw);
            if (is_rw && place.1) || before.contains_key(&next) {
                continue;
            }
            before.insert(next, (place, *kind));
            if next == (start, false) {
                let mut cycle = Vec::new();
                let mut at = next;
                while cycle.is_empty() || at != next {
                    let (earlier, kind) = before[&at];
                    cycle.push((earlier.0, kind));
                    at = earlier;
                }
                cycle.reverse();
                return Some(cycle);
            }
            queue.push_back(next);
        }
    }
    None
}

/// The name of an anomaly that [`check`] does not find where it was planted; `None` when it finds all, and nothing where there is
/// none.
pub(crate) fn overlooks() -> Option<&'static str> {
    use Op::{Append as W, Read};
    use Status::{Aborted, Committed as C, Unknown};
    let r = |list, values: &[i64]| Read(list, values.to_vec());
    // Each a session of its own; all at once, or one after the other.
    let run = |together: bool, of: Vec<(Status, Vec<Op>)>, lists: &[(i32, &[i64])]| {
        let times = |i: i64| if together { (0, 9) } else { (2 * i, 2 * i + 1) };
        let txn = |(i, (status, ops)): (usize, (Status, Vec<Op>))| {
            let (began, ended) = times(i as i64);
            Txn { session: i, began, ended, status, ops }
        };
        let txns: Vec<_> = of.into_iter().enumerate().map(txn).collect();
        check(&txns, &lists.iter().map(|(key, values)| (*key, values.to_vec())).collect())
    };
    let (ab, ba) = (vec![W(1, 1), W(2, 3)], vec![W(1, 2), W(2, 4)]);
    let anomalies = [
        ("G0", run(true, vec![(C, ab), (C, ba)], &[(1, &[1, 2]), (2, &[4, 3])])),
        ("G1a", run(true, vec![(Aborted, vec![W(1, 1)])], &[(1, &[1])])),
        ("G1b", run(true, vec![(C, vec![W(1, 1), W(1, 2)]), (C, vec![r(1, &[1])])], &[(1, &[1, 2])])),
        (
            "G1c",
            run(
                true,
                vec![(C, vec![W(1, 1), r(2, &[2])]), (C, vec![W(2, 2), r(1, &[1])])],
                &[(1, &[1]), (2, &[2])],
            ),
        ),
        (
            "G-single",
            run(
                true,
                vec![(C, vec![W(1, 1), W(2, 2)]), (C, vec![r(1, &[1]), r(2, &[])])],
                &[(1, &[1]), (2, &[2])],
            ),
        ),
        (
            "lost update",
            run(true, vec![(C, vec![r(1, &[]), W(1, 1)]), (C, vec![r(1, &[]), W(1, 2)])], &[(1, &[1, 2])]),
        ),
        ("lost commit", run(true, vec![(C, vec![W(1, 1)])], &[(1, &[])])),
        ("half commit", run(true, vec![(Unknown, vec![W(1, 1), W(2, 2)])], &[(1, &[1]), (2, &[])])),
        ("duplicate", run(true, vec![(C, vec![W(1, 1)])], &[(1, &[1, 1])])),
        ("own append", run(true, vec![(C, vec![W(1, 1), r(1, &[])])], &[(1, &[1])])),
        (
            "other order",
            run(true, vec![(C, vec![W(1, 1)]), (C, vec![W(1, 2)]), (C, vec![r(1, &[2])])], &[(1, &[1, 2])]),
        ),
        ("real time", run(false, vec![(C, vec![W(1, 1)]), (C, vec![W(1, 2)])], &[(1, &[2, 1])])),
    ];
    let orders = [
        (
            "write skew",
            run(
                true,
                vec![(C, vec![r(1, &[]), W(2, 1)]), (C, vec![r(2, &[]), W(1, 2)])],
                &[(1, &[2]), (2, &[1])],
            ),
        ),
        ("an old read", run(false, vec![(C, vec![W(1, 1)]), (C, vec![r(1, &[])])], &[(1, &[1])])),
        (
            "an outcome nobody heard",
            run(true, vec![(Unknown, vec![W(1, 1)]), (Unknown, vec![W(1, 2)])], &[(1, &[2])]),
        ),
    ];
    let overlooked = anomalies.into_iter().filter(|(_, found)| found.is_ok());
    overlooked.chain(orders.into_iter().filter(|(_, found)| found.is_err())).map(|(name, _)| name).next()
}
