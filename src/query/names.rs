//! Entries under names, in the order in which they were added.
//!
//! Specifications have a handful of names, which are found fastest by looking at each; one with very many gets an index,
//! since a client chooses how many there are and looking for each of n among n takes a time that grows as their square.

use std::collections::HashMap;

/// With more entries than this they are found by hash.
const LINEAR_MAX: usize = 32;

#[derive(Clone, Debug)]
pub struct Names<T> {
    entries: Vec<(String, T)>,
    /// Where each entry is; empty while there are few.
    places: HashMap<String, usize>,
}

impl<T> Default for Names<T> {
    fn default() -> Names<T> {
        Names { entries: Vec::new(), places: HashMap::new() }
    }
}

impl<T> Names<T> {
    pub fn position(&self, name: &str) -> Option<usize> {
        match self.entries.len() {
            0..=LINEAR_MAX => self.entries.iter().position(|(n, _)| n == name),
            _ => self.places.get(name).copied(),
        }
    }
    pub fn get(&self, name: &str) -> Option<&T> {
        self.position(name).map(|at| &self.entries[at].1)
    }
    pub fn get_mut(&mut self, name: &str) -> Option<&mut T> {
        self.position(name).map(|at| &mut self.entries[at].1)
    }
    /// The entry at a position that [`Names::position`] gave.
    pub fn at(&self, position: usize) -> &(String, T) {
        &self.entries[position]
    }
    /// Adds an entry behind the others. The name must be new.
    pub fn push(&mut self, name: String, value: T) {
        self.entries.push((name, value));
        self.index();
    }
    /// Adds an entry before the others. The name must be new.
    pub fn push_front(&mut self, name: String, value: T) {
        self.entries.insert(0, (name, value));
        self.places.clear();
        self.index();
    }
    pub fn len(&self) -> usize {
        self.entries.len()
    }
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
    pub fn iter(&self) -> std::slice::Iter<'_, (String, T)> {
        self.entries.iter()
    }

    fn index(&mut self) {
        if self.entries.len() > LINEAR_MAX {
            for (at, (name, _)) in self.entries.iter().enumerate().skip(self.places.len()) {
                self.places.insert(name.clone(), at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_are_found_where_they_were_put() {
        let mut names = Names::default();
        for i in 0..2 * LINEAR_MAX {
            assert_eq!(names.position(&format!("f{i}")), None);
            names.push(format!("f{i}"), i);
            assert!((0..=i).all(|at| names.position(&format!("f{at}")) == Some(at)));
        }
        names.push_front("first".into(), 99);
        assert_eq!((names.position("first"), names.position("f0")), (Some(0), Some(1)));
        *names.get_mut("f40").unwrap() = 7;
        assert_eq!((names.get("f40"), names.at(41).0.as_str(), names.len()), (Some(&7), "f40", 65));
    }
}
