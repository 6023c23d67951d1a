//! The manifest: what one checkpoint consists of. All numbers are little-endian. DO NOT CHANGE without a new version.
//!
//! | offset | size | |
//! |---|---|---|
//! | 0 | 8 | magic `TSSRMANI` |
//! | 8 | 4 | format version, 1 |
//! | 12 | 4 | CRC-32C of everything from offset 16 |
//! | 16 | | one BSON document, below |
//! | | | blobs until the end: length of the name (4), name, length (8), bytes |
//!
//! ```text
//! { position: long, ts: timestamp, term: long,
//!   collections: [{ ns, uuid, options, idIndex: bool, nextRecord: long, records: long, indexes: [spec...],
//!                   images: [{ file, first, last, records, bytes, checksum: long... }] }],
//!   transactions: [{ lsid, txnNumber, lastTs: timestamp, operations: [...], prepared?: { ts, t },
//!                    position }] }
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use document::{Doc, DocWriter, Document, Timestamp, ValueRef};

use super::OpenTransaction;
use super::image::SegmentRef;
use crate::StorageError;
use crate::catalog::CollectionMeta;
use crate::files::Files;
use crate::log::{OpTime, Position};
use crate::record_store::RecordId;
use crate::snapshot::{CollectionSnapshot, CollectionView};

const MAGIC: &[u8; 8] = b"TSSRMANI";
const VERSION: u32 = 1;
const HEAD: usize = 16;

/// A checkpoint, described.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Manifest {
    pub(crate) position: Position,
    pub(crate) optime: OpTime,
    pub(crate) collections: Vec<ManifestCollection>,
    pub(crate) transactions: Vec<OpenTransaction>,
    pub(crate) extra: BTreeMap<String, Vec<u8>>,
}

/// One collection of a checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ManifestCollection {
    pub(crate) meta: CollectionMeta,
    pub(crate) next_record: RecordId,
    pub(crate) records: u64,
    pub(crate) indexes: Vec<Document>,
    pub(crate) images: Vec<SegmentRef>,
}

impl ManifestCollection {
    pub(crate) fn of(snapshot: &CollectionSnapshot, images: Vec<SegmentRef>) -> ManifestCollection {
        ManifestCollection {
            meta: (*snapshot.meta).clone(),
            next_record: snapshot.next_record,
            records: snapshot.len() as u64,
            indexes: snapshot.indexes.iter().map(|i| i.info.spec.document().clone()).collect(),
            images,
        }
    }

    fn write(&self, w: &mut DocWriter<'_>) {
        w.string("ns", &self.meta.ns);
        w.uuid("uuid", &self.meta.uuid);
        w.document_with("options", |w| self.meta.options.write_fields(w));
        w.bool("idIndex", self.meta.id_index);
        w.i64("nextRecord", self.next_record as i64);
        w.i64("records", self.records as i64);
        array(w, "indexes", &self.indexes, |w, spec| spec.write_fields(w));
        array(w, "images", &self.images, |w, image| {
            w.i64("file", image.number as i64);
            w.i64("first", image.first as i64);
            w.i64("last", image.last as i64);
            w.i64("records", image.records as i64);
            w.i64("bytes", image.bytes as i64);
            w.i64("checksum", i64::from(image.checksum));
        });
    }

    fn read(doc: Doc<'_>) -> Option<ManifestCollection> {
        let image = |doc: Doc<'_>| {
            Some(SegmentRef {
                number: unsigned(doc, "file")?,
                first: unsigned(doc, "first")?,
                last: unsigned(doc, "last")?,
                records: unsigned(doc, "records")?,
                bytes: unsigned(doc, "bytes")?,
                checksum: u32::try_from(unsigned(doc, "checksum")?).ok()?,
            })
        };
        Some(ManifestCollection {
            meta: CollectionMeta {
                ns: doc.get_str("ns")?.to_string(),
                uuid: doc.get("uuid")?.as_uuid()?,
                options: doc.get_document("options")?.to_document(),
                id_index: doc.get_bool("idIndex")?,
            },
            next_record: unsigned(doc, "nextRecord")?,
            records: unsigned(doc, "records")?,
            indexes: documents(doc, "indexes")?.map(|d| d.to_document()).collect(),
            images: documents(doc, "images")?.map(image).collect::<Option<_>>()?,
        })
    }
}

impl OpenTransaction {
    /// As checkpoints hold it, and members that copy another's data are given it.
    pub fn document(&self) -> document::DocBuf {
        DocWriter::build(|w| write_transaction(w, self))
    }
    /// `None` for a document that is none.
    pub fn read(doc: Doc<'_>) -> Option<OpenTransaction> {
        read_transaction(doc)
    }
}

fn write_transaction(w: &mut DocWriter<'_>, transaction: &OpenTransaction) {
    w.document("lsid", transaction.lsid.doc());
    w.i64("txnNumber", transaction.txn_number);
    w.timestamp("lastTs", Timestamp::from_u64(transaction.last_ts));
    array(w, "operations", &transaction.operations, |w, o| w.fields_of(o.doc()));
    if let Some(optime) = transaction.prepared {
        w.document_with("prepared", |w| {
            w.timestamp("ts", Timestamp::from_u64(optime.ts));
            w.i64("t", optime.term);
        });
    }
    w.i64("position", transaction.first_position as i64);
}

fn read_transaction(doc: Doc<'_>) -> Option<OpenTransaction> {
    let prepared = match doc.get_document("prepared") {
        None => None,
        Some(optime) => Some(OpTime { ts: timestamp(optime, "ts")?, term: optime.get_i64("t")? }),
    };
    Some(OpenTransaction {
        lsid: doc.get_document("lsid")?.to_owned(),
        txn_number: doc.get_i64("txnNumber")?,
        last_ts: timestamp(doc, "lastTs")?,
        operations: documents(doc, "operations")?.map(Doc::to_owned).collect(),
        prepared,
        first_position: unsigned(doc, "position")?,
    })
}

fn array<T>(w: &mut DocWriter<'_>, name: &str, items: &[T], f: impl Fn(&mut DocWriter<'_>, &T)) {
    w.array_with(name, |w| {
        for (i, item) in items.iter().enumerate() {
            w.with_index(i, |w, name| w.document_with(name, |w| f(w, item)));
        }
    });
}

fn documents<'a>(doc: Doc<'a>, name: &str) -> Option<impl Iterator<Item = Doc<'a>>> {
    Some(doc.get(name)?.as_array()?.iter().filter_map(|e| e.value().as_document()))
}

fn unsigned(doc: Doc<'_>, name: &str) -> Option<u64> {
    match doc.get(name)? {
        ValueRef::Int64(n) => Some(n as u64),
        _ => None,
    }
}

fn timestamp(doc: Doc<'_>, name: &str) -> Option<u64> {
    Some(doc.get(name)?.as_timestamp()?.as_u64())
}

/// Where the manifest stands in the checkpoint directory.
pub(crate) fn manifest_path(dir: &Path) -> PathBuf {
    dir.join("manifest")
}

impl Manifest {
    /// The bytes of the file. Fails when there is more than one BSON document can hold.
    pub(crate) fn encode(&self, path: &Path) -> Result<Vec<u8>, StorageError> {
        let mut bytes = vec![0; HEAD];
        DocWriter::write(&mut bytes, |w| {
            w.i64("position", self.position as i64);
            w.timestamp("ts", Timestamp::from_u64(self.optime.ts));
            w.i64("term", self.optime.term);
            array(w, "collections", &self.collections, |w, c| c.write(w));
            array(w, "transactions", &self.transactions, write_transaction);
        });
        if bytes.len() > i32::MAX as usize {
            return Err(StorageError::corrupt(path, "the catalog is larger than 2 GiB"));
        }
        for (name, blob) in &self.extra {
            bytes.extend_from_slice(&(name.len() as u32).to_le_bytes());
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(&(blob.len() as u64).to_le_bytes());
            bytes.extend_from_slice(blob);
        }
        let checksum = crc32c::crc32c(&bytes[HEAD..]);
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
        Ok(bytes)
    }

    fn decode(bytes: &[u8]) -> Result<Manifest, &'static str> {
        let (head, rest) = bytes.split_at_checked(HEAD).ok_or("it has no head")?;
        if &head[..8] != MAGIC {
            return Err("it is not a manifest");
        }
        if head[8..12] != VERSION.to_le_bytes() {
            return Err("its format version is not known");
        }
        if head[12..16] != crc32c::crc32c(rest).to_le_bytes() {
            return Err("its checksum is wrong");
        }
        Manifest::decode_body(rest).ok_or("a member is missing or of another type")
    }

    fn decode_body(rest: &[u8]) -> Option<Manifest> {
        let length = u32::from_le_bytes(*rest.first_chunk()?) as usize;
        let (doc, blobs) = rest.split_at_checked(length.max(5))?;
        let doc = Doc::from_validated(doc);
        Some(Manifest {
            position: unsigned(doc, "position")?,
            optime: OpTime { ts: timestamp(doc, "ts")?, term: doc.get_i64("term")? },
            collections: documents(doc, "collections")?
                .map(ManifestCollection::read)
                .collect::<Option<_>>()?,
            transactions: documents(doc, "transactions")?.map(read_transaction).collect::<Option<_>>()?,
            extra: read_blobs(blobs)?,
        })
    }
}

fn read_blobs(mut bytes: &[u8]) -> Option<BTreeMap<String, Vec<u8>>> {
    let mut blobs = BTreeMap::new();
    while !bytes.is_empty() {
        let (length, rest) = bytes.split_first_chunk()?;
        let (name, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        let (length, rest) = rest.split_first_chunk()?;
        let (blob, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        blobs.insert(std::str::from_utf8(name).ok()?.to_string(), blob.to_vec());
        bytes = rest;
    }
    Some(blobs)
}

/// Reads the manifest in the checkpoint directory; `None` when there is none yet.
pub(crate) fn read(files: &dyn Files, dir: &Path) -> Result<Option<Manifest>, StorageError> {
    let path = manifest_path(dir);
    if !files.exists(&path).map_err(StorageError::io("look for", &path))? {
        return Ok(None);
    }
    let bytes = files.read(&path).map_err(StorageError::io("read", &path))?;
    Manifest::decode(&bytes).map(Some).map_err(|reason| StorageError::corrupt(&path, reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::doc;

    fn manifest() -> Manifest {
        let image =
            SegmentRef { number: 3, first: 1, last: 9, records: 7, bytes: 500, checksum: 0xFFFF_0001 };
        Manifest {
            position: 77,
            optime: OpTime { ts: 5 << 32 | 1, term: 3 },
            collections: vec![ManifestCollection {
                meta: CollectionMeta::with_options("a.b", [3; 16], doc! { "capped": true }),
                next_record: 10,
                records: 7,
                indexes: vec![doc! { "v": 2, "key": { "_id": 1 }, "name": "_id_" }],
                images: vec![image],
            }],
            transactions: vec![OpenTransaction {
                lsid: doc! { "id": 1 }.to_doc_buf(),
                txn_number: 9,
                last_ts: 4,
                operations: vec![doc! { "op": "i" }.to_doc_buf()],
                prepared: Some(OpTime { ts: 4, term: 1 }),
                first_position: 12,
            }],
            extra: [("sessions".to_string(), vec![1, 2, 3]), ("empty".to_string(), vec![])].into(),
        }
    }

    #[test]
    fn a_manifest_is_read_back_as_it_was_written() {
        let bytes = manifest().encode(Path::new("m")).unwrap();
        assert_eq!(Manifest::decode(&bytes).unwrap(), manifest());
    }

    #[test]
    fn every_changed_byte_and_every_cut_is_found() {
        let bytes = manifest().encode(Path::new("m")).unwrap();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert!(Manifest::decode(&damaged).is_err(), "byte {at}");
            assert!(Manifest::decode(&bytes[..at]).is_err(), "cut at {at}");
        }
    }
}
