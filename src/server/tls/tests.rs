//! Handshakes with certificates made for the test.

use super::*;
use crate::auth::{ClusterAuthMode, ClusterKey};
use crate::log::Logger;
use crate::options::{Options, Program};
use crate::service::{Config, Running, Service};
use document::{Document, doc};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, CustomExtension, DnType, IsCa, KeyPair};
use wire::client::{ConnectOptions, Connection};

/// A directory with a CA and what it has signed.
struct Authority {
    dir: tempfile::TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Authority {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "authority");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("ca.pem"), issuer.pem()).unwrap();
        Authority { dir, issuer }
    }
    fn file(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }
    /// Writes a certificate for `host` with its key.
    fn sign(&self, file: &str, common_name: &str, host: &str) {
        self.sign_in(file, common_name, "users", host);
    }
    fn sign_in(&self, file: &str, common_name: &str, unit: &str, host: &str) {
        let key = KeyPair::generate().unwrap();
        let pem = key.serialize_pem();
        self.sign_with(file, common_name, unit, host, &key, &pem, None);
    }
    /// The same for a key that the file shows as `pem`, with one extension more.
    fn sign_with(
        &self,
        file: &str,
        common_name: &str,
        unit: &str,
        host: &str,
        key: &KeyPair,
        pem: &str,
        extension: Option<CustomExtension>,
    ) {
        let mut params = CertificateParams::new(vec![host.to_string()]).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, "Org");
        params.distinguished_name.push(DnType::OrganizationalUnitName, unit);
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.custom_extensions.extend(extension);
        let certificate = params.signed_by(key, &self.issuer).unwrap();
        std::fs::write(self.file(file), format!("{}{pem}", certificate.pem())).unwrap();
    }
    /// A client whose certificate has this extension.
    fn client_with(&self, file: &str, last: u64, value: Vec<u8>) -> TlsOptions {
        let extension = CustomExtension::from_oid_content(&[1, 3, 6, 1, 4, 1, 34601, 2, 1, last], value);
        let key = KeyPair::generate().unwrap();
        let pem = key.serialize_pem();
        self.sign_with(file, "x", "users", "client", &key, &pem, Some(extension));
        self.options(Mode::Require, file)
    }
    fn options(&self, mode: Mode, file: &str) -> TlsOptions {
        TlsOptions {
            mode,
            certificate_key_file: Some(self.file(file)),
            ca_file: Some(self.file("ca.pem")),
            ..TlsOptions::default()
        }
    }
    /// A node of `127.0.0.1`.
    async fn node(&self, f: impl FnOnce(&mut TlsOptions)) -> Node {
        self.node_in(ClusterAuthMode::KeyFile, f).await
    }
    async fn node_in(&self, mode: ClusterAuthMode, f: impl FnOnce(&mut TlsOptions)) -> Node {
        self.sign_in("server.pem", "server", "nodes", "127.0.0.1");
        let dir = tempfile::tempdir().unwrap();
        let mut options = Options::defaults(Program::Mongod);
        options.cluster_auth = mode;
        options.auth = mode != ClusterAuthMode::KeyFile;
        options.port = 0;
        options.unix_socket = false;
        options.dbpath = dir.path().to_path_buf();
        options.tls = self.options(Mode::Require, "server.pem");
        f(&mut options.tls);
        let key = options.auth.then(|| ClusterKey::new(vec!["somekey".to_string()]));
        let config = Config { options, log: Arc::new(Logger::silent()), ephemeral: true, key };
        Node { running: Service::start(config).await.unwrap(), _dir: dir }
    }
    /// A client with a certificate of this authority.
    fn client(&self, common_name: &str) -> TlsOptions {
        let file = format!("{common_name}.pem");
        self.sign(&file, common_name, "client");
        self.options(Mode::Require, &file)
    }
}

struct Node {
    running: Running,
    _dir: tempfile::TempDir,
}

impl Node {
    async fn connect(&self, tls: Option<&TlsOptions>) -> document::Result<Connection> {
        let tls = tls.map(|options| Tls::open(options).unwrap().unwrap().client);
        let options = ConnectOptions { tls, ..ConnectOptions::default() };
        Connection::connect_with(&format!("127.0.0.1:{}", self.running.port()), &options).await
    }
}

async fn run(c: &mut Connection, db: &str, command: Document) -> document::Result<Document> {
    c.run(db, command.to_doc_buf()).await.map(|reply| reply.to_document())
}

#[tokio::test]
async fn modes_say_who_may_come_in_the_clear() {
    let authority = Authority::new();
    for (mode, plain) in [(Mode::Allow, true), (Mode::Prefer, true), (Mode::Require, false)] {
        let node = authority.node(|o| o.mode = mode).await;
        assert_eq!(node.connect(None).await.is_ok(), plain, "{mode:?}");
        let mut c = node.connect(Some(&authority.client("u"))).await.unwrap();
        let big = doc! { "insert": "c", "documents": [{"_id": 1, "filler": "x".repeat(3_000_000)}] };
        run(&mut c, "d", big).await.unwrap();
        let found = run(&mut c, "d", doc! {"find": "c"}).await.unwrap();
        assert_eq!(found.get_path("cursor.id").and_then(|v| v.as_i64()), Some(0));
        node.running.stop().await;
    }
}

#[tokio::test]
async fn certificates_of_strangers_are_refused_unless_they_may_be() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let node = authority.node(|_| {}).await;
    let foreign = TlsOptions { ca_file: Some(authority.file("ca.pem")), ..stranger.client("s") };
    let refused = match node.connect(Some(&foreign)).await {
        Ok(mut c) => run(&mut c, "admin", doc! {"ping": 1}).await.is_err(),
        Err(_) => true,
    };
    assert!(refused);
    // The server's certificate is checked too.
    let distrusts = TlsOptions { ca_file: Some(stranger.file("ca.pem")), ..authority.client("u") };
    assert!(node.connect(Some(&distrusts)).await.is_err());
    let trusts_all = TlsOptions { invalid_certificates: true, ..distrusts };
    assert!(node.connect(Some(&trusts_all)).await.is_ok());
    node.running.stop().await;
    let node = authority.node(|o| o.invalid_certificates = true).await;
    assert!(node.connect(Some(&foreign)).await.is_ok());
    node.running.stop().await;
}

#[tokio::test]
async fn a_certificate_is_for_its_host() {
    let authority = Authority::new();
    authority.sign("elsewhere.pem", "server", "elsewhere");
    let file = authority.file("elsewhere.pem");
    let node = authority.node(|o| o.certificate_key_file = Some(file)).await;
    let client = authority.client("u");
    assert!(node.connect(Some(&client)).await.is_err());
    let any_name = TlsOptions { invalid_hostnames: true, ..client };
    assert!(node.connect(Some(&any_name)).await.is_ok());
    node.running.stop().await;
}

#[tokio::test]
async fn the_subject_of_a_certificate_is_a_user() {
    let authority = Authority::new();
    let node = authority.node(|_| {}).await;
    let login = || doc! { "authenticate": 1, "mechanism": "MONGODB-X509" };
    let mut c = node.connect(Some(&authority.client("u"))).await.unwrap();
    assert_eq!(run(&mut c, "$external", login()).await.unwrap_err().code, 18);
    let user = doc! { "createUser": "CN=u,OU=users,O=Org", "roles": [{"role": "read", "db": "d"}] };
    run(&mut c, "$external", user).await.unwrap();
    let other = doc! { "authenticate": 1, "mechanism": "MONGODB-X509", "user": "CN=other" };
    assert_eq!(run(&mut c, "$external", other).await.unwrap_err().code, 18);
    assert_eq!(run(&mut c, "admin", login()).await.unwrap_err().code, 17);
    let done = run(&mut c, "$external", login()).await.unwrap();
    assert_eq!(
        (done.get_str("user"), done.get_str("dbname")),
        (Some("CN=u,OU=users,O=Org"), Some("$external"))
    );
    let status = run(&mut c, "admin", doc! {"connectionStatus": 1}).await.unwrap();
    let roles = status.get_path("authInfo.authenticatedUserRoles").and_then(|v| v.as_array()).unwrap();
    assert_eq!(roles.len(), 1);
    node.running.stop().await;
    // A certificate that was not checked names nobody.
    let node = authority.node(|o| o.invalid_certificates = true).await;
    let mut c = node.connect(Some(&authority.client("u"))).await.unwrap();
    let user = doc! { "createUser": "CN=u,OU=users,O=Org", "roles": [] };
    run(&mut c, "$external", user).await.unwrap();
    assert_eq!(run(&mut c, "$external", login()).await.unwrap_err().code, 18);
    node.running.stop().await;
}

#[tokio::test]
async fn rotated_certificates_count_for_new_connections_and_bad_ones_change_nothing() {
    let authority = Authority::new();
    let node = authority.node(|_| {}).await;
    let client = authority.client("u");
    let mut c = node.connect(Some(&client)).await.unwrap();
    let subject = async |c: &mut Connection| {
        let status = run(c, "admin", doc! {"serverStatus": 1}).await.unwrap();
        status.get_path("security.SSLServerSubjectName").and_then(|v| v.as_str().map(str::to_string)).unwrap()
    };
    assert_eq!(subject(&mut c).await, "CN=server,OU=nodes,O=Org");
    std::fs::write(authority.file("server.pem"), "nothing").unwrap();
    assert_eq!(run(&mut c, "admin", doc! {"rotateCertificates": 1}).await.unwrap_err().code, 140);
    assert!(node.connect(Some(&client)).await.is_ok());
    authority.sign_in("server.pem", "renewed", "nodes", "127.0.0.1");
    run(&mut c, "admin", doc! {"rotateCertificates": 1}).await.unwrap();
    assert_eq!(subject(&mut c).await, "CN=renewed,OU=nodes,O=Org");
    assert!(node.connect(Some(&client)).await.is_ok());
    node.running.stop().await;
}

#[tokio::test]
async fn members_know_one_another_by_certificate_where_the_mode_says_so() {
    let authority = Authority::new();
    authority.sign_in("member.pem", "other", "nodes", "127.0.0.1");
    let member = authority.options(Mode::Require, "member.pem");
    let user = authority.client("u");
    let internal = || doc! { "_shardsvrDropCollection": "c" };
    for (mode, certificate, key) in [
        (ClusterAuthMode::SendKeyFile, true, true),
        (ClusterAuthMode::SendX509, true, true),
        (ClusterAuthMode::X509, true, false),
    ] {
        let node = authority.node_in(mode, |_| {}).await;
        let address = format!("127.0.0.1:{}", node.running.port());
        let connect = async |tls: &TlsOptions, by_key: bool| {
            let options = ConnectOptions {
                internal_client: Some(doc! { "minWireVersion": 0, "maxWireVersion": 25 }),
                tls: Some(Tls::open(tls).unwrap().unwrap().client),
                certificate_login: Arc::new((!by_key).into()),
                credentials: by_key.then(|| ClusterKey::new(vec!["somekey".to_string()]).credentials()),
                ..ConnectOptions::default()
            };
            let mut c = Connection::connect_with(&address, &options).await?;
            run(&mut c, "d", internal()).await.map(drop)
        };
        let code = |done: document::Result<()>| done.unwrap_err().code;
        let served = document::codes::SHARDING_STATE_NOT_INITIALIZED;
        assert_eq!(code(connect(&member, false).await) == served, certificate, "{mode:?}");
        assert_eq!(code(connect(&member, true).await) == served, key, "{mode:?}");
        // A certificate of the same authority for somebody else is a user's.
        assert_eq!(code(connect(&user, false).await), 18, "{mode:?}");
        let mut c = node.connect(Some(&user)).await.unwrap();
        let taken = doc! { "createUser": "CN=x,OU=nodes,O=Org", "roles": [] };
        assert_eq!(run(&mut c, "$external", taken).await.unwrap_err().code, 2);
        node.running.stop().await;
    }
    // By key file alone a member's certificate is good for nothing.
    let node = authority.node(|_| {}).await;
    let mut c = node.connect(Some(&member)).await.unwrap();
    let login = doc! { "authenticate": 1, "mechanism": "MONGODB-X509" };
    assert_eq!(run(&mut c, "$external", login).await.unwrap_err().code, 18);
    node.running.stop().await;
}

#[tokio::test]
async fn a_running_cluster_goes_over_to_certificates_step_by_step() {
    let authority = Authority::new();
    authority.sign_in("member.pem", "other", "nodes", "127.0.0.1");
    let member = authority.options(Mode::Require, "member.pem");
    let node = authority.node_in(ClusterAuthMode::SendKeyFile, |_| {}).await;
    let address = format!("127.0.0.1:{}", node.running.port());
    let by_key = ConnectOptions {
        tls: Some(Tls::open(&member).unwrap().unwrap().client),
        credentials: Some(ClusterKey::new(vec!["somekey".to_string()]).credentials()),
        ..ConnectOptions::default()
    };
    // As this node has connected to others since its start.
    let own = crate::members::as_member(&node.running.service);
    let mut c = Connection::connect_with(&address, &by_key).await.unwrap();
    let mut set = async |mode: &str| {
        run(&mut c, "admin", doc! { "setParameter": 1, "clusterAuthMode": mode })
            .await
            .map(|reply| reply.get_str("was").unwrap().to_string())
    };
    for mode in ["x509", "keyFile", "sendKeyFile", "other"] {
        assert_eq!(set(mode).await.unwrap_err().code, 2, "{mode}");
    }
    assert_eq!(set("sendX509").await.unwrap(), "sendKeyFile");
    Connection::connect_with(&address, &by_key).await.unwrap();
    assert_eq!(set("sendKeyFile").await.unwrap_err().code, 2);
    assert_eq!(set("x509").await.unwrap(), "sendX509");
    let shown = run(&mut c, "admin", doc! { "getParameter": 1, "clusterAuthMode": 1 }).await.unwrap();
    assert_eq!(shown.get_str("clusterAuthMode"), Some("x509"));
    assert_eq!(Connection::connect_with(&address, &by_key).await.unwrap_err().code, 18);
    let mut c = Connection::connect_with(&address, &own).await.unwrap();
    run(&mut c, "admin", doc! { "getParameter": 1, "clusterAuthMode": 1 }).await.unwrap();
    node.running.stop().await;
}

/// One key: in the clear, and as OpenSSL encrypts it with the password `secret`, today (AES, PBKDF2 by SHA-256) and formerly (3DES, SHA-1).
const KEY: &str = "-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgmmQYbBYUXZsMoNT9
8lStleT+2SrDieejvR7zUqUx8fahRANCAART0Am1zoFTe+IdYJUA7CYsJ9p9SosT
guCEukAmhXB7pSBXsX1lCY9NT38juz4qSW71HjNbHpEneUrK7Qw/tMZY
-----END PRIVATE KEY-----
";
const SEALED: [&str; 2] = [
    "-----BEGIN ENCRYPTED PRIVATE KEY-----
MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAi2oF1IcySAyQICCAAw
DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEENF3Z7nBQTVvFK83cd5PX5MEgZCf
XQDNCKIkoGPdc7j5bE8a5dr87LQwUcfWKqUlk7isumJU1B3DS15tY6B1F0WyDgCB
R3hkJymIU/LqgB1hqNc+BPEPyGbl4r9dFTzc4jp3nFWETcq+gh9tPA71XU+24I3v
b6sScPVcinDu4BIV7CUSYtSqNhQFy9Y4TiMuzn8WPqYj8aCAGYU0QlQ5YPM2P90=
-----END ENCRYPTED PRIVATE KEY-----
",
    "-----BEGIN ENCRYPTED PRIVATE KEY-----
MIHVMEAGCSqGSIb3DQEFDTAzMBsGCSqGSIb3DQEFDDAOBAjkMAH8SD9AggICCAAw
FAYIKoZIhvcNAwcECJdZgat2kbdSBIGQ6Oqp19yfl1jbNxOmEjc6+dbrpaqYv6sN
3NFYJVPHCNvlp6Enu28x/gOJh/KBIbEC4FopQH7nxU6ECjmIkq/Xr+emZERPYMkI
3WmnPKLJh7VAKkOH9PFrpFhs6Mmq54obDVy+r3WmuQ0STOrN9sDCGJ0b60+4+A0y
92EVmE9cH8aQwn50BmyDHJs/Cz5MxBl+
-----END ENCRYPTED PRIVATE KEY-----
",
];

#[tokio::test]
async fn a_key_may_be_encrypted() {
    let authority = Authority::new();
    for sealed in SEALED {
        let key = KeyPair::from_pem(KEY).unwrap();
        authority.sign_with("sealed.pem", "server", "nodes", "127.0.0.1", &key, sealed, None);
        let file = authority.file("sealed.pem");
        for (password, wanted) in [(None, "no password"), (Some("other"), "cannot be decrypted")] {
            let why = key::read(&file, password).unwrap_err();
            assert!(why.contains(wanted), "{why}");
        }
        let node = authority
            .node(|o| {
                o.certificate_key_file = Some(file);
                o.password = Some("secret".to_string());
            })
            .await;
        node.connect(Some(&authority.client("u"))).await.unwrap();
        node.running.stop().await;
    }
    // Names beside the sections are in whatever encoding their writer used.
    for (pem, password) in [(KEY, None), (SEALED[0], Some("secret"))] {
        let named = authority.file("named.pem");
        std::fs::write(&named, [b"friendlyName: Z\xfcrich\n", pem.as_bytes()].concat()).unwrap();
        key::read(&named, password).unwrap();
    }
    let older = authority.file("older.pem");
    std::fs::write(&older, "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n").unwrap();
    assert!(key::read(&older, Some("secret")).unwrap_err().contains("older form"));
}

/// DER: a tag, a length below 128, and the content.
fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    [&[tag, u8::try_from(content.len()).unwrap()], content].concat()
}

fn role(role: &str, db: &str) -> Vec<u8> {
    der(0x30, &[der(0x0c, role.as_bytes()), der(0x0c, db.as_bytes())].concat())
}

#[tokio::test]
async fn roles_in_a_certificate_need_no_user() {
    let authority = Authority::new();
    let node = authority.node_in(ClusterAuthMode::SendKeyFile, |_| {}).await;
    let parameters = &node.running.service.parameters;
    let login = || doc! { "authenticate": 1, "mechanism": "MONGODB-X509" };
    let roles = der(0x31, &[role("read", "d"), role("readWrite", "e")].concat());
    let client = authority.client_with("roles.pem", 1, roles);
    let mut c = node.connect(Some(&client)).await.unwrap();
    let done = run(&mut c, "$external", login()).await.unwrap();
    assert_eq!(done.get_str("user"), Some("CN=x,OU=users,O=Org"));
    let insert = || doc! { "insert": "c", "documents": [{}] };
    run(&mut c, "e", insert()).await.unwrap();
    run(&mut c, "d", doc! { "find": "c" }).await.unwrap();
    assert_eq!(run(&mut c, "d", insert()).await.unwrap_err().code, 13);
    // What others do to users changes nothing for it.
    node.running.service.auth.invalidate();
    run(&mut c, "e", insert()).await.unwrap();
    // A role that nobody has made gives nobody a name.
    let unknown = authority.client_with("unknown.pem", 1, der(0x31, &role("nothing", "d")));
    let mut c = node.connect(Some(&unknown)).await.unwrap();
    assert_eq!(run(&mut c, "$external", login()).await.unwrap_err().code, 18);
    for bad in [der(0x31, &der(0x0c, b"read")), der(0x31, &der(0x30, &der(0x0c, b"read"))), vec![0x31, 0x05]]
    {
        let bad = authority.client_with("bad.pem", 1, bad);
        let refused = match node.connect(Some(&bad)).await {
            Ok(mut c) => run(&mut c, "admin", doc! {"ping": 1}).await.is_err(),
            Err(_) => true,
        };
        assert!(refused);
    }
    parameters.set_at_startup("allowRolesFromX509Certificates", "false").unwrap();
    let mut c = node.connect(Some(&client)).await.unwrap();
    assert_eq!(run(&mut c, "$external", login()).await.unwrap_err().code, 18);
    node.running.stop().await;
}

#[tokio::test]
async fn members_are_known_by_what_the_options_ask_of_certificates() {
    let authority = Authority::new();
    let red = authority.client_with("red.pem", 2, der(0x0c, b"red"));
    let login = || doc! { "authenticate": 1, "mechanism": "MONGODB-X509" };
    let extension = |value: &str| Some(ClusterAuthRule::Extension(value.to_string()));
    let attributes = |value: &str| Some(ClusterAuthRule::Attributes(value.to_string()));
    for (rule, parameter, taken) in [
        (None, None, false),
        (extension("red"), None, true),
        (extension("blue"), None, false),
        (attributes("OU=users, CN=x"), None, true),
        (attributes("OU=users, CN=y"), None, false),
        (None, Some(("tlsX509ClusterAuthDNOverride", "CN=a,OU=users,O=Org")), true),
        (None, Some(("tlsClusterAuthX509Override", "{\"extensionValue\": \"red\"}")), true),
        (extension("blue"), Some(("tlsClusterAuthX509Override", "{\"attributes\": \"CN=x\"}")), true),
    ] {
        let shown = format!("{rule:?} {parameter:?}");
        let node = authority.node_in(ClusterAuthMode::X509, |o| o.cluster_auth = rule).await;
        if let Some((name, value)) = parameter {
            node.running.service.parameters.set_at_startup(name, value).unwrap();
        }
        let mut c = node.connect(Some(&red)).await.unwrap();
        let done = run(&mut c, "$external", login()).await;
        assert_eq!(done.is_ok(), taken, "{shown}");
        if taken {
            run(&mut c, "admin", doc! { "listDatabases": 1 }).await.unwrap();
        }
        node.running.stop().await;
    }
}

#[tokio::test]
async fn a_running_node_goes_over_to_encryption_step_by_step() {
    let authority = Authority::new();
    let node = authority.node(|o| o.mode = Mode::Allow).await;
    let own = crate::members::as_member(&node.running.service);
    let address = format!("127.0.0.1:{}", node.running.port());
    let mut c = node.connect(None).await.unwrap();
    let mut set =
        async |name: &str, mode: &str| run(&mut c, "admin", doc! { "setParameter": 1, name: mode }).await;
    assert_eq!(set("tlsMode", "requireTLS").await.unwrap_err().code, 2);
    assert_eq!(set("tlsMode", "sometimes").await.unwrap_err().code, 2);
    assert_eq!(set("tlsMode", "preferTLS").await.unwrap().get_str("was"), Some("allowTLS"));
    assert_eq!(set("tlsMode", "allowTLS").await.unwrap_err().code, 2);
    node.connect(None).await.unwrap();
    assert_eq!(set("sslMode", "requireSSL").await.unwrap().get_str("was"), Some("preferSSL"));
    assert!(node.connect(None).await.is_err(), "plain text comes in no more");
    let mut encrypted = Connection::connect_with(&address, &own).await.unwrap();
    let shown = run(&mut encrypted, "admin", doc! { "getParameter": 1, "tlsMode": 1 }).await.unwrap();
    assert_eq!(shown.get_str("tlsMode"), Some("requireTLS"));
    let status = run(&mut encrypted, "admin", doc! { "serverStatus": 1 }).await.unwrap();
    let of_newest = status.get_document("transportSecurity").and_then(|d| d.get_i64("1.3"));
    assert_eq!(of_newest, Some(1));
    node.running.stop().await;
    // Under both names at once it is one step.
    let node = authority.node(|o| o.mode = Mode::Allow).await;
    let mut c = node.connect(None).await.unwrap();
    run(&mut c, "admin", doc! { "setParameter": 1, "tlsMode": "preferTLS", "sslMode": "preferSSL" })
        .await
        .unwrap();
    node.running.stop().await;
}

#[test]
fn options_that_cannot_work_are_refused() {
    let with = |more: Document| {
        let mut tls = doc! {"mode": "requireTLS", "certificateKeyFile": "x", "CAFile": "y"};
        tls.0.extend(more.0);
        doc! {"net": {"tls": tls}}
    };
    for (parsed, ok) in [
        (doc! {}, true),
        (doc! {"net": {"tls": {"mode": "disabled"}}}, true),
        (doc! {"net": {"tls": {"mode": "sometimes"}}}, false),
        (doc! {"net": {"tls": {"mode": "requireTLS"}}}, false),
        (doc! {"net": {"tls": {"mode": "requireTLS", "certificateKeyFile": "x"}}}, false),
        (doc! {"net": {"tls": {"mode": "requireTLS", "certificateKeyFile": "x", "CAFile": "y"}}}, true),
        (doc! {"net": {"ssl": {"mode": "preferSSL", "PEMKeyFile": "x", "CAFile": "y"}}}, true),
        (
            doc! {"net": {"tls": {"mode": "allowTLS", "certificateKeyFile": "x", "CAFile": "y", "disabledProtocols": "TLS1_2,TLS1_3"}}},
            false,
        ),
        (with(doc! {"logVersions": "TLS1_2,TLS1_3"}), true),
        (with(doc! {"logVersions": "TLS1_2,TLS9"}), false),
        (with(doc! {"clusterAuthX509": {"attributes": "O=x"}}), true),
        (with(doc! {"clusterAuthX509": {"attributes": "O=x", "extensionValue": "y"}}), false),
        (
            doc! {"net": {"tls": {"mode": "requireTLS", "certificateKeyFile": "x"}}, "setParameter": {"tlsUseSystemCA": "true"}},
            true,
        ),
        (
            doc! {"net": {"tls": {"mode": "requireTLS", "certificateKeyFile": "x", "CAFile": "y"}}, "setParameter": {"tlsUseSystemCA": true}},
            false,
        ),
    ] {
        assert_eq!(TlsOptions::check(&parsed).is_ok(), ok, "{parsed:?}");
    }
}
