//! SCRAM, the part that needs digests; the conversation itself is the kernel's.

use crate::errors;
use crate::hashing::{hmac, md5_hex};
use document::encoding::base64;
use rquickjs::{Ctx, Object, Result};
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// `scramMessage(mechanism, user, password, clientFirstBare, serverFirst)`: the client's final message, and the
/// signature `v=...` the server must answer with.
pub(super) fn scram_message<'js>(
    ctx: Ctx<'js>,
    mechanism: String,
    user: String,
    password: String,
    first: String,
    answer: String,
) -> Result<Object<'js>> {
    let part = |name: &str| answer.split(',').find_map(|p| p.strip_prefix(name));
    let (Some(nonce), Some(salt), Some(rounds)) = (part("r="), part("s="), part("i=")) else {
        return Err(errors::throw(&ctx, &format!("not a SCRAM challenge: {answer}")));
    };
    let salt = document::encoding::from_base64(salt).unwrap_or_default();
    let rounds = rounds.parse::<u32>().unwrap_or(0).clamp(1, 1_000_000);
    let without_proof = format!("c=biws,r={nonce}");
    let signed = format!("{first},{answer},{without_proof}");
    let (proof, signature) = match mechanism.as_str() {
        "SCRAM-SHA-1" => {
            let digest = md5_hex(&format!("{user}:mongo:{password}"));
            prove::<Sha1>(digest.as_bytes(), &salt, rounds, &signed)
        }
        _ => prove::<Sha256>(password.as_bytes(), &salt, rounds, &signed),
    };
    let made = Object::new(ctx)?;
    made.set("message", format!("{without_proof},p={}", base64(&proof)))?;
    made.set("signature", format!("v={}", base64(&signature)))?;
    Ok(made)
}

/// The client's proof and the server's signature of RFC 5802.
fn prove<D: Digest>(secret: &[u8], salt: &[u8], rounds: u32, signed: &str) -> (Vec<u8>, Vec<u8>) {
    let salted = stretch::<D>(secret, salt, rounds);
    let client_key = hmac::<D>(&salted, b"Client Key");
    let stored_key = D::digest(&client_key);
    let client_signature = hmac::<D>(&stored_key, signed.as_bytes());
    let proof = client_key.iter().zip(&client_signature).map(|(a, b)| a ^ b).collect();
    let server_key = hmac::<D>(&salted, b"Server Key");
    (proof, hmac::<D>(&server_key, signed.as_bytes()))
}

fn stretch<D: Digest>(secret: &[u8], salt: &[u8], rounds: u32) -> Vec<u8> {
    let mut block = hmac::<D>(secret, &[salt, &[0, 0, 0, 1]].concat());
    let mut sum = block.clone();
    for _ in 1..rounds {
        block = hmac::<D>(secret, &block);
        sum.iter_mut().zip(&block).for_each(|(a, b)| *a ^= b);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The exchange of RFC 7677, section 3.
    #[test]
    fn proof_of_the_standards_example() {
        let first = "n=user,r=rOprNGfwEbeRWgbNEkqO";
        let nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let answer = format!("r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096");
        let signed = format!("{first},{answer},c=biws,r={nonce}");
        let salt = document::encoding::from_base64("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let (proof, signature) = prove::<Sha256>(b"pencil", &salt, 4096, &signed);
        assert_eq!(base64(&proof), "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=");
        assert_eq!(base64(&signature), "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
    }
}
