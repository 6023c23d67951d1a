//! The header that a load balancer sends before a client's first byte: the PROXY protocol, versions 1 and 2, as its
//! specification (haproxy.org, proxy-protocol.txt) says.
//!
//! ```text
//! version 1   PROXY TCP4 192.0.2.7 192.0.2.1 56324 27017\r\n       TCP6 likewise; at most 107 bytes
//!             PROXY UNKNOWN ...\r\n                               the balancer does not say whose it is
//! version 2   signature:12  0x20 LOCAL | 0x21 PROXY  family:u8  length:u16 (big-endian)  addresses  extensions
//!             family 0x11: source:4 destination:4 ports:2+2       0x21: source:16 destination:16 ports:2+2
//!             family 0x31: two paths of 108 bytes                 0x00: none
//! ```
//! LOCAL is the balancer itself, looking whether the server is there. Extensions are passed over.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The longest header of version 1, with its line's end.
const LINE_MAX: usize = 107;
/// The longest header of version 2 that is read: its specification asks for no more room than this.
const BYTES_MAX: usize = 536;
/// The shortest header there is: `PROXY UNKNOWN\r\n`.
const SHORTEST: usize = 15;
const LINE_START: &[u8] = b"PROXY ";
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// What stands before the addresses of version 2.
const FIXED: usize = 16;

/// How far the bytes of a header go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The header has at least so many bytes, more than there are.
    Needs(usize),
    /// The bytes are the whole header. It names the client's address, or none: then the connection's own stands.
    Done(Option<SocketAddr>),
}

/// Why bytes are no header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(&'static str);

/// Reads a header from its first bytes. A caller that reads just as many bytes as are needed takes nothing of what follows it.
///
/// # Errors
/// The bytes cannot become a header, or one longer than 536 bytes.
pub fn parse(bytes: &[u8]) -> Result<Step, Unreadable> {
    if starts(bytes, LINE_START) {
        return if bytes.len() < SHORTEST { Ok(Step::Needs(SHORTEST)) } else { line(bytes) };
    }
    if starts(bytes, SIGNATURE) {
        return if bytes.len() < FIXED { Ok(Step::Needs(FIXED)) } else { binary(bytes) };
    }
    Err(Unreadable("the connection does not start with a header of the PROXY protocol"))
}

/// Whether the bytes begin as `expected`, as far as both go.
fn starts(bytes: &[u8], expected: &[u8]) -> bool {
    bytes.iter().zip(expected).all(|(a, b)| a == b)
}

fn line(bytes: &[u8]) -> Result<Step, Unreadable> {
    let Some(text) = bytes.strip_suffix(b"\r\n") else {
        // A line's end is two bytes, of which one may be here.
        let missing = if bytes.ends_with(b"\r") { 1 } else { 2 };
        return match bytes.len() + missing {
            needed if needed <= LINE_MAX => Ok(Step::Needs(needed)),
            _ => Err(Unreadable("the line of the PROXY header is too long")),
        };
    };
    let bad = Unreadable("the line of the PROXY header cannot be read");
    let text = std::str::from_utf8(text).map_err(|_| bad)?;
    let fields: Vec<&str> = text.split(' ').skip(1).collect();
    let address = match fields[..] {
        ["UNKNOWN", ..] => return Ok(Step::Done(None)),
        ["TCP4", source, destination, from, to] => {
            (ip::<Ipv4Addr>(source), ip::<Ipv4Addr>(destination), port(from), port(to))
        }
        ["TCP6", source, destination, from, to] => {
            (ip::<Ipv6Addr>(source), ip::<Ipv6Addr>(destination), port(from), port(to))
        }
        _ => return Err(bad),
    };
    match address {
        (Some(source), Some(_), Some(from), Some(_)) => Ok(Step::Done(Some(SocketAddr::new(source, from)))),
        _ => Err(bad),
    }
}

fn ip<A: std::str::FromStr + Into<IpAddr>>(text: &str) -> Option<IpAddr> {
    text.parse::<A>().ok().map(Into::into)
}

fn port(text: &str) -> Option<u16> {
    // The library takes a sign, too.
    text.parse().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()))
}

fn binary(bytes: &[u8]) -> Result<Step, Unreadable> {
    let length = FIXED + usize::from(u16::from_be_bytes([bytes[14], bytes[15]]));
    if length > BYTES_MAX {
        return Err(Unreadable("the PROXY header is too long"));
    }
    if bytes.len() < length {
        return Ok(Step::Needs(length));
    }
    let addresses = &bytes[FIXED..length];
    let short = Unreadable("the PROXY header is too short for its addresses");
    match (bytes[12], bytes[13]) {
        (0x20, _) | (0x21, 0x00) => Ok(Step::Done(None)),
        (0x21, 0x11) => {
            let [a, b, c, d, _, _, _, _, high, low, _, _] = *addresses.first_chunk::<12>().ok_or(short)?;
            let source = SocketAddr::from(([a, b, c, d], u16::from_be_bytes([high, low])));
            Ok(Step::Done(Some(source)))
        }
        (0x21, 0x21) => {
            let all = addresses.first_chunk::<36>().ok_or(short)?;
            let source = *all.first_chunk::<16>().ok_or(short)?;
            Ok(Step::Done(Some(SocketAddr::from((source, u16::from_be_bytes([all[32], all[33]]))))))
        }
        // A path says nothing that the connection's own address does not.
        (0x21, 0x31) if addresses.len() >= 216 => Ok(Step::Done(None)),
        (0x21, 0x31) => Err(short),
        (0x21, _) => Err(Unreadable("the PROXY header is of no stream protocol")),
        _ => Err(Unreadable("the PROXY header has an unknown version or command")),
    }
}
