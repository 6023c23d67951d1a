//! The options of TLS: `net.tls.*`, and their older names below `net.ssl`.

use super::versions::LOGGED_VERSIONS;
use document::{Document, Value};
use std::path::PathBuf;

/// Which connections are encrypted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    #[default]
    Disabled,
    /// Clients may; this node does not by itself.
    Allow,
    /// Clients may; this node does.
    Prefer,
    Require,
}

impl Mode {
    pub fn from_name(name: &str) -> Option<Mode> {
        match name {
            "disabled" | "off" => Some(Mode::Disabled),
            "allowTLS" | "allowSSL" => Some(Mode::Allow),
            "preferTLS" | "preferSSL" => Some(Mode::Prefer),
            "requireTLS" | "requireSSL" => Some(Mode::Require),
            _ => None,
        }
    }
    /// As `getParameter` shows it.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Disabled => "disabled",
            Mode::Allow => "allowTLS",
            Mode::Prefer => "preferTLS",
            Mode::Require => "requireTLS",
        }
    }
    /// Its older name.
    pub fn old_name(self) -> &'static str {
        match self {
            Mode::Disabled => "disabled",
            Mode::Allow => "allowSSL",
            Mode::Prefer => "preferSSL",
            Mode::Require => "requireSSL",
        }
    }
    /// Whether a running node may go over to this mode: only on towards encryption, one step at a time.
    pub fn follows(self, from: Mode) -> bool {
        matches!((from, self), (Mode::Allow, Mode::Prefer) | (Mode::Prefer, Mode::Require))
    }
    /// Whether this node encrypts the connections that it makes.
    pub fn encrypts_own(self) -> bool {
        self >= Mode::Prefer
    }
}

/// By what a certificate is known as that of a member of the cluster, where it is not by the organisation in its subject
/// (`net.tls.clusterAuthX509`).
#[derive(Clone, Debug, PartialEq)]
pub enum ClusterAuthRule {
    /// Parts that its subject has, as RFC 2253 writes them.
    Attributes(String),
    /// What its extension says.
    Extension(String),
}

impl ClusterAuthRule {
    /// From `{attributes}` or `{extensionValue}`.
    ///
    /// # Errors
    /// A text, where there are both.
    pub fn of(given: &Document) -> Result<Option<ClusterAuthRule>, &'static str> {
        match (given.get_str("attributes"), given.get_str("extensionValue")) {
            (Some(_), Some(_)) => {
                Err("clusterAuthX509.attributes and clusterAuthX509.extensionValue exclude one another")
            }
            (Some(text), None) => Ok(Some(ClusterAuthRule::Attributes(text.to_string()))),
            (None, Some(text)) => Ok(Some(ClusterAuthRule::Extension(text.to_string()))),
            (None, None) => Ok(None),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct TlsOptions {
    pub mode: Mode,
    pub certificate_key_file: Option<PathBuf>,
    /// Of the key in that file, where it is encrypted.
    pub password: Option<String>,
    /// Shown to other nodes in place of the former.
    pub cluster_file: Option<PathBuf>,
    pub cluster_password: Option<String>,
    pub cluster_auth: Option<ClusterAuthRule>,
    pub ca_file: Option<PathBuf>,
    /// Checks clients in place of the former.
    pub cluster_ca_file: Option<PathBuf>,
    pub crl_file: Option<PathBuf>,
    pub without_certificates: bool,
    pub invalid_certificates: bool,
    pub invalid_hostnames: bool,
    pub disabled_protocols: Vec<String>,
    /// The versions of which each connection is logged.
    pub log_versions: Vec<String>,
    /// `tlsUseSystemCA`: what the operating system trusts stands in for a CA file.
    pub system_ca: bool,
    /// `tlsWithholdClientCertificate`: other nodes are shown none.
    pub withhold_certificate: bool,
}

/// What stands in the parsed document under either name.
fn get<'a>(parsed: &'a Document, name: &str, old: &str) -> Option<&'a Value> {
    parsed.get_path(&format!("net.tls.{name}")).or_else(|| parsed.get_path(&format!("net.ssl.{old}")))
}

/// A server parameter that is a switch, as it was given at startup.
fn parameter(parsed: &Document, name: &str) -> bool {
    match parsed.get_path(&format!("setParameter.{name}")) {
        Some(Value::String(text)) => matches!(text.as_str(), "true" | "1"),
        other => other.is_some_and(Value::truthy),
    }
}

fn list(text: Option<&str>) -> Vec<String> {
    text.into_iter().flat_map(|t| t.split(',')).map(|name| name.trim().to_string()).collect()
}

impl TlsOptions {
    /// Whether certificates of clients are checked by an authority.
    pub fn checks_clients(&self) -> bool {
        self.ca_file.is_some() || self.cluster_ca_file.is_some() || self.system_ca
    }

    pub fn of_parsed(parsed: &Document) -> TlsOptions {
        let text = |name: &str, old: &str| get(parsed, name, old).and_then(Value::as_str);
        let same = |name: &str| text(name, name).map(PathBuf::from);
        let flag = |name: &str| get(parsed, name, name).is_some_and(Value::truthy);
        TlsOptions {
            mode: text("mode", "mode").and_then(Mode::from_name).unwrap_or_default(),
            certificate_key_file: text("certificateKeyFile", "PEMKeyFile").map(PathBuf::from),
            password: text("certificateKeyFilePassword", "PEMKeyPassword").map(str::to_string),
            cluster_file: same("clusterFile"),
            cluster_password: text("clusterPassword", "clusterPassword").map(str::to_string),
            cluster_auth: parsed
                .get_path("net.tls.clusterAuthX509")
                .and_then(Value::as_document)
                .and_then(|given| ClusterAuthRule::of(given).ok()?),
            ca_file: same("CAFile"),
            cluster_ca_file: same("clusterCAFile"),
            crl_file: same("CRLFile"),
            without_certificates: flag("allowConnectionsWithoutCertificates"),
            invalid_certificates: flag("allowInvalidCertificates"),
            invalid_hostnames: flag("allowInvalidHostnames"),
            disabled_protocols: list(text("disabledProtocols", "disabledProtocols")),
            log_versions: list(text("logVersions", "logVersions")),
            system_ca: parameter(parsed, "tlsUseSystemCA"),
            withhold_certificate: parameter(parsed, "tlsWithholdClientCertificate"),
        }
    }

    /// Contradictions in what was given: a text for standard error.
    pub fn check(parsed: &Document) -> Result<(), String> {
        let bad = |text: &str| Err(format!("BadValue: {text}"));
        let text = |name: &str, old: &str| get(parsed, name, old).and_then(Value::as_str);
        if let Some(mode) = text("mode", "mode")
            && Mode::from_name(mode).is_none()
        {
            return bad(&format!("unsupported value for tlsMode {mode}"));
        }
        let options = TlsOptions::of_parsed(parsed);
        if options.mode == Mode::Disabled {
            return Ok(());
        }
        if get(parsed, "FIPSMode", "FIPSMode").is_some_and(Value::truthy) {
            return bad("FIPS mode is not supported by this build");
        }
        if options.certificate_key_file.is_none() {
            return bad("need tlsCertificateKeyFile or certificateSelector when TLS is enabled");
        }
        if options.system_ca && options.ca_file.is_some() {
            return bad("The use of both a CA File and the System Certificate store is not supported.");
        }
        if options.crl_file.is_some() && options.ca_file.is_none() {
            return bad("need tlsCAFile with tlsCRLFile");
        }
        if options.ca_file.is_none() && !options.system_ca && !options.invalid_certificates {
            return Err(
                "InvalidSSLConfiguration: The use of TLS without specifying a chain of trust is no longer supported. \
                 See https://jira.mongodb.org/browse/SERVER-72839 for details"
                    .to_string(),
            );
        }
        if let Some(name) = options.log_versions.iter().find(|name| !LOGGED_VERSIONS.contains(&name.as_str()))
        {
            return bad(&format!("Unrecognized tlsLogVersions '{name}'"));
        }
        let cluster_auth = parsed.get_path("net.tls.clusterAuthX509").and_then(Value::as_document);
        cluster_auth.map_or(Ok(None), ClusterAuthRule::of).or_else(|text| bad(text).map(|()| None))?;
        const PROTOCOLS: &[&str] = &["TLS1_0", "TLS1_1", "TLS1_2", "TLS1_3", "none"];
        match options.disabled_protocols.iter().find(|name| !PROTOCOLS.contains(&name.as_str())) {
            Some(name) => bad(&format!("Unrecognized disabledProtocols '{name}'")),
            None if ["TLS1_2", "TLS1_3"]
                .iter()
                .all(|p| options.disabled_protocols.iter().any(|d| d == p)) =>
            {
                bad("All valid TLS modes disabled")
            }
            None => Ok(()),
        }
    }
}
