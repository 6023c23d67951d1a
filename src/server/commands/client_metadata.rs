//! What a client says of itself, its driver and its machine in the first `hello` of a connection.

use crate::dispatch::Context;
use document::{Doc, Result, ValueRef, bail, doc};
use std::sync::atomic::Ordering;

/// Bytes of the document: one that went through a router may have as much again.
const ROUTER_BYTES_MAX: usize = 512;
const NODE_BYTES_MAX: usize = 1024;
/// Bytes of the application's name.
const NAME_BYTES_MAX: usize = 128;

/// Keeps it for the log, `currentOp` and the profiler.
///
/// # Errors
/// ClientMetadataCannotBeMutated (186) where the connection has some; TypeMismatch, ClientMetadataMissingField (183),
/// ClientMetadataAppNameTooLarge (184), ClientMetadataDocumentTooLarge (185).
pub(super) fn note(context: &Context, value: ValueRef<'_>) -> Result<()> {
    let client = &context.connection.client;
    let mut slot = client.metadata.lock();
    if slot.is_some() {
        bail!(
            CLIENT_METADATA_CANNOT_BE_MUTATED,
            "The client metadata document may only be sent in the first hello"
        );
    }
    let ValueRef::Document(metadata) = value else {
        bail!(TYPE_MISMATCH, "The client metadata document must be a document")
    };
    let bytes_max = if context.service.is_router() { ROUTER_BYTES_MAX } else { NODE_BYTES_MAX };
    check(metadata, bytes_max)?;
    if metadata.get_document("driver").and_then(|d| d.get_str("name")) == Some(wire::client::NODE_DRIVER) {
        client.peer.store(true, Ordering::Relaxed);
    }
    let metadata = metadata.to_document();
    *client.app_name.lock() =
        metadata.get_path("application.name").and_then(|v| v.as_str()).map(str::to_string);
    let attr = doc! {
        "remote": client.remote.as_str(), "client": context.connection.name(), "doc": metadata.clone(),
    };
    context.service.log.info("NETWORK", 51800, &context.connection.name(), "client metadata", attr);
    *slot = Some(metadata);
    Ok(())
}

fn check(metadata: Doc<'_>, bytes_max: usize) -> Result<()> {
    if metadata.bytes().len() > bytes_max {
        bail!(
            CLIENT_METADATA_DOCUMENT_TOO_LARGE,
            "The client metadata document must be less then or equal to {bytes_max} bytes"
        );
    }
    if let Some(application) = part(metadata, "application")?
        && let Some(name) = text(application, "application", "name")?
        && name.len() > NAME_BYTES_MAX
    {
        bail!(
            CLIENT_METADATA_APP_NAME_TOO_LARGE,
            "The 'application.name' field must be less then or equal to {NAME_BYTES_MAX} bytes in the client metadata \
             document"
        );
    }
    for (name, fields) in [("driver", &["name", "version"][..]), ("os", &["type"])] {
        let Some(part) = part(metadata, name)? else {
            bail!(
                CLIENT_METADATA_MISSING_FIELD,
                "Missing required sub-document '{name}' in the client metadata document"
            )
        };
        for field in fields {
            if text(part, name, field)?.is_none() {
                bail!(
                    CLIENT_METADATA_MISSING_FIELD,
                    "Missing required field '{field}' in sub-document '{name}' in the client metadata document"
                );
            }
        }
    }
    Ok(())
}

fn part<'a>(metadata: Doc<'a>, name: &str) -> Result<Option<Doc<'a>>> {
    match metadata.get(name) {
        None => Ok(None),
        Some(ValueRef::Document(part)) => Ok(Some(part)),
        Some(_) => bail!(
            TYPE_MISMATCH,
            "The '{name}' field is required to be a BSON document in the client metadata document"
        ),
    }
}

fn text<'a>(part: Doc<'a>, of: &str, name: &str) -> Result<Option<&'a str>> {
    match part.get(name) {
        None => Ok(None),
        Some(ValueRef::String(text)) => Ok(Some(text)),
        Some(_) => {
            bail!(TYPE_MISMATCH, "The '{of}.{name}' field must be a string in the client metadata document")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::check;
    use document::{Document, codes, doc};

    #[test]
    fn what_clients_say_of_themselves_is_bounded_and_complete() {
        let with = |name: &str, value: document::Value| {
            let mut d = doc! {
                "application": { "name": "shop" }, "driver": { "name": "d", "version": "1" }, "os": { "type": "Linux" },
            };
            d.insert(name, value);
            d
        };
        let code = |d: Document| check(d.to_doc_buf().doc(), 512).map_err(|e| e.code);
        assert_eq!(code(with("platform", "x".into())), Ok(()));
        assert_eq!(code(with("env", "x".repeat(400).into())), Err(codes::CLIENT_METADATA_DOCUMENT_TOO_LARGE));
        let named = |n| doc! { "name": "x".repeat(n) }.into();
        assert_eq!(code(with("application", named(128))), Ok(()));
        assert_eq!(code(with("application", named(129))), Err(codes::CLIENT_METADATA_APP_NAME_TOO_LARGE));
        for (name, value) in
            [("application", "shop".into()), ("driver", 1.into()), ("os", doc! { "type": 1 }.into())]
        {
            assert_eq!(code(with(name, value)), Err(codes::TYPE_MISMATCH), "{name}");
        }
        for (name, value) in [("driver", doc! { "name": "d" }), ("os", doc! {})] {
            assert_eq!(code(with(name, value.into())), Err(codes::CLIENT_METADATA_MISSING_FIELD), "{name}");
        }
        assert_eq!(code(doc! {}), Err(codes::CLIENT_METADATA_MISSING_FIELD));
    }
}
