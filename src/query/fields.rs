//! The fields of one document, for who asks for many of them by name.

use document::{Doc, Element, Result, meter};
use std::collections::HashMap;

/// So many names are looked for one by one, from the beginning of the document each.
const NAMES_FEW: usize = 16;
/// A document of so many bytes is always looked through so.
const BYTES_FEW: usize = 256;
/// Units of work that a field takes in the index.
const UNITS_A_FIELD: usize = 2;

/// The fields of a document by their names.
pub struct Fields<'d> {
    doc: Doc<'d>,
    /// Set where many names of a document of many fields are asked for.
    index: Option<HashMap<&'d [u8], Element<'d>>>,
}

impl<'d> Fields<'d> {
    /// The fields of `doc`, to be asked for so many names.
    ///
    /// # Errors
    /// Those of [`meter::spend`].
    pub fn of(doc: Doc<'d>, names: usize) -> Result<Fields<'d>> {
        if names <= NAMES_FEW || doc.bytes().len() <= BYTES_FEW {
            return Ok(Fields { doc, index: None });
        }
        let mut index = HashMap::new();
        for e in doc {
            meter::spend(UNITS_A_FIELD)?;
            index.entry(e.name_bytes()).or_insert(e);
        }
        Ok(Fields { doc, index: Some(index) })
    }
    /// The first field of a name.
    pub fn get(&self, name: &str) -> Option<Element<'d>> {
        match &self.index {
            Some(index) => index.get(name.as_bytes()).copied(),
            None => self.doc.element(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::{Document, Value, ValueRef, doc};

    #[test]
    fn the_first_field_of_a_name_is_found_in_small_and_in_large_documents() {
        for count in [3, 300] {
            let mut d: Document = (0..count).map(|i| (format!("f{i}"), Value::Int32(i))).collect();
            d.push("f1", "again");
            let d = d.to_doc_buf();
            for names in [1, NAMES_FEW + 1] {
                let fields = Fields::of(d.doc(), names).unwrap();
                let value = |name: &str| fields.get(name).map(|e| e.value());
                assert_eq!(value("f1"), Some(ValueRef::Int32(1)));
                assert_eq!(value(&format!("f{}", count - 1)), Some(ValueRef::Int32(count - 1)));
                assert_eq!(value("none"), None);
            }
        }
        assert!(Fields::of(doc! {}.to_doc_buf().doc(), 100).unwrap().get("a").is_none());
    }
}
