//! A command as it arrived: the body and its document sequences, still raw.

use document::{Doc, Result, ValueRef, bail};

/// Borrowed from the connection's frame; nothing is decoded until a handler asks.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// `$db`.
    pub db: &'a str,
    pub body: Doc<'a>,
    /// Kind-1 sections: identifier and the concatenated documents.
    pub sequences: &'a [(&'a str, &'a [u8])],
}

impl<'a> Request<'a> {
    /// The command's name: the first field of the body.
    pub fn name(&self) -> &'a str {
        self.body.iter().next().map_or("", |e| e.name())
    }
    /// The argument of the command: the value of the first field.
    pub fn argument(&self) -> Option<ValueRef<'a>> {
        self.body.iter().next().map(|e| e.value())
    }
    /// `db.<argument>`; the argument must be a valid collection name.
    ///
    /// # Errors
    /// InvalidNamespace (73) with the real server's text.
    pub fn namespace(&self) -> Result<String> {
        match self.argument() {
            Some(ValueRef::String(s)) => {
                check_collection_name(self.db, s)?;
                Ok([self.db, ".", s].concat())
            }
            Some(v) => bail!(INVALID_NAMESPACE, "collection name has invalid type {}", v.type_name()),
            None => bail!(INVALID_NAMESPACE, "collection name is missing"),
        }
    }
    /// The documents of a list field, from a kind-1 section or from an array in the body.
    pub fn documents(&self, field: &str) -> Documents<'a> {
        match self.sequences.iter().find(|(id, _)| *id == field) {
            Some((_, bytes)) => Documents::Sequence(bytes),
            None => match self.body.get(field) {
                Some(ValueRef::Array(a)) => Documents::Array(a.iter()),
                _ => Documents::Sequence(&[]),
            },
        }
    }
    /// Whether the list field was given at all, in either form.
    pub fn has_documents(&self, field: &str) -> bool {
        self.sequences.iter().any(|(id, _)| *id == field) || self.body.get(field).is_some()
    }
}

/// Documents of a list field, in order. Array items which are no documents are skipped: handlers that care look.
#[derive(Clone)]
pub enum Documents<'a> {
    Sequence(&'a [u8]),
    Array(document::raw::Iter<'a>),
}

impl<'a> Iterator for Documents<'a> {
    type Item = Doc<'a>;
    fn next(&mut self) -> Option<Doc<'a>> {
        match self {
            Documents::Sequence(bytes) => {
                let length = i32::from_le_bytes(bytes.get(..4)?.try_into().ok()?);
                let (head, tail) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
                *bytes = tail;
                Some(Doc::from_validated(head))
            }
            Documents::Array(items) => items.find_map(|e| e.value().as_document()),
        }
    }
}

/// Bytes of the longest `db.collection`.
pub const NAMESPACE_BYTES_MAX: usize = query::pipeline::Namespace::BYTES_MAX;

/// Refuses what the real server refuses as a collection name.
pub fn check_collection_name(db: &str, collection: &str) -> Result<()> {
    check_characters(db, collection)?;
    if db.len() + collection.len() + 1 > NAMESPACE_BYTES_MAX {
        bail!(
            INVALID_NAMESPACE,
            "Fully qualified namespace is too long. Namespace: {db}.{collection} Max: {NAMESPACE_BYTES_MAX}"
        );
    }
    Ok(())
}

/// The same whatever the length.
pub fn check_characters(db: &str, collection: &str) -> Result<()> {
    check_database_name(db)?;
    let bad = collection.is_empty()
        || collection.starts_with('.')
        || collection.contains('\0')
        || collection.contains("..")
        || (collection.contains('$') && !collection.starts_with("$cmd") && collection != "oplog.$main");
    if bad {
        bail!(INVALID_NAMESPACE, "Invalid namespace specified '{db}.{collection}'");
    }
    Ok(())
}

/// Refuses what the real server refuses as a database name.
pub fn check_database_name(db: &str) -> Result<()> {
    let bad = |c: char| matches!(c, '\0' | '/' | '\\' | ' ' | '"' | '.' | '$');
    if db.is_empty() || db.len() > 63 || (db.contains(bad) && db != "$external") {
        bail!(INVALID_NAMESPACE, "Invalid database name: '{db}'");
    }
    Ok(())
}
