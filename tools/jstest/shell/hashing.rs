//! Digests, and the hash of hashed shard keys.

use crate::natives::define;
use crate::{Shell, bson, errors};
use document::encoding::hex;
use document::{Binary, Doc, Value as Bson, ValueRef, codes};
use md5::{Digest, Md5};
use rquickjs::{Ctx, Result, Value};
pub use script::md5_hex;
use sha2::Sha256;
use std::rc::Rc;

/// The block of SHA-1 and of SHA-256, to which an HMAC fills up its key.
const BLOCK_BYTES: usize = 64;

pub fn register<'js>(ctx: &Ctx<'js>, _shell: &Rc<Shell>) -> Result<()> {
    define(ctx, "hex_md5", |text: String| md5_hex(&text))?;
    define(ctx, "md5sumFile", |ctx: Ctx<'_>, path: String| md5_of_file(&ctx, &path))?;
    define(ctx, "computeSHA256Block", |ctx: Ctx<'js>, data: Value<'js>| {
        let data = bytes_of(&ctx, &data, "computeSHA256Block")?;
        binary(&ctx, Sha256::digest(&data).to_vec())
    })?;
    define(ctx, "computeSHA256Hmac", |ctx: Ctx<'js>, key: Value<'js>, data: Value<'js>| {
        let key = bytes_of(&ctx, &key, "computeSHA256Hmac")?;
        let data = bytes_of(&ctx, &data, "computeSHA256Hmac")?;
        binary(&ctx, hmac::<Sha256>(&key, &data))
    })?;
    define(ctx, "convertShardKeyToHashed", |ctx: Ctx<'js>, key: Value<'js>| shard_key_hash(&ctx, &key))
}

fn md5_of_file(ctx: &Ctx<'_>, path: &str) -> Result<String> {
    let failed = |error: std::io::Error| errors::throw(ctx, &format!("couldn't open file {path}: {error}"));
    let mut file = std::fs::File::open(path).map_err(failed)?;
    let mut digest = Md5::new();
    let mut block = vec![0; 1 << 16];
    loop {
        match std::io::Read::read(&mut file, &mut block).map_err(failed)? {
            0 => return Ok(hex(&digest.finalize())),
            length => digest.update(&block[..length]),
        }
    }
}

/// The bytes of a BinData, or of a string in UTF-8.
fn bytes_of<'js>(ctx: &Ctx<'js>, value: &Value<'js>, native: &str) -> Result<Vec<u8>> {
    let holder = bson::value_to_bson(ctx, value)?;
    match first(&holder) {
        Some(ValueRef::String(text)) => Ok(text.as_bytes().to_vec()),
        Some(ValueRef::Binary(_, bytes)) => Ok(bytes.to_vec()),
        _ => Err(errors::throw_code(ctx, codes::BAD_VALUE, &format!("{native} needs a string or a BinData"))),
    }
}

fn first(holder: &[u8]) -> Option<ValueRef<'_>> {
    Doc::from_validated(holder).into_iter().next().map(|element| element.value())
}

/// A BinData of the generic subtype.
fn binary<'js>(ctx: &Ctx<'js>, bytes: Vec<u8>) -> Result<Value<'js>> {
    into_js(ctx, &Bson::Binary(Binary { subtype: 0, bytes }))
}

fn into_js<'js>(ctx: &Ctx<'js>, value: &Bson) -> Result<Value<'js>> {
    bson::value_from_bson(ctx, value.to_holder().bytes().into())
}

/// HMAC as RFC 2104 has it, with a digest whose block is `BLOCK_BYTES` long.
pub fn hmac<D: Digest>(key: &[u8], data: &[u8]) -> Vec<u8> {
    let mut block = if key.len() > BLOCK_BYTES { D::digest(key).to_vec() } else { key.to_vec() };
    block.resize(BLOCK_BYTES, 0);
    let pad = |with: u8| block.iter().map(|byte| byte ^ with).collect::<Vec<u8>>();
    let inner = D::new().chain_update(pad(0x36)).chain_update(data).finalize();
    D::new().chain_update(pad(0x5C)).chain_update(inner).finalize().to_vec()
}

/// The hash that a hashed index has for `key`, as a NumberLong.
fn shard_key_hash<'js>(ctx: &Ctx<'js>, key: &Value<'js>) -> Result<Value<'js>> {
    let holder = bson::value_to_bson(ctx, key)?;
    let hash = first(&holder).map_or(0, document::hash::hash64);
    into_js(ctx, &Bson::Int64(hash))
}

#[cfg(test)]
mod tests {
    use super::{Sha256, hex, hmac};
    use crate::testing::run;

    /// RFC 4231, cases 2 and 6 (a key longer than a block).
    #[test]
    fn hmac_has_the_values_of_its_specification() {
        assert_eq!(
            hex(&hmac::<Sha256>(b"Jefe", b"what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        assert_eq!(
            hex(&hmac::<Sha256>(&[0xAA; 131], b"Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        );
    }

    #[test]
    fn digests_from_scripts() {
        run(r#"
            const eq = (a, b) => { if (String(a) !== b) throw Error(a + " is not " + b); };
            eq(hex_md5("hello"), "5d41402abc4b2a76b9719d911017c592");
            eq(hex_md5("ä"), "8419b71c87a225a2c70b50486fbee545");
            const abc = 'BinData(0,"ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=")';
            eq(computeSHA256Block("abc"), abc);
            eq(computeSHA256Block(BinData(0, "YWJj")), abc);
            eq(computeSHA256Hmac(BinData(0, "SmVmZQ=="), "what do ya want for nothing?"),
               'BinData(0,"W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM=")');
            let refused;
            try { computeSHA256Block(5); } catch (e) { refused = e.code; }
            eq(refused, "2");
            let absent;
            try { md5sumFile("/no/such/file"); } catch (e) { absent = e.message; }
            if (!absent.includes("/no/such/file")) throw Error(absent);
        "#)
        .unwrap();
    }

    /// The values are those that the real server's own tests have.
    #[test]
    fn shard_keys_hash_as_on_the_server() {
        run(r#"
            const eq = (a, b) => { if (String(a) !== b) throw Error(a + " is not " + b); };
            eq(convertShardKeyToHashed(42), 'NumberLong("-944302157085130861")');
            eq(convertShardKeyToHashed(NumberInt(42)), 'NumberLong("-944302157085130861")');
            eq(convertShardKeyToHashed(42.9), 'NumberLong("-944302157085130861")');
            eq(convertShardKeyToHashed("abc"), 'NumberLong("8478485326885698097")');
            eq(convertShardKeyToHashed(MinKey), 'NumberLong("7961148599568647290")');
            eq(convertShardKeyToHashed({}), 'NumberLong("7980500913326740417")');
            eq(convertShardKeyToHashed(["bar", "baz", "qux"]), 'NumberLong("-2938911267422831539")');
            eq(convertShardKeyToHashed({a: "abc", b: NumberLong(123)}), 'NumberLong("4771603801758380216")');
            eq(convertShardKeyToHashed(ObjectId("000000000000000000000000")), 'NumberLong("-4293118519463489418")');
        "#)
        .unwrap();
    }
}
