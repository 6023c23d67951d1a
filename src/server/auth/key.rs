//! The key of a cluster: its members log in with it, as `__system@local`, at one another.
//!
//! A key file holds one key, or a YAML sequence of up to two while one replaces the other: each member then accepts both.
//! `tessera up` makes a key for itself, so that internal commands are refused to everybody else even without `--auth`.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use wire::client::Credentials;
use wire::scram::{Credential, Mechanism, secret};

const KEYS_MAX: usize = 2;
const LENGTH: std::ops::RangeInclusive<usize> = 6..=1024;
/// Rounds of stretching a key that people have chosen; of a made one, whose bits cannot be guessed, the fewest that RFC 5802
/// allows, so that a cluster starts soon.
const ROUNDS_CHOSEN: [u32; 2] = [10_000, 15_000];
const ROUNDS_MADE: [u32; 2] = [4096, 4096];

pub struct ClusterKey {
    keys: Vec<String>,
    rounds: [u32; 2],
    /// What proofs are checked against, for each of [`Mechanism::BOTH`]; made when first asked for.
    derived: [OnceLock<Vec<Credential>>; 2],
    credentials: Arc<Credentials>,
}

impl ClusterKey {
    pub fn new(keys: Vec<String>) -> Arc<ClusterKey> {
        ClusterKey::with_rounds(keys, ROUNDS_CHOSEN)
    }
    fn with_rounds(keys: Vec<String>, rounds: [u32; 2]) -> Arc<ClusterKey> {
        let credentials = Arc::new(Credentials::new("__system", "local", keys.clone()));
        Arc::new(ClusterKey { keys, rounds, derived: Default::default(), credentials })
    }
    /// A key that nobody else knows.
    pub fn generate() -> Arc<ClusterKey> {
        let key = document::encoding::base64(&runtime::random::<[u8; 32]>());
        ClusterKey::with_rounds(vec![key], ROUNDS_MADE)
    }
    /// Reads a key file.
    ///
    /// # Errors
    /// A file that others may read, that is none, or whose keys have other characters than base64 or another length.
    pub fn load(path: &Path) -> Result<Arc<ClusterKey>, String> {
        let shown = path.display();
        let metadata = std::fs::metadata(path).map_err(|e| format!("Error reading file {shown}: {e}"))?;
        if metadata.permissions().mode() & 0o077 != 0 {
            return Err(format!("permissions on {shown} are too open"));
        }
        let text = std::fs::read_to_string(path).map_err(|e| format!("Error reading file {shown}: {e}"))?;
        Ok(ClusterKey::new(parse(&text).map_err(|why| format!("{why} in {shown}"))?))
    }
    /// What the members log in with.
    pub fn credentials(&self) -> Arc<Credentials> {
        self.credentials.clone()
    }
    /// What a member's proof is checked against.
    pub fn stored(&self, mechanism: Mechanism) -> Vec<Credential> {
        let at = mechanism as usize;
        self.derived[at].get_or_init(|| self.derive(mechanism, self.rounds[at])).clone()
    }
    /// Bytes that all who know the key can make, for this purpose only. While keys are replaced one of them decides.
    pub fn secret_for(&self, purpose: &str) -> [u8; 32] {
        let key = self.keys.iter().min().map_or(&[][..], |key| key.as_bytes());
        let made = Mechanism::Sha256.hmac(key, purpose.as_bytes());
        made.try_into().unwrap_or_default()
    }
    fn derive(&self, mechanism: Mechanism, rounds: u32) -> Vec<Credential> {
        let bytes: [u8; 28] = runtime::random();
        let salt = &bytes[..mechanism.salt_length()];
        let secrets = self.keys.iter().filter_map(|key| secret(mechanism, "__system", key).ok());
        secrets.map(|secret| Credential::derive(mechanism, &secret, salt.to_vec(), rounds)).collect()
    }
}

/// The keys of a file: base64 characters, white space is of no account.
fn parse(text: &str) -> Result<Vec<String>, String> {
    let listed =
        text.lines().map(str::trim_start).any(|line| line.starts_with("- ") || line.starts_with('['));
    let keys: Vec<String> = match listed {
        true => serde_saphyr::from_str(text).map_err(|_| "Unexpected type of YAML".to_string())?,
        false => vec![text.to_string()],
    };
    let keys: Vec<String> =
        keys.iter().map(|key| key.chars().filter(|c| !c.is_whitespace()).collect()).collect();
    if keys.is_empty() || keys.len() > KEYS_MAX {
        return Err(format!("A key file must have one or two keys, found {}", keys.len()));
    }
    for key in &keys {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=');
        if let Some(c) = key.chars().find(|c| !fits(*c)) {
            return Err(format!("invalid char in key file: {c}"));
        }
        if !LENGTH.contains(&key.len()) {
            return Err(format!(
                "security key has length {}, it must be between {} and {} chars",
                key.len(),
                LENGTH.start(),
                LENGTH.end()
            ));
        }
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_hold_one_key_or_a_list_of_two() {
        assert_eq!(parse("abc\n def=\n").unwrap(), ["abcdef="]);
        assert_eq!(parse("- abcdef\n- \"ghijkl\"\n").unwrap(), ["abcdef", "ghijkl"]);
        assert_eq!(parse("[abcdef, ghijkl]").unwrap(), ["abcdef", "ghijkl"]);
        for bad in ["", "abc", "abcdef!", "- abcdef\n- ghijkl\n- mnopqr", &"x".repeat(1025), "a: b"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_file_that_others_may_read_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        std::fs::write(&path, "abcdef").unwrap();
        for (mode, taken) in [(0o600, true), (0o400, true), (0o644, false)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(ClusterKey::load(&path).is_ok(), taken, "{mode:o}");
        }
    }

    #[test]
    fn both_keys_have_one_salt() {
        let stored = ClusterKey::new(vec!["abcdef".into(), "ghijkl".into()]).stored(Mechanism::Sha256);
        assert_eq!((stored.len(), stored[0].salt == stored[1].salt), (2, true));
        assert_ne!(stored[0].stored_key, stored[1].stored_key);
    }
}
