//! The reply of `validateDBMetadata`: what the catalog has that the stable API lacks, as far as a reply holds it.

use document::{Document, Value, doc};

/// What the errors of a reply may take, in bytes.
const BYTES_MAX: usize = crate::write::statement::DOCUMENT_BYTES_MAX - 64 * 1024;

/// Errors in the order they were found, up to the first for which there is no room.
pub struct MetadataErrors {
    listed: Vec<Value>,
    room: usize,
    more: bool,
}

impl Default for MetadataErrors {
    fn default() -> MetadataErrors {
        MetadataErrors { listed: Vec::new(), room: BYTES_MAX, more: false }
    }
}

impl MetadataErrors {
    pub fn add(&mut self, error: Value) {
        // An element of an array has its position as its name, of seven digits at most.
        let bytes = error.to_holder().bytes().len() + 7;
        self.more |= bytes > self.room;
        if !self.more {
            self.room -= bytes;
            self.listed.push(error);
        }
    }

    /// Adds what another node has found.
    pub fn add_reply(&mut self, reply: &Document) {
        let errors = reply.get_array("apiVersionErrors").cloned().unwrap_or_default();
        errors.into_iter().for_each(|error| self.add(error));
        self.more |= reply.get_bool("hasMoreErrors") == Some(true);
    }

    /// `{apiVersionErrors: [...], hasMoreErrors?: true}`.
    pub fn reply(self) -> Document {
        let mut reply = doc! { "apiVersionErrors": self.listed };
        if self.more {
            reply.push("hasMoreErrors", true);
        }
        reply
    }
}
