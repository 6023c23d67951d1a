//! TLS of connections that this process makes.

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// How to speak TLS: whether at all, certificates, and whom to believe. All can be changed, for connections still to be made.
#[derive(Debug)]
pub struct ClientTls {
    config: parking_lot::RwLock<Arc<ClientConfig>>,
    spoken: AtomicBool,
}

impl ClientTls {
    /// Spoken until [`ClientTls::set_spoken`] says otherwise.
    pub fn new(config: ClientConfig) -> Arc<ClientTls> {
        Arc::new(ClientTls {
            config: parking_lot::RwLock::new(Arc::new(config)),
            spoken: AtomicBool::new(true),
        })
    }
    pub fn replace(&self, config: ClientConfig) {
        *self.config.write() = Arc::new(config);
    }
    pub fn set_spoken(&self, spoken: bool) {
        self.spoken.store(spoken, Relaxed);
    }
    pub(super) fn is_spoken(&self) -> bool {
        self.spoken.load(Relaxed)
    }
    /// The handshake; `host` is the name that the peer's certificate has to be for.
    pub(super) async fn connect(&self, host: &str, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let config = self.config.read().clone();
        let name = ServerName::try_from(host.to_string()).map_err(io::Error::other)?;
        TlsConnector::from(config).connect(name, stream).await
    }
}
