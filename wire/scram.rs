//! SCRAM (RFC 5802, RFC 7677) as MongoDB uses it: what is stored of a password, and both ends of the conversation.
//!
//! ```text
//! client -> n,,n=user,r=NONCE                             client-first
//! server -> r=NONCE+MORE,s=SALT,i=ROUNDS                  server-first
//! client -> c=biws,r=NONCE+MORE,p=PROOF                   client-final
//! server -> v=SIGNATURE                                   server-final
//!
//! Salted    = PBKDF2(password, SALT, ROUNDS)              one block
//! StoredKey = H(HMAC(Salted, "Client Key"))               ServerKey = HMAC(Salted, "Server Key")
//! Signed    = client-first without "n,," , server-first , client-final without proof
//! PROOF     = ClientKey xor HMAC(StoredKey, Signed)       SIGNATURE = HMAC(ServerKey, Signed)
//! ```
//! Under SHA-1 the password is the lower-case hexadecimal MD5 of `user:mongo:password`; under SHA-256 it is the password
//! prepared by SASLprep (RFC 4013).

use document::encoding::{base64, from_base64, hex};
use document::{Document, Value, doc};
use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mechanism {
    Sha1,
    Sha256,
}

/// Why a step was refused: for the log, never for the client.
pub type Refused = &'static str;

/// The most rounds that a client lets a server ask for.
const ROUNDS_MAX: u32 = 10_000_000;
/// The fewest (RFC 5802).
const ROUNDS_MIN: u32 = 4096;

impl Mechanism {
    pub const BOTH: [Mechanism; 2] = [Mechanism::Sha1, Mechanism::Sha256];

    pub fn name(self) -> &'static str {
        match self {
            Mechanism::Sha1 => "SCRAM-SHA-1",
            Mechanism::Sha256 => "SCRAM-SHA-256",
        }
    }
    pub fn from_name(name: &str) -> Option<Mechanism> {
        Mechanism::BOTH.into_iter().find(|mechanism| mechanism.name() == name)
    }
    pub fn key_length(self) -> usize {
        match self {
            Mechanism::Sha1 => 20,
            Mechanism::Sha256 => 32,
        }
    }
    /// Of what the server stores.
    pub fn salt_length(self) -> usize {
        match self {
            Mechanism::Sha1 => 16,
            Mechanism::Sha256 => 28,
        }
    }
    /// The keyed hash of the mechanism.
    pub fn hmac(self, key: &[u8], text: &[u8]) -> Vec<u8> {
        match self {
            Mechanism::Sha1 => keyed::<Hmac<Sha1>>(key, text),
            Mechanism::Sha256 => keyed::<Hmac<Sha256>>(key, text),
        }
    }
    fn hash(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Mechanism::Sha1 => Sha1::digest(bytes).to_vec(),
            Mechanism::Sha256 => Sha256::digest(bytes).to_vec(),
        }
    }
    fn stretch(self, secret: &[u8], salt: &[u8], rounds: u32) -> Vec<u8> {
        match self {
            Mechanism::Sha1 => stretch::<Hmac<Sha1>>(secret, salt, rounds),
            Mechanism::Sha256 => stretch::<Hmac<Sha256>>(secret, salt, rounds),
        }
    }
}

fn keyed<M: Mac + KeyInit>(key: &[u8], text: &[u8]) -> Vec<u8> {
    let mut mac = <M as KeyInit>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(text);
    mac.finalize().into_bytes().to_vec()
}

/// PBKDF2 with one block. The keyed state is made once and copied for each round.
fn stretch<M: Mac + KeyInit + Clone>(secret: &[u8], salt: &[u8], rounds: u32) -> Vec<u8> {
    let keyed = <M as KeyInit>::new_from_slice(secret).expect("HMAC takes keys of any length");
    let mut first = keyed.clone();
    first.update(salt);
    first.update(&[0, 0, 0, 1]);
    let mut block = first.finalize().into_bytes();
    let mut sum = block.to_vec();
    for _ in 1..rounds {
        let mut mac = keyed.clone();
        mac.update(&block);
        block = mac.finalize().into_bytes();
        sum.iter_mut().zip(&block).for_each(|(a, b)| *a ^= b);
    }
    sum
}

/// What SHA-1 stretches in place of the password, and older mechanisms knew of it.
pub fn digest(user: &str, password: &str) -> String {
    hex(&Md5::digest(format!("{user}:mongo:{password}").as_bytes()))
}

/// What is stretched.
///
/// # Errors
/// A password with characters that SASLprep prohibits.
pub fn secret(mechanism: Mechanism, user: &str, password: &str) -> Result<Vec<u8>, Refused> {
    match mechanism {
        Mechanism::Sha1 => Ok(digest(user, password).into_bytes()),
        Mechanism::Sha256 => match stringprep::saslprep(password) {
            Ok(prepared) => Ok(prepared.as_bytes().to_vec()),
            Err(_) => Err("the password has characters that SASLprep prohibits"),
        },
    }
}

/// What the server keeps of a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    pub rounds: u32,
    pub salt: Vec<u8>,
    pub stored_key: Vec<u8>,
    pub server_key: Vec<u8>,
}

impl Credential {
    /// `secret` is that of [`secret`].
    pub fn derive(mechanism: Mechanism, secret: &[u8], salt: Vec<u8>, rounds: u32) -> Credential {
        let salted = mechanism.stretch(secret, &salt, rounds);
        Credential::of_salted(mechanism, &salted, salt, rounds)
    }
    fn of_salted(mechanism: Mechanism, salted: &[u8], salt: Vec<u8>, rounds: u32) -> Credential {
        let client_key = mechanism.hmac(salted, b"Client Key");
        Credential {
            rounds,
            salt,
            stored_key: mechanism.hash(&client_key),
            server_key: mechanism.hmac(salted, b"Server Key"),
        }
    }
    /// With a salt of its own.
    pub fn new(mechanism: Mechanism, secret: &[u8], rounds: u32) -> Credential {
        Credential::derive(mechanism, secret, random(mechanism.salt_length()), rounds)
    }
    /// One that no password opens, the same each time for a user: a conversation about a user that is not there then looks
    /// like any other. `key` is the server's own secret.
    pub fn pretended(mechanism: Mechanism, key: &[u8], user: &str, rounds: u32) -> Credential {
        let mut salt = Mechanism::Sha256.hmac(key, format!("{}:{user}", mechanism.name()).as_bytes());
        salt.truncate(mechanism.salt_length());
        let length = mechanism.key_length();
        Credential { rounds, salt, stored_key: random(length), server_key: random(length) }
    }
    /// The document of a user's `credentials`. DO NOT CHANGE.
    pub fn to_document(&self) -> Document {
        doc! {
            "iterationCount": self.rounds as i32, "salt": base64(&self.salt),
            "storedKey": base64(&self.stored_key), "serverKey": base64(&self.server_key),
        }
    }
    /// `None` where a member is missing, is no base64, or has another length than the mechanism's.
    pub fn of_document(mechanism: Mechanism, d: &Document) -> Option<Credential> {
        let bytes = |name: &str| d.get(name).and_then(Value::as_str).and_then(from_base64);
        let credential = Credential {
            rounds: u32::try_from(d.get_i64("iterationCount")?).ok().filter(|n| *n > 0)?,
            salt: bytes("salt")?,
            stored_key: bytes("storedKey")?,
            server_key: bytes("serverKey")?,
        };
        let length = mechanism.key_length();
        (credential.stored_key.len() == length && credential.server_key.len() == length).then_some(credential)
    }
}

/// Bytes of the system's generator.
fn random(length: usize) -> Vec<u8> {
    use rand::RngCore;
    let mut bytes = vec![0; length];
    runtime::rng().fill_bytes(&mut bytes);
    bytes
}

/// A client's first message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientFirst {
    pub user: String,
    nonce: String,
    /// The part that is signed, as it came.
    bare: String,
    /// `n,,` in base64: what the client has to repeat.
    header: String,
}

impl ClientFirst {
    /// # Errors
    /// Anything but `n` or `y`, an authorization id of somebody else, a mandatory extension, a user or nonce that is too
    /// short.
    pub fn parse(payload: &[u8]) -> Result<ClientFirst, Refused> {
        let text = std::str::from_utf8(payload).map_err(|_| "the first message is not UTF-8")?;
        let mut parts = text.splitn(3, ',');
        let (flag, authzid, bare) = match (parts.next(), parts.next(), parts.next()) {
            (Some(flag), Some(authzid), Some(bare)) => (flag, authzid, bare),
            _ => return Err("the first message has too few parts"),
        };
        if !matches!(flag, "n" | "y") {
            return Err("channel binding is not supported");
        }
        let mut fields = bare.split(',');
        let user = fields.next().and_then(|f| f.strip_prefix("n=")).ok_or("the user's name is missing")?;
        let nonce = fields.next().and_then(|f| f.strip_prefix("r=")).ok_or("the nonce is missing")?;
        let user = unescape(user)?;
        if user.is_empty() || nonce.len() < 4 {
            return Err("the user's name or the nonce is too short");
        }
        match authzid.strip_prefix("a=") {
            None if authzid.is_empty() => {}
            Some(id) if unescape(id)? == user => {}
            _ => return Err("the authorization id is not the user's"),
        }
        Ok(ClientFirst {
            user,
            nonce: nonce.to_string(),
            bare: bare.to_string(),
            header: base64(format!("{flag},{authzid},").as_bytes()),
        })
    }
}

/// `=2C` is a comma, `=3D` an equals sign, and no other may stand there.
fn unescape(text: &str) -> Result<String, Refused> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('=') {
        out.push_str(&rest[..at]);
        let tail = &rest[at..];
        match tail.get(..3) {
            Some("=2C") => out.push(','),
            Some("=3D") => out.push('='),
            _ => return Err("the user's name is not escaped as it should be"),
        }
        rest = &tail[3..];
    }
    out.push_str(rest);
    Ok(out)
}

fn escape(name: &str) -> String {
    name.replace('=', "=3D").replace(',', "=2C")
}

/// The server's end, after its first message.
#[derive(Clone, Debug)]
pub struct ServerSide {
    mechanism: Mechanism,
    /// All with the same salt and rounds: a key that is being replaced is there twice.
    credentials: Vec<Credential>,
    nonce: String,
    header: String,
    signed: String,
}

impl ServerSide {
    /// Answers a first message with the second. `credentials` have one salt and one number of rounds.
    pub fn begin(
        first: ClientFirst,
        mechanism: Mechanism,
        credentials: Vec<Credential>,
    ) -> (ServerSide, String) {
        ServerSide::begin_with(first, mechanism, credentials, &base64(&random(24)))
    }
    fn begin_with(
        first: ClientFirst,
        mechanism: Mechanism,
        credentials: Vec<Credential>,
        own_nonce: &str,
    ) -> (ServerSide, String) {
        let nonce = format!("{}{own_nonce}", first.nonce);
        let (salt, rounds) = credentials.first().map_or((&[][..], 1), |c| (&c.salt[..], c.rounds));
        let message = format!("r={nonce},s={},i={rounds}", base64(salt));
        let signed = format!("{},{message}", first.bare);
        (ServerSide { mechanism, credentials, nonce, header: first.header, signed }, message)
    }

    /// Answers the third message: `v=...` if its proof fits.
    ///
    /// # Errors
    /// A message of another form, another nonce, a wrong proof.
    pub fn finish(&self, payload: &[u8]) -> Result<String, Refused> {
        let text = std::str::from_utf8(payload).map_err(|_| "the last message is not UTF-8")?;
        let (without_proof, proof) = text.rsplit_once(",p=").ok_or("the proof is missing")?;
        let mut fields = without_proof.split(',');
        let binding =
            fields.next().and_then(|f| f.strip_prefix("c=")).ok_or("the channel binding is missing")?;
        let nonce = fields.next().and_then(|f| f.strip_prefix("r=")).ok_or("the nonce is missing")?;
        if binding != self.header {
            return Err("the channel binding is not that of the first message");
        }
        if nonce != self.nonce {
            return Err("the nonce is not the conversation's");
        }
        let proof = from_base64(proof).ok_or("the proof is not base64")?;
        let signed = format!("{},{without_proof}", self.signed);
        for credential in &self.credentials {
            if fits(self.mechanism, credential, &proof, &signed) {
                let signature = self.mechanism.hmac(&credential.server_key, signed.as_bytes());
                return Ok(format!("v={}", base64(&signature)));
            }
        }
        Err("the proof does not fit the stored key")
    }
}

fn fits(mechanism: Mechanism, credential: &Credential, proof: &[u8], signed: &str) -> bool {
    let signature = mechanism.hmac(&credential.stored_key, signed.as_bytes());
    if proof.len() != signature.len() {
        return false;
    }
    let client_key: Vec<u8> = proof.iter().zip(&signature).map(|(a, b)| a ^ b).collect();
    mechanism.hash(&client_key).ct_eq(&credential.stored_key).into()
}

/// A client's end.
#[derive(Debug)]
pub struct ClientSide {
    mechanism: Mechanism,
    nonce: String,
    bare: String,
    signature: Vec<u8>,
}

impl ClientSide {
    /// The conversation and its first message.
    pub fn begin(mechanism: Mechanism, user: &str) -> (ClientSide, String) {
        ClientSide::begin_with(mechanism, user, &base64(&random(24)))
    }
    fn begin_with(mechanism: Mechanism, user: &str, nonce: &str) -> (ClientSide, String) {
        let bare = format!("n={},r={nonce}", escape(user));
        let message = format!("n,,{bare}");
        (ClientSide { mechanism, nonce: nonce.to_string(), bare, signature: Vec::new() }, message)
    }
    /// Answers the server's first message. `salted` stretches: (salt, rounds) to the salted password.
    ///
    /// # Errors
    /// A message that no honest server sends.
    pub fn prove(
        &mut self,
        payload: &[u8],
        salted: impl FnOnce(Mechanism, &[u8], u32) -> Vec<u8>,
    ) -> Result<String, Refused> {
        let text = std::str::from_utf8(payload).map_err(|_| "the server's first message is not UTF-8")?;
        let field = |name: &str| text.split(',').find_map(|f| f.strip_prefix(name));
        let (Some(nonce), Some(salt), Some(rounds)) = (field("r="), field("s="), field("i=")) else {
            return Err("the server's first message has another form");
        };
        if !nonce.starts_with(&self.nonce) || nonce.len() == self.nonce.len() {
            return Err("the server's nonce does not continue the client's");
        }
        let salt = from_base64(salt).ok_or("the salt is not base64")?;
        let rounds = rounds.parse().ok().filter(|n| (ROUNDS_MIN..=ROUNDS_MAX).contains(n));
        let rounds = rounds.ok_or("the number of rounds is out of bounds")?;
        let salted = salted(self.mechanism, &salt, rounds);
        let client_key = self.mechanism.hmac(&salted, b"Client Key");
        let credential = Credential::of_salted(self.mechanism, &salted, salt, rounds);
        let without_proof = format!("c=biws,r={nonce}");
        let signed = format!("{},{text},{without_proof}", self.bare);
        let signature = self.mechanism.hmac(&credential.stored_key, signed.as_bytes());
        let proof: Vec<u8> = client_key.iter().zip(&signature).map(|(a, b)| a ^ b).collect();
        self.signature = self.mechanism.hmac(&credential.server_key, signed.as_bytes());
        Ok(format!("{without_proof},p={}", base64(&proof)))
    }
    /// Whether the server knows the password too.
    pub fn is_signed(&self, payload: &[u8]) -> bool {
        let given =
            std::str::from_utf8(payload).ok().and_then(|t| t.strip_prefix("v=")).and_then(from_base64);
        given.is_some_and(|given| !self.signature.is_empty() && bool::from(given.ct_eq(&self.signature)))
    }
}

/// The salted password.
pub fn salted(mechanism: Mechanism, secret: &[u8], salt: &[u8], rounds: u32) -> Vec<u8> {
    mechanism.stretch(secret, salt, rounds)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Vector {
        mechanism: Mechanism,
        rounds: u32,
        salt: Vec<u8>,
        nonces: (&'static str, &'static str),
        stored: Option<(&'static str, &'static str)>,
        proof: &'static str,
        signature: &'static str,
        plain: bool,
    }

    fn vectors() -> [Vector; 4] {
        let bytes = |n: u8| (0..n).collect::<Vec<u8>>();
        [
            // RFC 5802, section 5: with the password itself, not MongoDB's digest.
            Vector {
                mechanism: Mechanism::Sha1,
                rounds: 4096,
                salt: from_base64("QSXCR+Q6sek8bf92").unwrap(),
                nonces: ("fyko+d2lbbFgONRv9qkxdawL", "3rfcNHYJY1ZVvWVs7j"),
                stored: None,
                proof: "v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
                signature: "rmF9pqV8S7suAoZWja4dJRkFsKQ=",
                plain: true,
            },
            // RFC 7677, section 3.
            Vector {
                mechanism: Mechanism::Sha256,
                rounds: 4096,
                salt: from_base64("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap(),
                nonces: ("rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"),
                stored: None,
                proof: "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
                signature: "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
                plain: true,
            },
            Vector {
                mechanism: Mechanism::Sha1,
                rounds: 10000,
                salt: bytes(16),
                nonces: ("abcdefghijklmnop", "ABCDEFGHIJKLMNOP"),
                stored: Some(("zA4YK81qMkHG7YzinWOF3n9T9ec=", "DywqQj4B1Ch5MU2PjvT00Qu6EjU=")),
                proof: "FkPYAZLWqg0+d1Qg9itR5NYKG1M=",
                signature: "tLzvKMP2F/SIUjBfdsbrulfWSIA=",
                plain: false,
            },
            Vector {
                mechanism: Mechanism::Sha256,
                rounds: 15000,
                salt: bytes(28),
                nonces: ("abcdefghijklmnop", "ABCDEFGHIJKLMNOP"),
                stored: Some((
                    "nZbtY9VzVP9yYKIVwzBEMz4ZaM7isQFV5bLB3Gbk7qU=",
                    "TUlTs98yxOG0rskHccVTbZOKJm4PWRjsAz7F1H6Rgyg=",
                )),
                proof: "tkPrvcOi8m/QAQEKjtAWNt+VHwzmH/6QmS6Ttt7Kmyc=",
                signature: "p6E279KVREZWUJOTTsu+1wWBoHp4BFatcdSqGsny34k=",
                plain: false,
            },
        ]
    }

    #[test]
    fn both_ends_agree_with_the_published_exchanges() {
        for v in vectors() {
            let secret = match v.plain {
                true => b"pencil".to_vec(),
                false => super::secret(v.mechanism, "user", "pencil").unwrap(),
            };
            let credential = Credential::derive(v.mechanism, &secret, v.salt.clone(), v.rounds);
            if let Some((stored, server)) = v.stored {
                assert_eq!(base64(&credential.stored_key), stored);
                assert_eq!(base64(&credential.server_key), server);
            }
            let (mut client, first) = ClientSide::begin_with(v.mechanism, "user", v.nonces.0);
            let first = ClientFirst::parse(first.as_bytes()).unwrap();
            let (server, second) = ServerSide::begin_with(first, v.mechanism, vec![credential], v.nonces.1);
            let third = client.prove(second.as_bytes(), |m, salt, rounds| salted(m, &secret, salt, rounds));
            let third = third.unwrap();
            assert!(third.ends_with(&format!(",p={}", v.proof)), "{third}");
            let last = server.finish(third.as_bytes()).unwrap();
            assert_eq!(last, format!("v={}", v.signature));
            assert!(client.is_signed(last.as_bytes()) && !client.is_signed(b"v=AAAA"));
        }
    }

    #[test]
    fn the_digest_is_that_of_older_servers() {
        assert_eq!(digest("user", "pencil"), "1c33006ec1ffd90f9cadcbcc0e118200");
    }

    #[test]
    fn passwords_are_prepared_for_sha_256_only() {
        // U+00AA is compared as an "a", U+00AD not at all; a control character may not stand there.
        assert_eq!(secret(Mechanism::Sha256, "u", "\u{AA}\u{AD}b").unwrap(), b"ab");
        assert!(secret(Mechanism::Sha256, "u", "\u{7}").is_err());
        assert!(secret(Mechanism::Sha1, "u", "\u{7}").is_ok());
    }

    fn conversation() -> (ServerSide, String) {
        let secret = secret(Mechanism::Sha256, "user", "pencil").unwrap();
        let credential = Credential::derive(Mechanism::Sha256, &secret, vec![1; 28], 4096);
        let (mut client, first) = ClientSide::begin(Mechanism::Sha256, "user");
        let first = ClientFirst::parse(first.as_bytes()).unwrap();
        let (server, second) = ServerSide::begin(first, Mechanism::Sha256, vec![credential]);
        let third =
            client.prove(second.as_bytes(), |m, salt, rounds| salted(m, &secret, salt, rounds)).unwrap();
        (server, third)
    }

    #[test]
    fn what_was_said_in_one_conversation_is_worth_nothing_in_another() {
        let (server, third) = conversation();
        assert!(server.finish(third.as_bytes()).is_ok());
        let (other, _) = conversation();
        assert!(other.finish(third.as_bytes()).is_err());
        for changed in [
            third.replace("c=biws", "c=eSws"),
            third.replacen("r=", "r=x", 1),
            third[..third.len() - 4].to_string(),
            third.replace(",p=", ",q="),
            String::new(),
        ] {
            assert!(server.finish(changed.as_bytes()).is_err(), "{changed}");
        }
    }

    #[test]
    fn first_messages_of_another_form_are_refused() {
        for bad in [
            "",
            "n",
            "n,,",
            "p=tls-unique,,n=user,r=nonce",
            "n,,n=,r=nonce",
            "n,,n=user,r=abc",
            "n,,r=nonce,n=user",
            "n,a=other,n=user,r=nonce",
            "n,,m=x,n=user,r=nonce",
            "n,,n=us=er,r=nonce",
            "n,,n=user=2,r=nonce",
        ] {
            assert!(ClientFirst::parse(bad.as_bytes()).is_err(), "{bad}");
        }
        let first = ClientFirst::parse(b"y,a=us=2Cer=3D,n=us=2Cer=3D,r=nonce,x=more").unwrap();
        assert_eq!(first.user, "us,er=");
    }

    #[test]
    fn a_user_that_is_not_there_has_the_same_salt_each_time() {
        let one = Credential::pretended(Mechanism::Sha256, b"key", "nobody", 15000);
        let two = Credential::pretended(Mechanism::Sha256, b"key", "nobody", 15000);
        let other = Credential::pretended(Mechanism::Sha256, b"key", "other", 15000);
        assert_eq!((one.salt.len(), one.salt == two.salt, one.salt == other.salt), (28, true, false));
        assert_ne!(one.stored_key, two.stored_key);
    }

    #[test]
    fn stored_documents_are_read_back_and_damaged_ones_are_not() {
        let credential = Credential::derive(Mechanism::Sha1, b"x", vec![7; 16], 5000);
        let d = credential.to_document();
        assert_eq!(Credential::of_document(Mechanism::Sha1, &d), Some(credential));
        assert_eq!(Credential::of_document(Mechanism::Sha256, &d), None);
        for name in ["iterationCount", "salt", "storedKey", "serverKey"] {
            let mut broken = d.clone();
            broken.insert(name, "?");
            assert_eq!(Credential::of_document(Mechanism::Sha1, &broken), None, "{name}");
        }
    }
}
