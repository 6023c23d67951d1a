//! A certificate for `127.0.0.1`, made for the run.

use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::path::Path;
use std::sync::Arc;
use wire::client::ClientTls;

/// Writes certificate and key into one file. It vouches for itself.
pub(crate) fn write(path: &Path) {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec!["127.0.0.1".to_string()]).expect("a name");
    let certificate = params.self_signed(&key).expect("a certificate");
    std::fs::write(path, certificate.pem() + &key.serialize_pem()).expect("a file for the certificate");
}

/// How a server with the file's certificate shakes hands.
pub(crate) fn server(path: &str) -> Arc<ServerConfig> {
    let key = PrivateKeyDer::from_pem_file(path).expect("a key");
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate(path)], key);
    Arc::new(config.expect("a pair"))
}

/// How a client does that trusts the file's certificate.
pub(crate) fn client(path: &str) -> Arc<ClientTls> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate(path)).expect("a certificate");
    ClientTls::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth())
}

fn certificate(path: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_file(path).expect("a certificate")
}
