//! Connections that come in: encrypted or not, as the first bytes say and the mode allows.

use super::{Mode, Tls, subject_name};
use crate::log::Logger;
use document::doc;
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

/// A connection on which requests can come.
pub enum Incoming {
    Plain(TcpStream),
    /// With the subject of the client's certificate, if it showed one that was checked.
    Encrypted(Box<TlsStream<TcpStream>>, Option<String>),
}

/// Shakes hands where the client wants to; `None` where the mode does not let it in, or it went wrong.
pub async fn accept(
    tls: &Tls,
    log: &Logger,
    name: &str,
    remote: &str,
    stream: TcpStream,
) -> Option<Incoming> {
    let done = tokio::time::timeout(HANDSHAKE_MAX, shake_hands(tls, stream)).await;
    let why = match done {
        Ok(Ok(incoming)) => return Some(incoming),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "the handshake took too long".to_string(),
    };
    let attr = doc! {
        "error": { "code": 141, "codeName": "SSLHandshakeFailed", "errmsg": why },
        "remote": remote,
    };
    let text = "Error receiving request from client. Ending connection from remote";
    log.info("NETWORK", 22988, name, text, attr);
    None
}

async fn shake_hands(tls: &Tls, stream: TcpStream) -> io::Result<Incoming> {
    if !is_encrypted(&stream).await? {
        if tls.options.mode == Mode::Require {
            let text = "The server is configured to only allow SSL connections";
            return Err(io::Error::other(text));
        }
        return Ok(Incoming::Plain(stream));
    }
    let stream = TlsAcceptor::from(tls.server()).accept(stream).await?;
    // A certificate that nobody checked gives nobody a name.
    let certificate = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
    let subject = certificate.filter(|_| !tls.options.invalid_certificates).and_then(|c| subject_name(c));
    Ok(Incoming::Encrypted(Box::new(stream), subject))
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
