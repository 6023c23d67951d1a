//! filemd5: the MD5 of a GridFS file, from its chunks in order.
//!
//! A node and a router do the same: they read a few chunks at a time, by the index on file and number, and add them to the sum.
//! So no more of a file than that is in memory.

use super::aggregate::{Asked, collect};
use super::fields::Fields;
use crate::{Node, Operation, Request};
use document::hash::Checksum;
use document::{DocBuf, DocWriter, Element, Result, Value, ValueRef, bail, doc};
use std::sync::Arc;

/// How many chunks are read at once: a megabyte with chunks of the usual size.
const AT_ONCE: i32 = 4;

const FIELDS: Fields = Fields { command: "filemd5" };

/// A `filemd5` command and how far it has come.
pub struct FileMd5 {
    /// The collection of chunks, without its database.
    pub collection: String,
    file: Value,
    /// A gap in the numbers ends the file without an error.
    partial_ok: bool,
    sum: Checksum,
    chunks: i64,
    complete: bool,
}

impl FileMd5 {
    /// # Errors
    /// 40415 and 14 as the real server; 238 for a sum that another command began.
    pub fn parse(request: &Request<'_>) -> Result<FileMd5> {
        let file = request.argument().map_or(Value::Null, |v| v.to_value());
        let collection = "fs.chunks".to_string();
        let mut command = FileMd5 {
            collection,
            file,
            partial_ok: false,
            sum: Checksum::default(),
            chunks: 0,
            complete: false,
        };
        request.body.iter().skip(1).try_for_each(|e| command.read(&e))?;
        Ok(command)
    }
    fn read(&mut self, e: &Element<'_>) -> Result<()> {
        match e.name() {
            "root" => self.collection = format!("{}.chunks", FIELDS.string(e)?),
            "partialOk" => self.partial_ok = FIELDS.bool(e)?,
            "md5state" => bail!(NOT_IMPLEMENTED, "filemd5 does not continue a sum (md5state)"),
            name => FIELDS.unknown(name)?,
        }
        Ok(())
    }
    /// The pipeline that gives the next chunks; none when the file has ended.
    pub fn next_pipeline(&self) -> Option<Vec<Value>> {
        let next = doc! { "files_id": self.file.clone(), "n": { "$gte": self.chunks } };
        let stages = [doc! { "$match": next }, doc! { "$sort": { "n": 1 } }, doc! { "$limit": AT_ONCE }];
        (!self.complete).then(|| stages.map(Value::Document).to_vec())
    }
    /// Adds the chunks that this pipeline gave.
    ///
    /// # Errors
    /// 10040 for a gap in the numbers, 50847 for a chunk whose data is not binary.
    pub fn add(&mut self, chunks: &[DocBuf]) -> Result<()> {
        self.complete = chunks.len() < AT_ONCE as usize;
        for chunk in chunks {
            let chunk = chunk.doc();
            if chunk.get("n").and_then(|n| n.as_i64()) != Some(self.chunks) {
                if !self.partial_ok {
                    bail!(10040, "chunks out of order");
                }
                self.complete = true;
                break;
            }
            match chunk.get("data") {
                Some(ValueRef::Binary(_, bytes)) => self.sum.update(bytes),
                other => {
                    let found = other.map_or("missing", |v| v.type_name());
                    bail!(
                        50847,
                        "The data of a GridFS chunk must be of type BinData, but is of type {found}."
                    );
                }
            }
            self.chunks += 1;
        }
        Ok(())
    }
    /// Writes the reply's members without `ok`.
    pub fn write_result(self, w: &mut DocWriter<'_>) {
        w.i64("numChunks", self.chunks);
        w.string("md5", &self.sum.hex());
    }
}

/// Runs a `filemd5` command on this node; writes the reply's members without `ok`.
///
/// # Errors
/// Those of [`FileMd5`] and of the reads.
pub async fn file_md5(
    node: &Arc<Node>,
    op: &Arc<Operation>,
    request: Request<'_>,
    w: &mut DocWriter<'_>,
) -> Result<()> {
    let mut command = FileMd5::parse(&request)?;
    node.await_read_concern(op).await?;
    let ns = format!("{}.{}", request.db, command.collection);
    while let Some(pipeline) = command.next_pipeline() {
        let asked = Asked { pipeline, ..Asked::on(node, &ns, request.body)? };
        command.add(&collect(node, op, asked).await?)?;
    }
    command.write_result(w);
    Ok(())
}
