//! Private keys from PEM files, encrypted ones included.

use pkcs8::{EncryptedPrivateKeyInfoRef, SecretDocument};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::path::Path;

const BEGIN: &str = "-----BEGIN ENCRYPTED PRIVATE KEY-----";
const END: &str = "-----END ENCRYPTED PRIVATE KEY-----";
/// What the older form of an encrypted key has in its head: OpenSSL's own, without a standard.
const OLDER: &str = "Proc-Type: 4,ENCRYPTED";

/// The first key of the file; `password` decrypts it where it is encrypted (PKCS #8 with PBES2).
///
/// # Errors
/// Texts: there is no key, it is encrypted and there is no password or the wrong one, or in a way that is not known.
pub(super) fn read(path: &Path, password: Option<&str>) -> Result<PrivateKeyDer<'static>, String> {
    let bytes = std::fs::read(path).map_err(|e| e.to_string())?;
    // What stands around the sections may be in any encoding.
    let text = String::from_utf8_lossy(&bytes);
    if text.contains(OLDER) {
        return Err(
            "its key is encrypted in OpenSSL's older form; `openssl pkcs8 -topk8` gives it the standard one"
                .to_string(),
        );
    }
    let Some(section) = section(&text) else {
        return PrivateKeyDer::from_pem_slice(&bytes).map_err(|e| e.to_string());
    };
    let Some(password) = password else {
        return Err("its key is encrypted, and no password was given".to_string());
    };
    let (_, sealed) = SecretDocument::from_pem(section).map_err(|e| e.to_string())?;
    let sealed = EncryptedPrivateKeyInfoRef::try_from(sealed.as_bytes()).map_err(|e| e.to_string())?;
    let key = sealed.decrypt(password).map_err(|e| format!("its key cannot be decrypted: {e}"))?;
    Ok(PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.as_bytes().to_vec())))
}

/// The part of a PEM file that is an encrypted key.
fn section(text: &str) -> Option<&str> {
    let from = &text[text.find(BEGIN)?..];
    Some(&from[..from.find(END)? + END.len()])
}
