//! TLS: certificates from files, the handshake of connections that come in, and what other nodes are shown.
//!
//! ```text
//! accept -> the first bytes tell TLS from a message -> mode -> handshake -> the subject of a checked certificate
//! ```
//! `rotateCertificates` reads the files again; connections that are there keep what they have.

mod accept;
mod key;
mod options;
mod peer;
mod subject;
#[cfg(test)]
mod tests;
mod verify;
mod versions;

pub use accept::{Arrival, Incoming};
pub use options::{ClusterAuthRule, Mode, TlsOptions};
pub use peer::Peer;
pub use versions::Versions;

use arc_swap::ArcSwap;
use document::Value;
use parking_lot::Mutex;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig, SupportedProtocolVersion};
use std::path::Path;
use std::sync::Arc;
use wire::client::ClientTls;

/// TLS of one node.
pub struct Tls {
    pub options: TlsOptions,
    /// What the options say, until [`Tls::set_mode`] says otherwise.
    mode: Mutex<Mode>,
    server: ArcSwap<ServerConfig>,
    /// Of connections to other nodes, where the mode has them encrypted.
    pub client: Arc<ClientTls>,
    /// The certificate shown to clients.
    own: ArcSwap<Peer>,
    /// Of the connections that came in.
    pub versions: Versions,
}

impl Tls {
    /// Reads the certificates; `None` where TLS is off.
    ///
    /// # Errors
    /// What is wrong with the files, as a text.
    pub fn open(options: &TlsOptions) -> Result<Option<Tls>, String> {
        if options.mode == Mode::Disabled {
            return Ok(None);
        }
        let (server, client, own) = read(options)?;
        let tls = Tls {
            options: options.clone(),
            mode: Mutex::default(),
            server: ArcSwap::from_pointee(server),
            client: ClientTls::new(client),
            own: ArcSwap::from_pointee(own),
            versions: Versions::default(),
        };
        tls.set_mode(options.mode);
        Ok(Some(tls))
    }
    /// Reads the files again, for connections still to be made. On an error nothing changes.
    pub fn rotate(&self) -> Result<(), String> {
        let (server, client, own) = read(&self.options)?;
        self.server.store(Arc::new(server));
        self.client.replace(client);
        self.own.store(Arc::new(own));
        Ok(())
    }
    fn server(&self) -> Arc<ServerConfig> {
        self.server.load_full()
    }
    /// What the certificate shown to clients says of this node.
    pub fn own(&self) -> Arc<Peer> {
        self.own.load_full()
    }
    pub fn mode(&self) -> Mode {
        *self.mode.lock()
    }
    /// Goes over to another mode, for connections still to be made.
    pub fn set_mode(&self, mode: Mode) {
        *self.mode.lock() = mode;
        self.client.set_spoken(mode.encrypts_own());
    }
    /// What `serverStatus` shows below `security`.
    pub fn status(&self) -> Vec<(&'static str, Value)> {
        let own = self.own();
        vec![
            ("SSLServerSubjectName", own.subject.as_str().into()),
            ("SSLServerHasCertificateAuthority", self.options.checks_clients().into()),
            ("SSLServerCertificateExpirationDate", Value::DateTime(own.expires.saturating_mul(1000))),
        ]
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn versions(options: &TlsOptions) -> Vec<&'static SupportedProtocolVersion> {
    let enabled = |name: &str| !options.disabled_protocols.iter().any(|d| d == name);
    [("TLS1_3", &rustls::version::TLS13), ("TLS1_2", &rustls::version::TLS12)]
        .into_iter()
        .filter(|(name, _)| enabled(name))
        .map(|(_, version)| version)
        .collect()
}

/// A certificate with its chain, and its key.
type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn identity(path: &Path, password: Option<&str>) -> Result<Identity, String> {
    let shown = path.display();
    let bad = |e: &dyn std::fmt::Display| format!("Can not set up PEM key file {shown}: {e}");
    let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).map_err(|e| bad(&e))?.collect();
    let chain = chain.map_err(|e| bad(&e))?;
    if chain.is_empty() {
        return Err(bad(&"there is no certificate in it"));
    }
    let key = key::read(path, password).map_err(|e| bad(&e))?;
    Ok((chain, key))
}

/// The authorities that the operating system trusts.
fn system_roots() -> Result<RootCertStore, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    match roots.is_empty() {
        true => Err(format!("Can not set up the system's CA: it has no certificate {:?}", found.errors)),
        false => Ok(roots),
    }
}

/// Who signs the certificates of servers that this node connects to.
fn roots_of_servers(options: &TlsOptions) -> Result<Option<RootCertStore>, String> {
    match &options.ca_file {
        Some(file) => roots(file).map(Some),
        None => options.system_ca.then(system_roots).transpose(),
    }
}

/// Who signs those of clients.
fn roots_of_clients(options: &TlsOptions) -> Result<Option<RootCertStore>, String> {
    match &options.cluster_ca_file {
        Some(file) => roots(file).map(Some),
        None => roots_of_servers(options),
    }
}

fn roots(path: &Path) -> Result<RootCertStore, String> {
    let bad = |e: &dyn std::fmt::Display| format!("Can not set up CA file {}: {e}", path.display());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|e| bad(&e))? {
        roots.add(certificate.map_err(|e| bad(&e))?).map_err(|e| bad(&e))?;
    }
    match roots.is_empty() {
        true => Err(bad(&"there is no certificate in it")),
        false => Ok(roots),
    }
}

fn revoked(options: &TlsOptions) -> Result<Vec<CertificateRevocationListDer<'static>>, String> {
    let Some(path) = &options.crl_file else { return Ok(Vec::new()) };
    let bad = |e: &dyn std::fmt::Display| format!("Can not set up CRL file {}: {e}", path.display());
    CertificateRevocationListDer::pem_file_iter(path)
        .map_err(|e| bad(&e))?
        .collect::<Result<_, _>>()
        .map_err(|e| bad(&e))
}

fn read(options: &TlsOptions) -> Result<(ServerConfig, ClientConfig, Peer), String> {
    let Some(file) = &options.certificate_key_file else { return Err("there is no certificate".to_string()) };
    let (chain, key) = identity(file, options.password.as_deref())?;
    let own = chain.first().and_then(|c| Peer::of(c).ok()).unwrap_or_default();
    let shown = match &options.cluster_file {
        _ if options.withhold_certificate => None,
        Some(file) => Some(identity(file, options.cluster_password.as_deref())?),
        None => Some((chain.clone(), key.clone_key())),
    };
    Ok((server_config(options, chain, key)?, client_config(options, shown)?, own))
}

fn server_config(
    options: &TlsOptions,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ServerConfig, String> {
    let text = |e: &dyn std::fmt::Display| format!("Can not set up TLS: {e}");
    let builder = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&versions(options))
        .map_err(|e| text(&e))?;
    let builder = match roots_of_clients(options)? {
        None => builder.with_no_client_auth(),
        Some(roots) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider())
                .with_crls(revoked(options)?);
            let verifier = match options.without_certificates || options.invalid_certificates {
                true => verifier.allow_unauthenticated(),
                false => verifier,
            };
            let verifier = verifier.build().map_err(|e| text(&e))?;
            match options.invalid_certificates {
                true => builder.with_client_cert_verifier(Arc::new(verify::AnyClient(verifier))),
                false => builder.with_client_cert_verifier(verifier),
            }
        }
    };
    builder.with_single_cert(chain, key).map_err(|e| text(&e))
}

fn client_config(options: &TlsOptions, own: Option<Identity>) -> Result<ClientConfig, String> {
    let text = |e: &dyn std::fmt::Display| format!("Can not set up TLS: {e}");
    let builder = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&versions(options))
        .map_err(|e| text(&e))?;
    let verifier = verify::Server::new(options, roots_of_servers(options)?, revoked(options)?)?;
    let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
    match own {
        None => Ok(builder.with_no_client_auth()),
        Some((chain, key)) => builder.with_client_auth_cert(chain, key).map_err(|e| text(&e)),
    }
}

/// TLS of a program that only connects; the certificate is shown where there is one.
///
/// # Errors
/// As [`Tls::open`].
pub(crate) fn of_client(options: &TlsOptions) -> Result<Arc<ClientTls>, String> {
    let own = options.certificate_key_file.as_deref();
    let own = own.map(|file| identity(file, options.password.as_deref())).transpose()?;
    client_config(options, own).map(ClientTls::new)
}
