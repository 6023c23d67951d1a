//! Writes the first inputs of each target: `cargo run --example seeds` makes `seeds/{frame,bson,command,scram,certificate}/`.
//!
//! They are the known attacks on servers of this protocol, and one sound example of each shape to start from.

use document::{Doc, DocBuf, DocWriter};
use std::path::Path;
use wire::op_compressed::{Codecs, Compressor, compress_in_place};
use wire::{encode, op_reply};

fn main() -> std::io::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "seeds".to_string());
    let frames = frames();
    // A command input is what follows the flags of an OP_MSG.
    let commands = frames.iter().filter(|(_, f)| f.len() > 20 && f[12..14] == [0xdd, 0x07] && f[16] == 0);
    let commands: Vec<_> = commands.map(|(name, f)| (*name, f[20..].to_vec())).collect();
    write(Path::new(&folder), "bson", &documents())?;
    write(Path::new(&folder), "command", &commands)?;
    write(Path::new(&folder), "scram", &logins())?;
    write(Path::new(&folder), "certificate", &certificates())?;
    write(Path::new(&folder), "frame", &frames)
}

fn write(folder: &Path, target: &str, inputs: &[(&str, Vec<u8>)]) -> std::io::Result<()> {
    let folder = folder.join(target);
    std::fs::create_dir_all(&folder)?;
    inputs.iter().try_for_each(|(name, bytes)| std::fs::write(folder.join(name), bytes))
}

/// First message, last message, and base64 of a stored key.
fn logins() -> Vec<(&'static str, Vec<u8>)> {
    let text = |name, text: &str| (name, text.as_bytes().to_vec());
    let login = "n,,n=user,r=rOprNGfwEbeRWgbNEkqO\nc=biws,r=*,p=MTIzNDU2Nzg5MDEyMzQ1Njc4OTA=\nMTIzNDU2Nzg5MDEyMzQ1Njc4OTA=";
    vec![
        text("login", login),
        text("authorization_id", "y,a=u=2Cv=3D,n=u=2Cv=3D,r=abcd\nc=eSxhPXU9MkN2PTNELA==,r=*,p=\n"),
        text("channel_binding", "p=tls-unique,,n=u,r=abcd\n\n"),
        text("mandatory_extension", "n,,m=x,n=u,r=abcd\n\n"),
        text("signature", "n,,n=u,r=abcd\nv=MTIzNDU2Nzg5MDEyMzQ1Njc4OTA=\n"),
        text("prepared_password", "n,,n=u,r=abcd\n\n\u{2168}\u{ad}x\u{fb01}"),
    ]
}

fn certificates() -> Vec<(&'static str, Vec<u8>)> {
    use rcgen::{CertificateParams, CustomExtension, DistinguishedName, DnType, DnValue, KeyPair};
    let with = |name: DnValue, extension: Option<(u64, &[u8])>| {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, name);
        params.distinguished_name.push(DnType::CommonName, "#a,b+c ");
        params.custom_extensions.extend(extension.map(|(last, value)| {
            CustomExtension::from_oid_content(&[1, 3, 6, 1, 4, 1, 34601, 2, 1, last], value.to_vec())
        }));
        let key = KeyPair::generate().expect("a key");
        params.self_signed(&key).expect("a certificate").der().to_vec()
    };
    let plain = || DnValue::Utf8String("Org".to_string());
    vec![
        ("plain", with(plain(), None)),
        ("two_bytes", with(DnValue::BmpString("Org".try_into().expect("a name")), None)),
        ("roles", with(plain(), Some((1, b"\x31\x0b\x30\x09\x0c\x04read\x0c\x01d")))),
        ("cluster", with(plain(), Some((2, b"\x0c\x04name")))),
    ]
}

fn documents() -> Vec<(&'static str, Vec<u8>)> {
    let raw = |elements: &[u8]| {
        let length = (elements.len() + 5) as u32;
        [&length.to_le_bytes()[..], elements, &[0]].concat()
    };
    let mut deep = vec![5, 0, 0, 0, 0];
    for _ in 0..230 {
        deep = raw(&[&[3, b'a', 0][..], &deep].concat());
    }
    // CVE-2026-9740: nesting hidden where a validator starts counting again.
    let scope = |inner: &[u8]| {
        let length = (4 + 5 + inner.len()) as u32;
        raw(&[&[0x0f, 0][..], &length.to_le_bytes(), &[1, 0, 0, 0, 0], inner].concat())
    };
    let scopes = (0..150).fold(vec![5, 0, 0, 0, 0], |inner, _| scope(&inner));
    let column = |inner: &[u8]| {
        let length = (inner.len() as u32).to_le_bytes();
        raw(&[&[5, 0][..], &length, &[7], inner].concat())
    };
    let binaries = (0..150).fold(vec![5, 0, 0, 0, 0], |inner, _| column(&inner));
    vec![
        ("empty", Doc::empty().bytes().to_vec()),
        ("every_type", every_type().into_bytes()),
        ("deep", deep),
        ("deep_scopes", scopes),
        ("deep_columns", binaries),
        ("string_length_0", raw(b"\x02a\0\0\0\0\0\0")),
        ("string_length_negative", raw(b"\x02a\0\xff\xff\xff\xff\0")),
        ("string_without_nul", raw(b"\x02a\0\x02\0\0\0xy")),
        ("string_bad_utf8", raw(b"\x02a\0\x02\0\0\0\xff\0")),
        ("name_bad_utf8", raw(b"\x0a\xff\0")),
        ("name_without_end", vec![8, 0, 0, 0, 0x0a, b'a', b'a', b'a']),
        ("bool_2", raw(b"\x08a\0\x02")),
        ("unknown_type", raw(b"\x14a\0\0")),
        ("binary_2_inner_length", raw(b"\x05a\0\x05\0\0\0\x02\xff\0\0\0x")),
        ("binary_negative", raw(b"\x05a\0\xf0\xff\xff\xff\0")),
        ("scope_length", raw(b"\x0fa\0\x05\0\0\0\x01\0\0\0\0\x05\0\0\0\0")),
        ("regex_options", raw(b"\x0ba\0.*\0xmi\0")),
        ("array_keys", raw(b"\x04a\0\x0b\0\0\0\x0a7\0\x0a7\0\0\0")),
        ("many_empty_names", raw(&b"\x0a\0".repeat(4000))),
        ("date_extreme", raw(b"\x09a\0\0\0\0\0\0\0\0\x80")),
        ("decimal_not_canonical", raw(&[&b"\x13a\0"[..], &[0xff; 16]].concat())),
    ]
}

fn every_type() -> DocBuf {
    DocWriter::build(|w| {
        w.double("double", f64::NAN);
        w.string("string", "é");
        w.document_with("document", |w| w.null("null"));
        w.array_with("array", |w| w.i32("0", 1));
        w.binary("binary", 2, &[1, 0, 0, 0, 9]);
        w.tag_only(0x06, "undefined");
        w.object_id("objectId", document::ObjectId([7; 12]));
        w.bool("bool", true);
        w.date("date", -1);
        w.regex("regex", "^a", "i");
        w.db_pointer("dbPointer", "a.b", document::ObjectId([7; 12]));
        w.string_like(0x0d, "code", "x");
        w.string_like(0x0e, "symbol", "x");
        w.code_with_scope("scope", "x", &DocBuf::new());
        w.timestamp("timestamp", document::Timestamp::new(1, 2));
        w.i64("long", i64::MIN);
        w.decimal("decimal", document::Decimal128([0; 16]));
        w.tag_only(0xff, "minKey");
        w.tag_only(0x7f, "maxKey");
    })
}

fn frames() -> Vec<(&'static str, Vec<u8>)> {
    let mut all = Vec::new();
    let doc = every_type();
    let mut insert = Vec::new();
    let start = encode::begin_msg(&mut insert, 1, 0, 0, |w| {
        w.string("insert", "c");
        w.string("$db", "test");
        w.document_with("lsid", |w| w.uuid("id", &[1; 16]));
        w.i64("txnNumber", 1);
    });
    encode::sequence(&mut insert, "documents", [doc.doc(), Doc::empty()]);
    encode::finish_msg(&mut insert, start);
    let mut checksum = Vec::new();
    encode::msg(&mut checksum, 1, 0, 1, |w| w.i32("ping", 1));
    let mut hello = Vec::new();
    encode::query(&mut hello, 1, "admin", |w| {
        w.i32("ismaster", 1);
        w.bool("helloOk", true);
    });
    let mut find = Vec::new();
    encode::msg(&mut find, 1, 0, 1 << 16, |w| {
        w.string("find", "c");
        w.document("filter", doc.doc());
        w.string("$db", "test");
    });
    let mut reply = Vec::new();
    op_reply::write(&mut reply, 1, 1, 0, |w| w.double("ok", 1.0));
    // CVE-2026-9742: a mechanism nobody knows.
    let mut mechanism = Vec::new();
    encode::msg(&mut mechanism, 1, 0, 0, |w| {
        w.i32("saslStart", 1);
        w.i32("mechanism", 7);
        w.binary("payload", 0, &[0xff; 4]);
        w.string("$db", "$external");
    });
    for (name, compressor) in [
        ("noop", Compressor::Noop),
        ("snappy", Compressor::Snappy),
        ("zlib", Compressor::Zlib),
        ("zstd", Compressor::Zstd),
    ] {
        let mut frame = find.clone();
        compress_in_place(&mut frame, 0, compressor, &mut Codecs::default());
        all.push((name, frame));
    }
    // CVE-2025-14847: a declared size that the compressed bytes do not yield.
    let mut lie = all[2].1.clone();
    lie[20..24].copy_from_slice(&60_000u32.to_le_bytes());
    all.push(("zlib_size_lie", lie));
    let mut nested = all[1].1.clone();
    compress_in_place(&mut nested, 0, Compressor::Snappy, &mut Codecs::default());
    all.push(("nested_compression", nested));
    let mut bomb = Vec::new();
    encode::msg(&mut bomb, 1, 0, 0, |w| w.binary("b", 0, &vec![0; 1_000_000]));
    compress_in_place(&mut bomb, 0, Compressor::Zlib, &mut Codecs::default());
    all.push(("bomb", bomb));
    all.extend([
        ("insert", insert),
        ("checksum", checksum),
        ("hello", hello),
        ("find", find),
        ("reply", reply),
        ("mechanism", mechanism),
    ]);
    all
}
