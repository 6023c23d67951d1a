//! The versions of TLS that clients come with: counted, and logged where `net.tls.logVersions` says so.

use crate::log::Logger;
use document::{Document, doc};
use rustls::ProtocolVersion;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// DO NOT CHANGE: the names in `serverStatus().transportSecurity`, in its order.
const NAMES: [&str; 5] = ["1.0", "1.1", "1.2", "1.3", "unknown"];
/// What `net.tls.logVersions` may list; the same order.
pub(super) const LOGGED_VERSIONS: [&str; 4] = ["TLS1_0", "TLS1_1", "TLS1_2", "TLS1_3"];

/// How many connections came with each version.
#[derive(Default)]
pub struct Versions([AtomicI64; NAMES.len()]);

impl Versions {
    /// Counts a connection, and writes a line of it if its version is among `logged`.
    pub(super) fn note(
        &self,
        version: Option<ProtocolVersion>,
        logged: &[String],
        log: &Logger,
        name: &str,
        remote: &str,
    ) {
        let at = match version {
            Some(ProtocolVersion::TLSv1_0) => 0,
            Some(ProtocolVersion::TLSv1_1) => 1,
            Some(ProtocolVersion::TLSv1_2) => 2,
            Some(ProtocolVersion::TLSv1_3) => 3,
            _ => 4,
        };
        self.0[at].fetch_add(1, Relaxed);
        if LOGGED_VERSIONS.get(at).is_some_and(|name| logged.iter().any(|l| l == name)) {
            let attr = doc! { "tlsVersion": NAMES[at], "remoteHost": remote };
            log.info("NETWORK", 23218, name, "Accepted connection with TLS", attr);
        }
    }
    /// As `serverStatus` shows it.
    pub fn shown(&self) -> Document {
        Document(
            NAMES.iter().zip(&self.0).map(|(name, n)| ((*name).into(), n.load(Relaxed).into())).collect(),
        )
    }
}
