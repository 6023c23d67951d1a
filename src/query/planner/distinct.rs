//! The scan of a distinct, and of a group by one field: from each value straight to the next.

use super::candidates::{self, Candidate};
use super::cover::has_position;
use super::ranges::FieldKind;
use super::{Plan, Request};
use crate::sort::SortSpec;

/// One record is wanted for each value of a field.
#[derive(Clone, Debug, Default)]
pub struct Distinct {
    pub path: String,
    /// The first of the value's records in one of these orders; any of them where there are none.
    pub orders: Vec<SortSpec>,
    /// A missing field is the same value as null.
    pub grouped: bool,
}

/// How a scan skips keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skips {
    /// How many leading fields the next key must differ in.
    pub fields: usize,
    /// Also keys whose last such field is null, which may stand for a missing one.
    pub nulls: bool,
}

/// The plan that leads to one record for each value, if an index has one. Its scan goes from a key to the next one that differs in the
/// fields up to the path's.
pub fn distinct(request: &Request<'_>, wanted: &Distinct) -> Option<Plan> {
    if request.hint.is_some() || request.filter.text().is_some() || request.filter.near().is_some() {
        return None;
    }
    // A group does not take a number on its path for a position, as an index does.
    if wanted.grouped && has_position(&wanted.path) {
        return None;
    }
    let usable = request
        .indexes
        .iter()
        .filter(|i| !i.hidden && i.wildcard.is_none() && i.layout.is_none() && i.clustered.is_none());
    let mut found: Vec<(Candidate, usize)> = usable
        .filter(|i| i.collation == *request.collation)
        .filter_map(|index| {
            let at = index.key.keys().position(|p| p == wanted.path)?;
            // Values of one hash are different values.
            let plain = |v| matches!(FieldKind::of(v), Some(FieldKind::Ascending | FieldKind::Descending));
            if !index.key.iter().take(at + 1).all(|(_, v)| plain(v)) || (0..=at).any(|i| index.repeats_at(i))
            {
                return None;
            }
            let candidate = candidates::whole_or_bounded_in(request.filter, &wanted.orders, index)?;
            // A prefix that is not held to one value repeats the values behind it.
            let leads = candidate.equalities >= at && candidate.filter.is_always_true();
            leads.then_some((candidate, at))
        })
        .collect();
    found.sort_by_key(|(c, _)| (std::cmp::Reverse(c.equalities + c.other_bounds), c.fields));
    let (candidate, at) = found.into_iter().next()?;
    let mut scan = candidate.scan;
    scan.skips = Some(Skips { fields: at + 1, nulls: wanted.grouped });
    Some(Plan::Index { scan, filter: candidate.filter })
}
