//! A name that stands twice where each should stand once.

use std::collections::BTreeSet;

/// As many names are compared with one another; of more a set is made, so that a long list takes no quadratic time.
const COMPARED_MAX: usize = 16;

/// The first name that has stood in the list before. Allocates nothing for up to 16 names.
pub fn doubled<'a>(names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut first = [""; COMPARED_MAX];
    let mut others = BTreeSet::new();
    for (at, name) in names.enumerate() {
        if first[..at.min(COMPARED_MAX)].contains(&name) {
            return Some(name);
        }
        match first.get_mut(at) {
            Some(place) => *place = name,
            None if !others.insert(name) => return Some(name),
            None => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::doubled;

    #[test]
    fn a_name_is_found_the_second_time_wherever_both_stand() {
        assert_eq!(doubled(["a", "", "b"].into_iter()), None);
        assert_eq!(doubled(["a", "", "b", "", "a"].into_iter()), Some(""));
        let many: Vec<String> = (0..100_000).map(|n| n.to_string()).collect();
        let names = || many.iter().map(String::as_str);
        assert_eq!(doubled(names()), None);
        for twice in ["3", "15", "16", "50000", "99999"] {
            assert_eq!(doubled(names().chain([twice])), Some(twice));
        }
    }
}
