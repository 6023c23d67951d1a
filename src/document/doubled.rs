//! A name that stands twice where each should stand once.

use crate::{Result, bail};
use std::collections::BTreeSet;

/// As many names are compared with one another; of more a set is made, so that a long list takes no quadratic time.
const COMPARED_MAX: usize = 16;

/// The first name that has stood in the list before. Allocates nothing for up to 16 names.
fn doubled<'a>(names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
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

/// Refuses a name that stands twice among the fields of `of`, a command, a stage or a member of one.
///
/// # Errors
/// IDLDuplicateField (40413).
pub fn refuse_doubled<'a>(of: &str, names: impl Iterator<Item = &'a str>) -> Result<()> {
    match doubled(names) {
        Some(name) => bail!(IDL_DUPLICATE_FIELD, "BSON field '{of}.{name}' is a duplicate field"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{doubled, refuse_doubled};

    #[test]
    fn the_refusal_names_the_field_and_what_it_is_of() {
        assert_eq!(refuse_doubled("find", ["a", "b"].into_iter()), Ok(()));
        let error = refuse_doubled("find", ["a", "b", "b"].into_iter()).unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (40413, "BSON field 'find.b' is a duplicate field"));
    }

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
