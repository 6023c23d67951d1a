//! How the members of a cluster know one another: by the key they share, by their certificates, or by either while one way replaces
//! the other.
//!
//! ```text
//! clusterAuthMode    sends          takes
//! keyFile            key            key
//! sendKeyFile        key            either
//! sendX509           certificate    either
//! x509               certificate    certificate
//! ```
//! While it runs a node goes from `sendKeyFile` to `sendX509` and on to `x509`; the other steps need restarts.
//!
//! A certificate is a member's when the O, OU and DC parts of its subject are those of this node's own certificate, and there is one at
//! least.

/// `security.clusterAuthMode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClusterAuthMode {
    #[default]
    KeyFile,
    SendKeyFile,
    SendX509,
    X509,
}

impl ClusterAuthMode {
    pub fn from_name(name: &str) -> Option<ClusterAuthMode> {
        match name {
            "keyFile" => Some(ClusterAuthMode::KeyFile),
            "sendKeyFile" => Some(ClusterAuthMode::SendKeyFile),
            "sendX509" => Some(ClusterAuthMode::SendX509),
            "x509" => Some(ClusterAuthMode::X509),
            _ => None,
        }
    }
    pub fn name(self) -> &'static str {
        match self {
            ClusterAuthMode::KeyFile => "keyFile",
            ClusterAuthMode::SendKeyFile => "sendKeyFile",
            ClusterAuthMode::SendX509 => "sendX509",
            ClusterAuthMode::X509 => "x509",
        }
    }
    /// Whether a running node may go over to this mode: only on towards certificates, one step at a time.
    pub fn follows(self, from: ClusterAuthMode) -> bool {
        use ClusterAuthMode::*;
        matches!((from, self), (SendKeyFile, SendX509) | (SendX509, X509))
    }
    pub fn sends_certificate(self) -> bool {
        matches!(self, ClusterAuthMode::SendX509 | ClusterAuthMode::X509)
    }
    pub fn takes_certificate(self) -> bool {
        self != ClusterAuthMode::KeyFile
    }
    pub fn takes_key(self) -> bool {
        self != ClusterAuthMode::X509
    }
}

/// Whether the holder of a certificate with this subject belongs to the same cluster as that of `own`, both as RFC 2253 writes them.
pub fn is_member(subject: &str, own: &str) -> bool {
    let own = organisation(own);
    !own.is_empty() && organisation(subject) == own
}

/// The O, OU and DC parts, sorted.
fn organisation(subject: &str) -> Vec<String> {
    let named = |part: &String| ["O=", "OU=", "DC="].iter().any(|name| part.starts_with(name));
    let mut parts: Vec<String> = parts(subject).into_iter().filter(named).collect();
    parts.sort();
    parts
}

/// The parts between commas and plus signs that are not escaped.
fn parts(subject: &str) -> Vec<String> {
    let (mut parts, mut escaped) = (vec![String::new()], false);
    for c in subject.chars() {
        match c {
            ',' | '+' if !escaped => parts.push(String::new()),
            c => parts.last_mut().into_iter().for_each(|part| part.push(c)),
        }
        escaped = c == '\\' && !escaped;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::is_member;

    #[test]
    fn members_have_the_same_organisation() {
        let own = "CN=a,OU=nodes,O=Org";
        assert!(is_member("CN=b,O=Org,OU=nodes", own) && is_member("CN=b+OU=nodes,O=Org,L=x", own));
        for other in ["CN=a,O=Org", "CN=a,OU=nodes,OU=x,O=Org", "CN=a\\,OU=nodes,O=Org", "CN=a", ""] {
            assert!(!is_member(other, own), "{other}");
        }
        assert!(!is_member("CN=b", "CN=a"), "a subject that names no organisation has no members");
    }
}
