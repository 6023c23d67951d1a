//! Where the fields of a document stand while many of them are updated: each is found without looking through the others.

use document::{Document, Result, Value, meter};
use std::collections::{HashMap, HashSet};

/// With more searches than this, fields are found by hash.
const LINEAR_MAX: usize = 16;

/// The fields of one document, which is given to each method. Its default searches.
#[derive(Default)]
pub(super) struct Index {
    /// Where each field stands, of several of one name the first; `None` where few are looked for.
    places: Option<HashMap<String, usize>>,
    /// Those that are removed, which the others still stand between.
    gone: HashSet<usize>,
}

impl Index {
    /// For `searches` fields that will be looked for.
    ///
    /// # Errors
    /// Those of [`meter::spend`].
    pub(super) fn of(document: &Document, searches: usize) -> Result<Index> {
        if searches <= LINEAR_MAX {
            return Ok(Index::default());
        }
        let mut places = HashMap::with_capacity(document.len() + searches);
        for (at, name) in document.keys().enumerate() {
            meter::spend(2)?;
            places.entry(name.to_string()).or_insert(at);
        }
        Ok(Index { places: Some(places), gone: HashSet::new() })
    }

    /// Where the field stands.
    ///
    /// # Errors
    /// Those of [`meter::spend`].
    pub(super) fn position(&self, document: &Document, name: &str) -> Result<Option<usize>> {
        match &self.places {
            Some(places) => {
                meter::spend(2)?;
                Ok(places.get(name).copied())
            }
            None => {
                meter::spend(2 + document.0.len() / 8)?;
                Ok(document.0.iter().position(|(n, _)| n == name))
            }
        }
    }

    /// Appends a field that the document does not have.
    pub(super) fn push(&mut self, document: &mut Document, name: &str, value: impl Into<Value>) {
        if let Some(places) = &mut self.places {
            places.insert(name.to_string(), document.len());
        }
        document.push(name, value);
    }

    /// Takes the field at a position that [`Index::position`] gave. Positions found before may not be used any more.
    pub(super) fn remove(&mut self, document: &mut Document, at: usize) -> Value {
        let Some(places) = &mut self.places else { return document.0.remove(at).1 };
        let (name, value) = &mut document.0[at];
        places.remove(name);
        self.gone.insert(at);
        std::mem::replace(value, Value::Null)
    }

    /// Removes from the document what has been taken.
    pub(super) fn settle(self, document: &mut Document) {
        if self.gone.is_empty() {
            return;
        }
        let mut at = 0;
        document.0.retain(|_| {
            at += 1;
            !self.gone.contains(&(at - 1))
        });
    }
}
