//! The options of TLS: `net.tls.*`, and their older names below `net.ssl`.

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
    fn from_name(name: &str) -> Option<Mode> {
        match name {
            "disabled" | "off" => Some(Mode::Disabled),
            "allowTLS" | "allowSSL" => Some(Mode::Allow),
            "preferTLS" | "preferSSL" => Some(Mode::Prefer),
            "requireTLS" | "requireSSL" => Some(Mode::Require),
            _ => None,
        }
    }
    /// Whether this node encrypts the connections that it makes.
    pub fn encrypts_own(self) -> bool {
        self >= Mode::Prefer
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct TlsOptions {
    pub mode: Mode,
    pub certificate_key_file: Option<PathBuf>,
    /// Shown to other nodes in place of the former.
    pub cluster_file: Option<PathBuf>,
    pub ca_file: Option<PathBuf>,
    /// Checks clients in place of the former.
    pub cluster_ca_file: Option<PathBuf>,
    pub crl_file: Option<PathBuf>,
    pub without_certificates: bool,
    pub invalid_certificates: bool,
    pub invalid_hostnames: bool,
    pub disabled_protocols: Vec<String>,
}

/// What stands in the parsed document under either name.
fn get<'a>(parsed: &'a Document, name: &str, old: &str) -> Option<&'a Value> {
    parsed.get_path(&format!("net.tls.{name}")).or_else(|| parsed.get_path(&format!("net.ssl.{old}")))
}

impl TlsOptions {
    pub fn of_parsed(parsed: &Document) -> TlsOptions {
        let text = |name: &str, old: &str| get(parsed, name, old).and_then(Value::as_str);
        let same = |name: &str| text(name, name).map(PathBuf::from);
        let flag = |name: &str| get(parsed, name, name).is_some_and(Value::truthy);
        TlsOptions {
            mode: text("mode", "mode").and_then(Mode::from_name).unwrap_or_default(),
            certificate_key_file: text("certificateKeyFile", "PEMKeyFile").map(PathBuf::from),
            cluster_file: same("clusterFile"),
            ca_file: same("CAFile"),
            cluster_ca_file: same("clusterCAFile"),
            crl_file: same("CRLFile"),
            without_certificates: flag("allowConnectionsWithoutCertificates"),
            invalid_certificates: flag("allowInvalidCertificates"),
            invalid_hostnames: flag("allowInvalidHostnames"),
            disabled_protocols: text("disabledProtocols", "disabledProtocols")
                .map(|list| list.split(',').map(|name| name.trim().to_string()).collect())
                .unwrap_or_default(),
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
        for (name, old) in
            [("certificateKeyFilePassword", "PEMKeyPassword"), ("clusterPassword", "clusterPassword")]
        {
            if text(name, old).is_some() {
                return bad("encrypted key files are not supported by this build");
            }
        }
        if get(parsed, "FIPSMode", "FIPSMode").is_some_and(Value::truthy) {
            return bad("FIPS mode is not supported by this build");
        }
        if options.certificate_key_file.is_none() {
            return bad("need tlsCertificateKeyFile or certificateSelector when TLS is enabled");
        }
        if options.crl_file.is_some() && options.ca_file.is_none() {
            return bad("need tlsCAFile with tlsCRLFile");
        }
        if options.ca_file.is_none() && !options.invalid_certificates {
            return Err(
                "InvalidSSLConfiguration: The use of TLS without specifying a chain of trust is no longer supported. \
                 See https://jira.mongodb.org/browse/SERVER-72839 for details"
                    .to_string(),
            );
        }
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
