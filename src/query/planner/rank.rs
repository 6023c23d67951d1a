//! Which candidate is best, by rule.

use super::candidates::Candidate;
use std::cmp::Reverse;

/// The best of the candidates; of equals the one listed first.
pub fn best(candidates: Vec<Candidate>) -> Option<Candidate> {
    candidates.into_iter().min_by_key(|c| {
        let one_record = c.unique && c.equalities == c.fields;
        Reverse((
            one_record,
            c.is_bounded(),
            // A field held to one value narrows most; then a set of values or a range; then not having to sort.
            c.equalities * 4 + c.other_bounds.min(2) + 3 * c.provides_sort as usize,
            Reverse(c.fields),
        ))
    })
}
