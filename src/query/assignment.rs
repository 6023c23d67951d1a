//! A computed value that is set at a dotted path: by the stages of an update, and by a projection of find.
//!
//! It is set below documents and below each element of arrays; a scalar on the way gives place to a document. So one value may be copied
//! as often as the document has elements, and both the copies and their bytes are counted.

use crate::pipeline::stage::UNDERWAY_BYTES_MAX;
use document::{Document, Result, Value, meter, size_refused};

pub(crate) struct Assignment<'a> {
    /// A missing value removes what is at the path.
    value: Option<&'a Value>,
    copies: usize,
    /// Bytes of one copy, measured when a second one is made.
    bytes: Option<usize>,
}

impl<'a> Assignment<'a> {
    pub(crate) fn of(value: Option<&'a Value>) -> Assignment<'a> {
        Assignment { value, copies: 0, bytes: None }
    }

    /// Sets the value at `path` in `doc`.
    ///
    /// # Errors
    /// BSONObjectTooLarge (10334) when the copies take more than a document under way may, and those of [`meter::spend`].
    pub(crate) fn set<S: AsRef<str>>(&mut self, doc: &mut Document, path: &[S]) -> Result<()> {
        let Some((first, rest)) = path.split_first() else { return Ok(()) };
        let first = first.as_ref();
        if rest.is_empty() {
            match self.copy()? {
                Some(v) => doc.insert(first, v),
                None => drop(doc.remove(first)),
            }
            return Ok(());
        }
        match doc.get_mut(first) {
            Some(inner) => self.set_below(inner, rest),
            None => {
                doc.push(first, self.fresh(rest)?);
                Ok(())
            }
        }
    }

    /// The same in a value. Arrays in arrays stay what they are.
    ///
    /// # Errors
    /// As [`Assignment::set`].
    pub(crate) fn set_below<S: AsRef<str>>(&mut self, target: &mut Value, path: &[S]) -> Result<()> {
        meter::spend(1)?;
        match target {
            Value::Document(d) => self.set(d, path),
            Value::Array(items) => items.iter_mut().try_for_each(|item| self.set_below(item, path)),
            other => {
                *other = Value::Document(self.fresh(path)?);
                Ok(())
            }
        }
    }

    /// A document that has nothing but the value.
    fn fresh<S: AsRef<str>>(&mut self, path: &[S]) -> Result<Document> {
        let mut new = Document::new();
        self.set(&mut new, path)?;
        Ok(new)
    }

    fn copy(&mut self) -> Result<Option<Value>> {
        let Some(value) = self.value else { return Ok(None) };
        if self.copies > 0 {
            let bytes = *self.bytes.get_or_insert_with(|| value.to_holder().bytes().len());
            let size = bytes.saturating_mul(self.copies + 1);
            if size > UNDERWAY_BYTES_MAX {
                return Err(size_refused(size));
            }
        }
        self.copies += 1;
        Ok(Some(value.clone()))
    }
}
