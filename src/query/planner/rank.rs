//! Which candidate is best, by rule; whoever can try them may find another one better.

use super::candidates::Candidate;
use std::cmp::Reverse;

/// More candidates than this are not compared.
const CANDIDATES_MAX: usize = 16;

/// The best of the candidates; of equals the one listed first.
pub(super) fn best(candidates: Vec<Candidate>) -> Option<Candidate> {
    candidates.into_iter().min_by_key(worth)
}

/// The candidates worth comparing, the best by rule first; alone if it finds one record at most.
pub(super) fn ordered(mut candidates: Vec<Candidate>) -> Vec<Candidate> {
    candidates.sort_by_key(worth);
    let alone = candidates.first().is_some_and(one_record);
    candidates.truncate(if alone { 1 } else { CANDIDATES_MAX });
    candidates
}

fn one_record(c: &Candidate) -> bool {
    c.unique && c.equalities == c.fields
}

fn worth(c: &Candidate) -> impl Ord + use<> {
    Reverse((
        one_record(c),
        c.is_bounded(),
        // A field held to one value narrows most; then a set of values or a range; then not having to sort.
        c.equalities * 4 + c.other_bounds.min(2) + 3 * c.provides_sort as usize,
        Reverse(c.fields),
    ))
}
