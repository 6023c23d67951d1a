//! Compressed messages, good and bad.

use super::*;
use crate::op_compressed::{compress_in_place, negotiate};
use crate::{FrameWriter, ReplyTo, encode};

const EACH: [Compressor; 4] = [Compressor::Noop, Compressor::Snappy, Compressor::Zlib, Compressor::Zstd];

fn compressed(compressor: Compressor, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode::msg(&mut out, 6, 0, 0, |w| w.binary("b", 0, payload));
    compress_in_place(&mut out, 0, compressor, &mut Codecs::default());
    out
}

fn declare(frame: &mut [u8], size: i32) {
    frame[20..24].copy_from_slice(&size.to_le_bytes());
}

#[test]
fn every_compressor_gives_back_what_it_took() {
    for compressor in EACH {
        for size in [0, 1, 1000, 300_000, 5_000_000] {
            let payload: Vec<u8> = (0..size).map(|i: usize| ((i * i) >> 7) as u8).collect();
            let frame = compressed(compressor, &payload);
            assert_eq!(frame[12..16], 2012i32.to_le_bytes());
            let read = msg(&frame);
            assert_eq!((read.compressor(), read.request_id()), (Some(compressor), 6));
            assert_eq!(read.wire_length(), frame.len());
            assert_eq!(read.body().get("b"), Some(document::ValueRef::Binary(0, &payload)));
        }
    }
}

#[test]
fn what_comes_out_must_be_as_long_as_declared() {
    for compressor in EACH {
        let frame = compressed(compressor, &[7; 1000]);
        let declared = i32::from_le_bytes(frame[20..24].try_into().expect("four bytes"));
        for lie in [declared + 1, declared - 1, declared + 100_000, 0, -1, i32::MAX, i32::MIN] {
            let mut frame = frame.clone();
            declare(&mut frame, lie);
            assert!(decoded(&frame).is_err(), "{compressor:?} declared {lie}");
        }
    }
}

#[test]
fn the_limit_is_applied_to_what_comes_out() {
    for compressor in EACH {
        let bomb = compressed(compressor, &vec![0; 2_000_000]);
        let codecs = &mut Codecs::default();
        let before = decode(bomb.clone().into(), &Limits::BEFORE_AUTHENTICATION, all(), codecs);
        assert!(before.is_err(), "{compressor:?}");
        // The lie that the bomb is small does not help it.
        if compressor != Compressor::Noop {
            assert!(bomb.len() < 200_000, "{compressor:?}");
        }
        let mut small = bomb;
        declare(&mut small, 1000);
        assert!(decoded(&small).is_err(), "{compressor:?}");
    }
    let mut huge = compressed(Compressor::Zlib, &vec![0; 1000]);
    declare(&mut huge, 48_000_000 - 15);
    assert!(refused(&huge).message().contains("more than 48000000"));
}

#[test]
fn only_negotiated_compressors_are_understood() {
    for compressor in EACH {
        let frame = compressed(compressor, &[7; 100]);
        let others = EACH.into_iter().filter(|c| *c != compressor).collect();
        for set in [others, CompressorSet::default()] {
            let read = decode(frame.clone().into(), &Limits::STANDARD, set, &mut Codecs::default());
            assert!(read.expect_err("not negotiated").message().contains("was not negotiated"));
        }
    }
    let mut frame = compressed(Compressor::Noop, &[]);
    frame[24] = 9;
    assert!(refused(&frame).message().contains("Compressor id 9"));
}

#[test]
fn nested_compression_is_refused() {
    let mut frame = compressed(Compressor::Noop, &[1; 10]);
    compress_in_place(&mut frame, 0, Compressor::Snappy, &mut Codecs::default());
    assert!(refused(&frame).message().contains("within OP_COMPRESSED"));
}

#[test]
fn damaged_compressed_bytes_are_an_error_or_another_message() {
    for compressor in EACH {
        let frame = compressed(compressor, b"some text, some text, some text and more of it");
        for at in 25..frame.len() {
            let mut broken = frame.clone();
            broken[at] ^= 0x55;
            let _ = decoded(&broken);
            let mut cut = frame[..at].to_vec();
            encode::finish(&mut cut, 0);
            assert!(decoded(&cut).is_err(), "{compressor:?} cut at {at}");
        }
    }
    for length in 16..25 {
        let mut cut = compressed(Compressor::Zlib, &[])[..length].to_vec();
        encode::finish(&mut cut, 0);
        assert!(decoded(&cut).is_err());
    }
}

#[test]
fn a_reply_is_compressed_as_its_request_was() {
    let request = decoded(&compressed(Compressor::Zstd, &[1; 50])).expect("a request");
    let mut writer = FrameWriter::new(tokio::io::sink());
    for _ in 0..2 {
        let reply = msg(writer.build(&ReplyTo::to(&request), 0, |w| w.string("s", "x".repeat(500).as_str())));
        assert_eq!((reply.compressor(), reply.response_to()), (Some(Compressor::Zstd), 6));
    }
}

#[test]
fn negotiation_takes_the_clients_order_and_ignores_what_it_does_not_know() {
    let theirs = DocWriter::build(|w| {
        for (i, name) in ["none", "zlib", "brotli", "snappy", "zlib", "noop"].iter().enumerate() {
            w.with_index(i, |w, index| w.string(index, name));
        }
        w.i32("6", 3);
    });
    let common = negotiate(&Compressor::OFFERED, theirs.doc());
    assert_eq!(common, [Compressor::Zlib, Compressor::Snappy]);
    assert!(negotiate(&[], theirs.doc()).is_empty());
}
