//! TLS: certificates from files, the handshake of connections that come in, and what other nodes are shown.
//!
//! ```text
//! accept -> the first bytes tell TLS from a message -> mode -> handshake -> the subject of a checked certificate
//! ```
//! `rotateCertificates` reads the files again; connections that are there keep what they have.

mod accept;
mod options;
mod subject;
#[cfg(test)]
mod tests;
mod verify;

pub use accept::{Incoming, accept};
pub use options::{Mode, TlsOptions};
pub use subject::subject_name;

use arc_swap::ArcSwap;
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
    server: ArcSwap<ServerConfig>,
    /// Of connections to other nodes.
    pub client: Arc<ClientTls>,
    /// Of the certificate shown to clients.
    subject: ArcSwap<String>,
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
        let (server, client, subject) = read(options)?;
        Ok(Some(Tls {
            options: options.clone(),
            server: ArcSwap::from_pointee(server),
            client: ClientTls::new(client),
            subject: ArcSwap::from_pointee(subject),
        }))
    }
    /// Reads the files again, for connections still to be made. On an error nothing changes.
    pub fn rotate(&self) -> Result<(), String> {
        let (server, client, subject) = read(&self.options)?;
        self.server.store(Arc::new(server));
        self.client.replace(client);
        self.subject.store(Arc::new(subject));
        Ok(())
    }
    fn server(&self) -> Arc<ServerConfig> {
        self.server.load_full()
    }
    pub fn own_subject(&self) -> Arc<String> {
        self.subject.load_full()
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

fn identity(path: &Path) -> Result<Identity, String> {
    let shown = path.display();
    let bad = |e: &dyn std::fmt::Display| format!("Can not set up PEM key file {shown}: {e}");
    let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).map_err(|e| bad(&e))?.collect();
    let chain = chain.map_err(|e| bad(&e))?;
    if chain.is_empty() {
        return Err(bad(&"there is no certificate in it"));
    }
    let key = PrivateKeyDer::from_pem_file(path).map_err(|e| bad(&e))?;
    Ok((chain, key))
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

fn read(options: &TlsOptions) -> Result<(ServerConfig, ClientConfig, String), String> {
    let Some(file) = &options.certificate_key_file else { return Err("there is no certificate".to_string()) };
    let (chain, key) = identity(file)?;
    let subject = chain.first().and_then(|c| subject_name(c)).unwrap_or_default();
    let own = match &options.cluster_file {
        Some(file) => identity(file)?,
        None => (chain.clone(), key.clone_key()),
    };
    Ok((server_config(options, chain, key)?, client_config(options, Some(own))?, subject))
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
    let checked_by = options.cluster_ca_file.as_ref().or(options.ca_file.as_ref());
    let builder = match checked_by {
        None => builder.with_no_client_auth(),
        Some(file) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots(file)?), provider())
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
    let verifier =
        verify::Server::new(options, options.ca_file.as_deref().map(roots).transpose()?, revoked(options)?)?;
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
    let own = options.certificate_key_file.as_deref().map(identity).transpose()?;
    client_config(options, own).map(ClientTls::new)
}
