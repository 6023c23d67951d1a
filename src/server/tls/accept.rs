//! Connections that come in: encrypted or not, as the first bytes say and the mode allows.

use super::{Mode, Peer, Tls};
use crate::log::Logger;
use document::doc;
use node::parameters::Parameters;
use rustls::{CertificateError, Error};
use std::io;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use wire::header::op_code;

/// A client gets this long to shake hands.
const HANDSHAKE_MAX: Duration = Duration::from_secs(30);
/// A message's header; the first record of a handshake is longer.
const LOOKED_AT: usize = 16;

const SECONDS_A_DAY: i64 = 86_400;

/// A connection on which requests can come.
pub enum Incoming {
    Plain(TcpStream),
    /// With the holder of the client's certificate, if it showed one that was checked.
    Encrypted(Box<TlsStream<TcpStream>>, Option<Peer>),
}

/// One connection that is being accepted: what it is called in the log, and where it comes from.
pub struct Arrival<'a> {
    pub tls: &'a Tls,
    pub parameters: &'a Parameters,
    pub log: &'a Logger,
    pub name: &'a str,
    pub remote: &'a str,
}

impl Arrival<'_> {
    /// Shakes hands where the client wants to; `None` where the mode does not let it in, or it went wrong.
    pub async fn accept(&self, stream: TcpStream) -> Option<Incoming> {
        let done = tokio::time::timeout(HANDSHAKE_MAX, self.shake_hands(stream)).await;
        let why = match done {
            Ok(Ok(incoming)) => return Some(incoming),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "the handshake took too long".to_string(),
        };
        let attr = doc! {
            "error": { "code": 141, "codeName": "SSLHandshakeFailed", "errmsg": why },
            "remote": self.remote,
        };
        let text = "Error receiving request from client. Ending connection from remote";
        self.log.info("NETWORK", 22988, self.name, text, attr);
        None
    }

    async fn shake_hands(&self, stream: TcpStream) -> io::Result<Incoming> {
        if !is_encrypted(&stream).await? {
            return self.in_the_clear(stream);
        }
        let options = &self.tls.options;
        let stream = match TlsAcceptor::from(self.tls.server()).accept(stream).await {
            Ok(stream) => stream,
            Err(error) => return Err(self.refused(error)),
        };
        let (_, session) = stream.get_ref();
        let version = session.protocol_version();
        self.tls.versions.note(version, &options.log_versions, self.log, self.name, self.remote);
        let certificate = session.peer_certificates().and_then(|chain| chain.first());
        // A certificate that nobody checked gives nobody a name.
        let peer = match certificate {
            Some(certificate) if !options.invalid_certificates => {
                let peer = Peer::of(certificate).map_err(|why| self.rejected(why))?;
                self.warn_of_expiry(&peer);
                Some(peer)
            }
            Some(_) => None,
            None => {
                self.warn_of_none();
                None
            }
        };
        Ok(Incoming::Encrypted(Box::new(stream), peer))
    }

    fn in_the_clear(&self, stream: TcpStream) -> io::Result<Incoming> {
        match self.tls.mode() {
            Mode::Require => {
                return Err(io::Error::other("The server is configured to only allow SSL connections"));
            }
            Mode::Prefer => {
                let text = "SSL mode is set to 'preferred' and connection to remote is not using SSL";
                let attr = doc! { "connectionId": self.name, "remoteHost": self.remote };
                self.log.info("NETWORK", 23838, self.name, text, attr);
            }
            Mode::Allow | Mode::Disabled => {}
        }
        Ok(Incoming::Plain(stream))
    }

    /// Says in the log what was wrong with the client's certificate, where that is why it was refused.
    fn refused(&self, error: io::Error) -> io::Error {
        match error.get_ref().and_then(|e| e.downcast_ref::<Error>()) {
            Some(Error::NoCertificatesPresented) => {
                let text = "No SSL certificate provided by peer; connection rejected";
                self.log.error("NETWORK", 23255, self.name, text, doc! { "remoteHost": self.remote });
                io::Error::other("no SSL certificate provided by peer; connection rejected")
            }
            Some(Error::InvalidCertificate(why)) => self.rejected(reason(why)),
            _ => error,
        }
    }

    fn rejected(&self, why: String) -> io::Error {
        let text = "SSL peer certificate validation failed; connection rejected";
        self.log.error(
            "NETWORK",
            23256,
            self.name,
            text,
            doc! { "error": why.as_str(), "remoteHost": self.remote },
        );
        io::Error::other(format!("SSL peer certificate validation failed: {why}"))
    }

    fn warn_of_none(&self) {
        let asked_for = self.tls.options.checks_clients();
        if asked_for && !self.parameters.bool("suppressNoTLSPeerCertificateWarning") {
            let attr = doc! { "remoteHost": self.remote };
            self.log.warning("NETWORK", 23234, self.name, "No SSL certificate provided by peer", attr);
        }
    }

    fn warn_of_expiry(&self, peer: &Peer) {
        let threshold = self.parameters.int("tlsX509ExpirationWarningThresholdDays");
        let days = (peer.expires - runtime::now_millis() / 1000) / SECONDS_A_DAY;
        if threshold > 0 && days < threshold {
            let attr = doc! { "peerSubjectName": peer.subject.as_str(), "days": days };
            self.log.warning("NETWORK", 23222, self.name, "Peer certificate expiration information", attr);
        }
    }
}

/// In the words that clients and their users know from OpenSSL, where it has some.
fn reason(error: &CertificateError) -> String {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "certificate has expired".to_string()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "certificate is not yet valid".to_string()
        }
        CertificateError::Revoked => "certificate revoked".to_string(),
        CertificateError::UnknownIssuer => "unable to get local issuer certificate".to_string(),
        other => other.to_string(),
    }
}

/// A message has one of the known codes at the end of its header.
async fn is_encrypted(stream: &TcpStream) -> io::Result<bool> {
    let mut head = [0; LOOKED_AT];
    loop {
        match stream.peek(&mut head).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            // The rest is under way; the caller's time limit ends the wait for it.
            n if n < LOOKED_AT => tokio::time::sleep(Duration::from_millis(5)).await,
            _ => break,
        }
    }
    let code = i32::from_le_bytes([head[12], head[13], head[14], head[15]]);
    let message = matches!(code, op_code::MSG | op_code::QUERY | op_code::COMPRESSED);
    Ok(!message && head[0] == 0x16 && head[1] == 0x03)
}
