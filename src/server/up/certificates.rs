//! The certificates of `tessera up --tls`: an authority of the cluster's own and one certificate that all nodes show.
//!
//! They are made at the first start and lie in the directory `tls` below the root, for later starts and for clients.

#![expect(clippy::disallowed_methods, reason = "files of the command, which no node opens")]

use crate::options;
use document::Document;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use std::io;
use std::path::{Path, PathBuf};

/// The files of one cluster.
pub(super) struct Certificates {
    /// What clients check the nodes by.
    pub authority: PathBuf,
    /// What the nodes show, with its key.
    own: PathBuf,
}

impl Certificates {
    /// Those below `root`, made where they are missing.
    pub(super) fn ensure(root: &Path) -> io::Result<Certificates> {
        let dir = root.join("tls");
        std::fs::create_dir_all(&dir)?;
        let dir = dir.canonicalize()?;
        let made = Certificates { authority: dir.join("ca.pem"), own: dir.join("server.pem") };
        if !made.authority.exists() || !made.own.exists() {
            let (authority, own) = make().map_err(io::Error::other)?;
            super::write_secret(&made.own, &own)?;
            std::fs::write(&made.authority, authority)?;
        }
        Ok(made)
    }
    /// Has a node show them, and ask clients for none.
    pub(super) fn put(&self, parsed: &mut Document) {
        options::put(parsed, "net.tls.mode", "requireTLS".into());
        options::put(parsed, "net.tls.certificateKeyFile", self.own.display().to_string().into());
        options::put(parsed, "net.tls.CAFile", self.authority.display().to_string().into());
        options::put(parsed, "net.tls.allowConnectionsWithoutCertificates", true.into());
    }
}

/// The authority's certificate, and a certificate of this machine with its key.
fn make() -> Result<(String, String), rcgen::Error> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "tessera up");
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
    let names = ["localhost", "127.0.0.1", "::1"].map(str::to_string);
    let mut params = CertificateParams::new([&names[..], &[crate::service::hostname()]].concat())?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "Tessera");
    params.distinguished_name.push(DnType::CommonName, "node");
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, &issuer)?;
    Ok((issuer.pem(), format!("{}{}", certificate.pem(), key.serialize_pem())))
}
