//! `collectionUUID`: a client says which collection it means, whatever has the name by now.

use crate::Node;
use crate::namespace::Slot;
use document::{Doc, Error, Result, Value, doc, err};
use storage::split_namespace;

impl Node {
    /// # Errors
    /// CollectionUUIDMismatch (361) for a command that means another collection than the one of this name, or none has it.
    pub fn check_uuid(&self, body: Doc<'_>, slot: &Slot) -> Result<()> {
        match body.get_present("collectionUUID").and_then(|v| v.as_uuid()) {
            Some(expected) if !slot.holds(expected) => Err(self.uuid_mismatch(&slot.ns, expected)),
            _ => Ok(()),
        }
    }

    /// [`mismatch`], with the name. Not for who holds a latch.
    pub fn uuid_mismatch(&self, ns: &str, expected: [u8; 16]) -> Error {
        let (db, _) = split_namespace(ns);
        let visible = self.namespaces.visible();
        let names = visible.iter().filter(|slot| slot.holds(expected)).map(|slot| split_namespace(&slot.ns));
        mismatch(ns, expected, names.filter(|(other, _)| *other == db).map(|(_, name)| name).next())
    }
}

/// The error where another collection than the one with this UUID has the name, or none (361). `actual` is the name that this one
/// has in the database.
pub(crate) fn mismatch(ns: &str, expected: [u8; 16], actual: Option<&str>) -> Error {
    let (db, name) = split_namespace(ns);
    err!(COLLECTION_UUID_MISMATCH, "Collection UUID does not match that specified").with_info(doc! {
        "db": db, "collectionUUID": Value::uuid(expected), "expectedCollection": name,
        "actualCollection": actual.map_or(Value::Null, Value::from),
    })
}
