//! `compactStructuredEncryptionData`, `cleanupStructuredEncryptionData`: for collections under Queryable Encryption, of which this server has
//! none.

use super::crud::node;
use crate::dispatch::{Command, Context, Needs, Reply, Request, Roles};
use document::{Result, ValueRef, bail};
use node::auth::Action as A;

pub const ROWS: &[Command] = &[
    Command::sync("compactStructuredEncryptionData", Roles::MONGOD, |c, r, reply| {
        run(c, r, reply, "compactionTokens")
    })
    .needs(Needs::Collection(&[A::CompactStructuredEncryptionData]))
    .primary_only()
    .help("Compacts what Queryable Encryption keeps beside a collection."),
    Command::sync("cleanupStructuredEncryptionData", Roles::MONGOD, |c, r, reply| {
        run(c, r, reply, "cleanupTokens")
    })
    .needs(Needs::Collection(&[A::CleanupStructuredEncryptionData]))
    .primary_only()
    .help("Cleans what Queryable Encryption keeps beside a collection."),
];

fn run(context: &Context, request: &Request<'_>, _: &mut Reply, tokens: &'static str) -> Result<()> {
    request.strict(&[tokens, "encryptionInformation", "anchorPaddingTokens"])?;
    let name = match request.target() {
        ValueRef::String(name) if !name.is_empty() => name,
        v => bail!(INVALID_NAMESPACE, "collection name has invalid type {}", v.type_name()),
    };
    request.document(tokens)?.ok_or_else(|| request.missing(tokens))?;
    let slot = node(context)?.namespaces.slot(&format!("{}.{name}", request.db));
    let state = slot.read_unchecked();
    if state.view.is_some() {
        bail!(COMMAND_NOT_SUPPORTED_ON_VIEW, "Cannot perform this operation on a view: {}", slot.ns);
    }
    let Some(collection) = &state.collection else {
        bail!(NAMESPACE_NOT_FOUND, "Collection '{}' does not exist", slot.ns);
    };
    match collection.meta().options.get("encryptedFields") {
        None => bail!(6346807, "Target namespace is not an encrypted collection"),
        Some(_) => bail!(NOT_IMPLEMENTED, "Queryable Encryption is known but not implemented"),
    }
}
