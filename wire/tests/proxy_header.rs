//! Headers of load balancers: what they say, and that nothing behind them is read.

use crate::proxy_header::{Step, parse};

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

fn binary(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
    let length = (rest.len() as u16).to_be_bytes();
    [SIGNATURE, &[command, family], &length, rest].concat()
}

/// Reads as a listener does, from a stream that goes on: the result, and how many bytes were taken.
fn read(stream: &[u8]) -> (Result<Option<String>, String>, usize) {
    let mut taken = 0;
    loop {
        match parse(&stream[..taken]) {
            Err(error) => return (Err(error.to_string()), taken),
            Ok(Step::Done(address)) => return (Ok(address.map(|a| a.to_string())), taken),
            Ok(Step::Needs(needed)) if needed > stream.len() => return (Err("ends".to_string()), taken),
            Ok(Step::Needs(needed)) => {
                assert!(needed > taken);
                taken = needed;
            }
        }
    }
}

#[track_caller]
fn says(header: &[u8], expected: Option<&str>) {
    let stream = [header, b"what the client sends"].concat();
    assert_eq!(read(&stream), (Ok(expected.map(str::to_string)), header.len()));
    // A part of it is never taken for the whole.
    for cut in 0..header.len() {
        assert!(matches!(parse(&header[..cut]), Ok(Step::Needs(_))), "{cut}");
    }
}

#[test]
fn a_line_names_the_client() {
    says(b"PROXY TCP4 192.0.2.7 192.0.2.1 56324 27017\r\n", Some("192.0.2.7:56324"));
    says(b"PROXY TCP6 2001:db8::7 ::1 1 65535\r\n", Some("[2001:db8::7]:1"));
    says(b"PROXY UNKNOWN\r\n", None);
    says(b"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n", None);
}

#[test]
fn a_binary_header_names_the_client() {
    let v4 = [192, 0, 2, 7, 192, 0, 2, 1, 0xdc, 0x04, 0x69, 0x89];
    says(&binary(0x21, 0x11, &v4), Some("192.0.2.7:56324"));
    // Extensions follow the addresses.
    says(&binary(0x21, 0x11, &[&v4[..], &[0x04, 0, 2, 0, 0]].concat()), Some("192.0.2.7:56324"));
    let mut v6 = [0; 36];
    (v6[15], v6[33]) = (1, 9);
    says(&binary(0x21, 0x21, &v6), Some("[::1]:9"));
    says(&binary(0x20, 0x00, &[]), None);
    says(&binary(0x20, 0x11, &v4), None);
    says(&binary(0x21, 0x00, &[]), None);
    says(&binary(0x21, 0x31, &[0; 216]), None);
}

#[test]
fn what_is_no_header_is_refused_at_once() {
    let long_line = [b"PROXY UNKNOWN ", &[b'x'; 200][..]].concat();
    let bad: &[&[u8]] = &[
        b"\x3a\0\0\0\x01\0\0\0\0\0\0\0\xdd\x07\0\0",
        b"GET / HTTP/1.1\r\n",
        b"PROXY TCP4 192.0.2.7 192.0.2.1 56324\r\n",
        b"PROXY TCP4 ::1 ::1 1 2\r\n",
        b"PROXY TCP6 192.0.2.7 192.0.2.1 1 2\r\n",
        b"PROXY TCP4 192.0.2.7 192.0.2.1 +1 2\r\n",
        b"PROXY TCP4 192.0.2.7 192.0.2.1 65536 2\r\n",
        b"PROXY UDP4 192.0.2.7 192.0.2.1 1 2\r\n",
        b"PROXY TCP4  192.0.2.7 192.0.2.1 1 2\r\n",
        b"PROXY TCP4 \xff\xff 192.0.2.1 1 2\r\n",
        &long_line,
        &binary(0x21, 0x11, &[0; 11]),
        &binary(0x21, 0x21, &[0; 35]),
        &binary(0x21, 0x31, &[0; 215]),
        &binary(0x21, 0x12, &[0; 12]),
        &binary(0x22, 0x11, &[0; 12]),
        &binary(0x11, 0x11, &[0; 12]),
        &binary(0x21, 0x11, &[0; 521]),
    ];
    for header in bad {
        let stream = [*header, &[0; 600]].concat();
        let (said, taken) = read(&stream);
        let why = said.expect_err(&String::from_utf8_lossy(header));
        assert_ne!(why, "ends");
        assert!(taken <= 536, "{taken}");
    }
}

proptest::proptest! {
    /// Whatever comes, reading ends after at most 536 bytes.
    #[test]
    fn any_bytes_are_read_to_an_end(
        which in 0usize..4,
        at in 0usize..30,
        with: u8,
        tail in proptest::collection::vec(proptest::prelude::any::<u8>(), 600),
    ) {
        let v4 = [192, 0, 2, 7, 192, 0, 2, 1, 0xdc, 0x04, 0x69, 0x89];
        let mut stream = match which {
            0 => b"PROXY TCP4 192.0.2.7 192.0.2.1 56324 27017\r\n".to_vec(),
            1 => binary(0x21, 0x11, &v4),
            2 => binary(0x21, 0x21, &[7; 36]),
            _ => Vec::new(),
        };
        stream.extend(tail);
        stream[at] = with;
        let (said, taken) = read(&stream);
        assert_ne!(said, Err("ends".to_string()));
        assert!(taken <= 536);
    }
}
