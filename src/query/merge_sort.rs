//! A stable sort that counts its work and can be interrupted, for arrays that a client makes as long as it likes.
//!
//! Runs of a quantum's length are sorted by the library, which cannot be stopped, and merged in pairs.

use document::{Result, meter};
use std::cmp::Ordering;

/// Elements that are sorted in one go: with their comparisons less than a quantum where these are cheap.
const RUN: usize = 1024;

/// Sorts `items`; after an error some of them are gone.
///
/// # Errors
/// Those of [`meter::spend`].
pub(crate) fn merge_sort<T>(items: &mut Vec<T>, compare: impl Fn(&T, &T) -> Ordering) -> Result<()> {
    let mut runs = Vec::with_capacity(items.len() / RUN + 1);
    let mut rest = std::mem::take(items).into_iter();
    loop {
        let mut run: Vec<T> = rest.by_ref().take(RUN).collect();
        if run.is_empty() {
            break;
        }
        meter::spend(run.len() * (1 + run.len().ilog2() as usize) / 4)?;
        run.sort_by(&compare);
        runs.push(run);
    }
    while runs.len() > 1 {
        let mut pairs = Vec::with_capacity(runs.len().div_ceil(2));
        let mut rest = runs.into_iter();
        while let Some(left) = rest.next() {
            pairs.push(match rest.next() {
                Some(right) => merge(left, right, &compare)?,
                None => left,
            });
        }
        runs = pairs;
    }
    *items = runs.pop().unwrap_or_default();
    Ok(())
}

fn merge<T>(left: Vec<T>, right: Vec<T>, compare: impl Fn(&T, &T) -> Ordering) -> Result<Vec<T>> {
    let mut out = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    loop {
        if out.len().is_multiple_of(16) {
            meter::spend(8)?;
        }
        let next = match (left.peek(), right.peek()) {
            (Some(a), Some(b)) if compare(b, a).is_lt() => right.next(),
            (Some(_), _) => left.next(),
            (None, _) => right.next(),
        };
        match next {
            Some(item) => out.push(item),
            None => return Ok(out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::meter::{OVERRUN, Oversight, bounded, within};

    #[test]
    fn sorts_as_the_library_does_and_keeps_equals_in_order() {
        for n in [0, 1, 2, RUN - 1, RUN, RUN + 1, 5 * RUN + 7] {
            let mut items: Vec<(usize, usize)> = (0..n).map(|i| (i * 7919 % 257, i)).collect();
            let mut expected = items.clone();
            expected.sort_by_key(|i| i.0);
            merge_sort(&mut items, |a, b| a.0.cmp(&b.0)).unwrap();
            assert_eq!(items, expected, "{n} items");
        }
    }

    #[test]
    fn is_interrupted_in_the_middle() {
        let mut items: Vec<usize> = (0..2_000_000).rev().collect();
        let ended = within(&mut Oversight::default(), || bounded(8, || merge_sort(&mut items, Ord::cmp)));
        assert_eq!(ended.unwrap_err().code, OVERRUN);
    }
}
