//! An image: consecutive records of one collection. All numbers are little-endian. DO NOT CHANGE without a new version.
//!
//! | offset | size | |
//! |---|---|---|
//! | 0 | 8 | magic `TSSRIMAG` |
//! | 8 | 4 | format version, 1 |
//! | 12 | 4 | zero |
//! | 16 | 16 | UUID of the collection |
//! | 32 | | records: id (8), document (its own length) |
//!
//! Length and CRC-32C of the whole file stand in the manifest, so a file that is cut, damaged or another one is found.

use std::path::Path;
use std::sync::Arc;

use crate::StorageError;
use crate::files::{File, Files};
use crate::record_store::RecordId;

const MAGIC: &[u8; 8] = b"TSSRIMAG";
const VERSION: u32 = 1;
const HEAD: usize = 32;
/// Bytes gathered before they are written.
const BUFFER: usize = 1 << 20;

/// One image as the manifest names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SegmentRef {
    /// Names the file.
    pub(crate) number: u64,
    /// The first record in it.
    pub(crate) first: RecordId,
    /// The last record in it.
    pub(crate) last: RecordId,
    pub(crate) records: u64,
    /// Length of the file.
    pub(crate) bytes: u64,
    /// CRC-32C of the file.
    pub(crate) checksum: u32,
}

/// The name of the file with this number.
pub(crate) fn name(number: u64) -> String {
    format!("{number:016x}.img")
}

/// The number in the name of an image file.
pub(crate) fn number(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".img").filter(|d| d.len() == 16)?;
    u64::from_str_radix(digits, 16).ok()
}

/// An image being written.
pub(crate) struct ImageWriter {
    file: Arc<dyn File>,
    path: std::path::PathBuf,
    image: SegmentRef,
    buffer: Vec<u8>,
}

impl ImageWriter {
    pub(crate) fn create(
        files: &dyn Files,
        dir: &Path,
        number: u64,
        uuid: [u8; 16],
    ) -> Result<ImageWriter, StorageError> {
        let path = dir.join(name(number));
        let file = files.create(&path).map_err(StorageError::io("create", &path))?;
        let mut buffer = Vec::with_capacity(BUFFER + (64 << 10));
        buffer.extend_from_slice(MAGIC);
        buffer.extend_from_slice(&VERSION.to_le_bytes());
        buffer.extend_from_slice(&[0; 4]);
        buffer.extend_from_slice(&uuid);
        let image = SegmentRef { number, first: 0, last: 0, records: 0, bytes: 0, checksum: 0 };
        Ok(ImageWriter { file, path, image, buffer })
    }

    pub(crate) fn push(&mut self, record: RecordId, doc: &[u8]) -> Result<(), StorageError> {
        if self.image.records == 0 {
            self.image.first = record;
        }
        self.image.last = record;
        self.image.records += 1;
        self.buffer.extend_from_slice(&record.to_le_bytes());
        self.buffer.extend_from_slice(doc);
        if self.buffer.len() >= BUFFER { self.flush() } else { Ok(()) }
    }

    /// Bytes so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.image.bytes + self.buffer.len() as u64
    }

    fn flush(&mut self) -> Result<(), StorageError> {
        self.image.checksum = crc32c::crc32c_append(self.image.checksum, &self.buffer);
        self.file.write_at(&self.buffer, self.image.bytes).map_err(StorageError::io("write", &self.path))?;
        self.image.bytes += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Writes what is left and syncs.
    pub(crate) fn finish(mut self) -> Result<SegmentRef, StorageError> {
        self.flush()?;
        self.file.sync().map_err(StorageError::io("sync", &self.path))?;
        Ok(self.image)
    }
}

/// An image that was read and checked.
pub(crate) struct LoadedImage(Vec<u8>);

impl LoadedImage {
    /// The records in order.
    pub(crate) fn records(&self) -> impl Iterator<Item = (RecordId, &[u8])> {
        let mut rest = &self.0[HEAD..];
        std::iter::from_fn(move || {
            let (record, doc, after) = split_record(rest)?;
            rest = after;
            Some((record, doc))
        })
    }
}

/// Reads an image and checks it against what the manifest says.
pub(crate) fn read(
    files: &dyn Files,
    dir: &Path,
    image: &SegmentRef,
    uuid: [u8; 16],
) -> Result<LoadedImage, StorageError> {
    let path = dir.join(name(image.number));
    let corrupt = |reason: &str| StorageError::corrupt(&path, reason);
    let bytes = files.read(&path).map_err(StorageError::io("read", &path))?;
    if bytes.len() as u64 != image.bytes {
        return Err(corrupt("its length is not what the manifest says"));
    }
    if crc32c::crc32c(&bytes) != image.checksum {
        return Err(corrupt("its checksum is not what the manifest says"));
    }
    let head = bytes.get(..HEAD).ok_or_else(|| corrupt("it has no head"))?;
    if &head[..8] != MAGIC || head[8..12] != VERSION.to_le_bytes() || head[16..] != uuid {
        return Err(corrupt("it is not an image of this collection and format version"));
    }
    let length = bytes.len();
    let image_read = LoadedImage(bytes);
    let (mut count, mut read) = (0, HEAD);
    for (_, doc) in image_read.records() {
        count += 1;
        read += size_of::<RecordId>() + doc.len();
    }
    if read != length {
        return Err(corrupt("a record does not fit"));
    }
    if count != image.records {
        return Err(corrupt("the number of records is not what the manifest says"));
    }
    Ok(image_read)
}

fn split_record(bytes: &[u8]) -> Option<(RecordId, &[u8], &[u8])> {
    let (record, rest) = bytes.split_first_chunk()?;
    let length = u32::from_le_bytes(*rest.first_chunk()?) as usize;
    let (doc, rest) = rest.split_at_checked(length.max(5))?;
    Some((RecordId::from_le_bytes(*record), doc, rest))
}
