//! The scan of a distinct: from each value of a field straight to the next.

use super::candidates::{self, Candidate};
use super::ranges::FieldKind;
use super::{Plan, Request};

/// The plan that leads to each value of `path` once, if an index has one. Its scan goes from a key to the next one that differs in the fields up
/// to the path's. Nulls it does not skip: they may stand for missing fields.
pub fn distinct(request: &Request<'_>, path: &str) -> Option<Plan> {
    if request.hint.is_some() || request.filter.text().is_some() || request.filter.near().is_some() {
        return None;
    }
    let usable = request.indexes.iter().filter(|i| {
        !i.hidden && !i.multikey && i.wildcard.is_none() && i.layout.is_none() && i.clustered.is_none()
    });
    let mut found: Vec<(Candidate, usize)> = usable
        .filter(|i| i.collation == *request.collation)
        .filter_map(|index| {
            let at = index.key.keys().position(|p| p == path)?;
            // Values of one hash are different values.
            let plain = |v| matches!(FieldKind::of(v), Some(FieldKind::Ascending | FieldKind::Descending));
            if !index.key.iter().take(at + 1).all(|(_, v)| plain(v)) {
                return None;
            }
            let candidate = candidates::whole_or_bounded(request.filter, index)?;
            // A prefix that is not held to one value repeats the values behind it.
            let leads = candidate.equalities >= at && candidate.filter.is_always_true();
            leads.then_some((candidate, at))
        })
        .collect();
    found.sort_by_key(|(c, _)| (std::cmp::Reverse(c.equalities + c.other_bounds), c.fields));
    let (candidate, at) = found.into_iter().next()?;
    let mut scan = candidate.scan;
    scan.skips_after = Some(at + 1);
    Some(Plan::Index { scan, filter: candidate.filter })
}
