//! filemd5: the MD5 of a GridFS file, from its chunks in order.
//!
//! A node and a router do the same: they read a few chunks at a time, by the index on file and number, and add them to the sum.
//! So no more of a file than that is in memory.

use super::aggregate::{Asked, collect};
use crate::shape::{Kind, Shape, field};
use crate::transaction::Area;
use crate::{Node, Operation, Request};
use document::hash::Checksum;
use document::{Doc, DocBuf, DocWriter, Result, Value, ValueRef, bail, doc};
use std::sync::Arc;

/// How many chunks are read at once: a megabyte with chunks of the usual size.
const AT_ONCE: i32 = 4;

const SHAPE: Shape = Shape {
    name: "filemd5",
    generic: true,
    fields: &[field("root", Kind::String), field("partialOk", Kind::SafeBool), field("md5state", Kind::Any)],
};

/// The collection of chunks that a command's body names, without its database.
pub fn collection(body: Doc<'_>) -> String {
    format!("{}.chunks", body.get_str("root").unwrap_or("fs"))
}

/// A `filemd5` command and how far it has come.
pub struct FileMd5 {
    /// The collection of chunks, without its database.
    pub collection: String,
    file: Value,
    /// A gap in the numbers ends the file without an error.
    partial_ok: bool,
    sum: Checksum,
    chunks: i32,
    complete: bool,
}

impl FileMd5 {
    /// # Errors
    /// Those of [`Shape`] as the real server; 238 for a sum that another command began.
    pub fn parse(request: &Request<'_>) -> Result<FileMd5> {
        let body = request.body;
        SHAPE.check_command(body, &[])?;
        if body.get("md5state").is_some() {
            bail!(NOT_IMPLEMENTED, "filemd5 does not continue a sum (md5state)");
        }
        Ok(FileMd5 {
            collection: collection(body),
            file: request.argument().map_or(Value::Null, |v| v.to_value()),
            partial_ok: body.get("partialOk").is_some_and(|v| v.truthy()),
            sum: Checksum::default(),
            chunks: 0,
            complete: false,
        })
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
            if chunk.get("n").and_then(|n| n.as_i64()) != Some(self.chunks.into()) {
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
            self.chunks = self.chunks.saturating_add(1);
        }
        Ok(())
    }
    /// Writes the reply's members without `ok`.
    pub fn write_result(self, w: &mut DocWriter<'_>) {
        w.i32("numChunks", self.chunks);
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
    node.await_readable(op, Area::Database(request.db)).await?;
    let ns = format!("{}.{}", request.db, command.collection);
    while let Some(pipeline) = command.next_pipeline() {
        let asked = Asked { pipeline, ..Asked::on(node, &ns, request.body)? };
        command.add(&collect(node, op, asked).await?)?;
    }
    command.write_result(w);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::codes;

    fn parse(more: &[(&str, Value)]) -> Result<FileMd5> {
        let mut body = doc! { "filemd5": 1 };
        for (name, value) in more {
            body.push(*name, value.clone());
        }
        let body = body.to_doc_buf();
        FileMd5::parse(&Request { db: "d", body: body.doc(), sequences: &[] })
    }

    #[test]
    fn the_collection_whose_right_is_checked_is_the_one_that_is_read() {
        let twice = [("root", Value::from("open")), ("root", Value::from("secret"))];
        assert_eq!(parse(&twice).err().map(|e| e.code), Some(codes::IDL_DUPLICATE_FIELD));
        let after_null = [("root", Value::Null), ("root", Value::from("secret"))];
        assert_eq!(parse(&after_null).err().map(|e| e.code), Some(codes::IDL_DUPLICATE_FIELD));
        assert_eq!(parse(&twice[1..]).ok().map(|c| c.collection), Some("secret.chunks".to_string()));
    }
}
