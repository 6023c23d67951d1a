//! TLS of connections that this process makes.

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::io;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// How to speak TLS: certificates and whom to believe. It can be replaced, for connections still to be made.
#[derive(Debug)]
pub struct ClientTls(parking_lot::RwLock<Arc<ClientConfig>>);

impl ClientTls {
    pub fn new(config: ClientConfig) -> Arc<ClientTls> {
        Arc::new(ClientTls(parking_lot::RwLock::new(Arc::new(config))))
    }
    pub fn replace(&self, config: ClientConfig) {
        *self.0.write() = Arc::new(config);
    }
    /// The handshake; `host` is the name that the peer's certificate has to be for.
    pub(super) async fn connect(&self, host: &str, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let config = self.0.read().clone();
        let name = ServerName::try_from(host.to_string()).map_err(io::Error::other)?;
        TlsConnector::from(config).connect(name, stream).await
    }
}
