//! Where the documents of an index have arrays on its paths.

use std::collections::BTreeSet;

/// For the fields of an index, at which names of their paths some document has had an array; only ever grows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct MultikeyPaths(BTreeSet<(usize, usize)>);

impl MultikeyPaths {
    /// Notes an array at the name with this position in the path of the field with this position.
    pub fn note(&mut self, field: usize, name: usize) {
        self.0.insert((field, name));
    }
    pub fn merge(&mut self, other: &MultikeyPaths) {
        self.0.extend(&other.0);
    }
    /// Whether it would stay as it is if `other` were merged into it.
    pub fn holds(&self, other: &MultikeyPaths) -> bool {
        other.0.is_subset(&self.0)
    }
    /// The same of fields that have other positions, those given.
    pub fn renumbered(&self, positions: impl Iterator<Item = usize>) -> MultikeyPaths {
        let at = |field: usize, new: usize| {
            self.0.iter().filter(move |(f, _)| *f == field).map(move |(_, n)| (new, *n))
        };
        MultikeyPaths(positions.enumerate().flat_map(|(field, new)| at(field, new)).collect())
    }
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Whether there was an array anywhere on the path of the field.
    pub fn any_on(&self, field: usize) -> bool {
        self.0.range((field, 0)..(field + 1, 0)).next().is_some()
    }
    /// The beginnings of a field's path, itself among them, at which there were arrays.
    pub fn on<'p>(&self, field: usize, path: &'p str) -> Vec<&'p str> {
        beginnings(path)
            .enumerate()
            .filter(|(name, _)| self.0.contains(&(field, *name)))
            .map(|(_, p)| p)
            .collect()
    }
}

/// `a`, `a.b` and `a.b.c` of `a.b.c`.
pub(crate) fn beginnings(path: &str) -> impl Iterator<Item = &str> {
    let ends = path.match_indices('.').map(|(at, _)| at).chain([path.len()]);
    ends.map(|end| &path[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_told_by_the_beginnings_of_a_path() {
        let mut met = MultikeyPaths::default();
        met.note(1, 0);
        met.note(1, 2);
        assert_eq!(met.on(1, "a.b.c"), ["a", "a.b.c"]);
        assert!(met.on(0, "a.b.c").is_empty());
        assert!(met.any_on(1) && !met.any_on(0) && !met.any_on(2));
        let mut more = MultikeyPaths::default();
        more.note(0, 0);
        assert!(!met.holds(&more) && met.holds(&MultikeyPaths::default()));
        met.merge(&more);
        assert!(met.holds(&more));
    }
}
