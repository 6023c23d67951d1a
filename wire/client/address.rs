//! `host`, `host:port`, `[v6]:port`, or the path of a unix socket (plain, or percent-encoded as in a URI).

use document::{Error, codes};
use std::path::PathBuf;

pub(super) const DEFAULT_PORT: u16 = 27017;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A name or number without brackets, and a port.
    Tcp(String, u16),
    Unix(PathBuf),
}

impl Address {
    /// Errors: FailedToParse.
    pub fn parse(text: &str) -> Result<Address, Error> {
        let fail = |why: &str| Error::new(codes::FAILED_TO_PARSE, format!("{why} in host string: {text}"));
        let decoded = if text.contains("%2F") || text.contains("%2f") {
            text.replace("%2F", "/").replace("%2f", "/")
        } else {
            text.to_string()
        };
        if decoded.starts_with('/') {
            return Ok(Address::Unix(PathBuf::from(decoded)));
        }
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, rest) = rest.split_once(']').ok_or_else(|| fail("Missing ']'"))?;
                (host, rest.strip_prefix(':'))
            }
            None if text.matches(':').count() > 1 => (text, None),
            None => match text.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            },
        };
        if host.is_empty() {
            return Err(fail("Empty host component"));
        }
        let port = match port {
            None => DEFAULT_PORT,
            Some(digits) => {
                digits.parse().ok().filter(|p| *p != 0).ok_or_else(|| fail("Bad digit or port number"))?
            }
        };
        Ok(Address::Tcp(host.to_string(), port))
    }
}
