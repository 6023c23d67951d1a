//! What a certificate says of its holder.

use super::subject::subject_name;
use node::auth::RoleName;
use x509_parser::der_parser::asn1_rs::{self, Sequence, Set, Utf8String};
use x509_parser::prelude::{FromDer, X509Certificate};

/// DO NOT CHANGE: where certificates say which roles their holder has, and of which cluster it is a member. Registered by MongoDB,
/// and described in its manual.
const ROLES: &str = "1.3.6.1.4.1.34601.2.1.1";
const CLUSTER: &str = "1.3.6.1.4.1.34601.2.1.2";

/// The holder of a certificate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Peer {
    /// Its name, as RFC 2253 writes it; empty where it cannot be read.
    pub subject: String,
    /// The roles that it was given by who signed it; none where it says nothing of roles.
    pub roles: Vec<RoleName>,
    /// The cluster that it is a member of, by its own extension.
    pub cluster: Option<String>,
    /// Seconds since the epoch after which it is not valid.
    pub expires: i64,
}

impl Peer {
    /// # Errors
    /// A text: these bytes are no certificate, or one of the extensions that are read is none.
    pub(super) fn of(certificate: &[u8]) -> Result<Peer, String> {
        let (_, parsed) = X509Certificate::from_der(certificate).map_err(|e| e.to_string())?;
        let mut peer = Peer {
            subject: subject_name(certificate).unwrap_or_default(),
            expires: parsed.validity().not_after.timestamp(),
            ..Peer::default()
        };
        for extension in parsed.extensions() {
            match extension.oid.to_id_string().as_str() {
                ROLES => {
                    let bad = |e: asn1_rs::Error| format!("the roles in the certificate cannot be read: {e}");
                    peer.roles = roles(extension.value).map_err(bad)?;
                }
                CLUSTER => {
                    let bad =
                        |e: asn1_rs::Error| format!("the cluster in the certificate cannot be read: {e}");
                    peer.cluster = Some(text(extension.value).map_err(bad)?);
                }
                _ => {}
            }
        }
        Ok(peer)
    }
}

/// A set of sequences of two texts: role and database.
fn roles(value: &[u8]) -> Result<Vec<RoleName>, asn1_rs::Error> {
    let (rest, set) = Set::from_der(value)?;
    whole(rest)?;
    let (mut left, mut found) = (set.content.as_ref(), Vec::new());
    while !left.is_empty() {
        let (rest, sequence) = Sequence::from_der(left)?;
        let (db, role) = Utf8String::from_der(&sequence.content)?;
        found.push(RoleName::new(role.as_ref(), &text(db)?));
        left = rest;
    }
    Ok(found)
}

/// A text, and nothing after it.
fn text(value: &[u8]) -> Result<String, asn1_rs::Error> {
    let (rest, text) = Utf8String::from_der(value)?;
    whole(rest)?;
    Ok(text.as_ref().to_string())
}

fn whole(rest: &[u8]) -> Result<(), asn1_rs::Error> {
    if rest.is_empty() { Ok(()) } else { Err(asn1_rs::Error::InvalidLength) }
}
