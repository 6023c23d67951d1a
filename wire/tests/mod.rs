//! Both ends against each other, and the reading end against everything a peer may do wrong.

mod budget;
mod client;
mod compression;
mod malformed;
mod proxy_header;
mod round_trip;

use crate::op_compressed::Codecs;
use crate::{Compressor, CompressorSet, Limits, Malformed, Message, OpMsg, decode};
use document::{DocBuf, DocWriter};

fn all() -> CompressorSet {
    [Compressor::Noop, Compressor::Snappy, Compressor::Zlib, Compressor::Zstd].into_iter().collect()
}

fn decoded(frame: &[u8]) -> Result<Message, Malformed> {
    decode(bytes::Bytes::copy_from_slice(frame), &Limits::STANDARD, all(), &mut Codecs::default())
}

fn msg(frame: &[u8]) -> OpMsg {
    match decoded(frame) {
        Ok(Message::Msg(m)) => m,
        other => panic!("not an OP_MSG: {other:?}"),
    }
}

fn refused(frame: &[u8]) -> Malformed {
    decoded(frame).expect_err("must be refused")
}

fn ping() -> DocBuf {
    DocWriter::build(|w| {
        w.i32("ping", 1);
        w.string("$db", "admin");
    })
}
