//! Bad arguments, and what a test may do to the shell without ending it.

use super::passes;

#[test]
fn constructors_refuse_what_they_cannot_read() {
    passes(
        r#"
        fails(() => ObjectId("zz"), "invalid object id: length");
        fails(() => ObjectId("zz23456789abcdef01234567"), "invalid object id: not hex");
        fails(() => NumberLong("9223372036854775808"), "could not convert string to long long", 9);
        fails(() => NumberLong(""), "could not convert string to long long");
        fails(() => NumberLong({}), "number");
        fails(() => NumberLong(1, 2, 3, 4), "NumberLong needs 0, 1 or 3 arguments");
        fails(() => NumberLong(1).compare(1), "NumberLong");
        fails(() => NumberInt("x"), "x");
        fails(() => NumberDecimal("spam"), "spam");
        fails(() => Timestamp(1), "Timestamp needs 0 or 2 arguments");
        fails(() => Timestamp("1", 2), "Timestamp time must be a number");
        fails(() => Timestamp(1, -1), "must be non-negative and not greater than 4294967295");
        fails(() => Timestamp(4294967296, 1), "must be non-negative and not greater than 4294967295");
        fails(() => BinData(0), "BinData takes 2 arguments");
        fails(() => BinData(256, ""), "must be between 0 and 255");
        fails(() => BinData(0, "a"), "base64");
        fails(() => HexData(0, "abc"), "hex");
        fails(() => MD5("abc"), "MD5 string must have 32 characters");
        fails(() => UUID("abc"), "Invalid UUID string");
        fails(() => DBRef("a"), "DBRef needs 2 or 3 arguments");
        fails(() => DBPointer("a", 1), "ObjectId");
        fails(() => Code("x", 1), "scope must be an object");
        "#,
    );
}

#[test]
fn comparisons_refuse_what_is_no_document() {
    passes(
        r#"
        fails(() => bsonWoCompare({}), "bsonWoCompare needs 2 arguments");
        fails(() => bsonWoCompare(1, {}), "first argument to bsonWoCompare must be an object");
        fails(() => bsonBinaryEqual({}, "x"), "second argument to bsonBinaryEqual must be an object");
        fails(() => Object.bsonsize(3), "argument to bsonsize has to be an object");
        fails(() => Object.bsonsize(), "bsonsize needs 1 argument");
        "#,
    );
}

#[test]
fn an_object_within_itself_is_an_error() {
    passes(
        r#"
        const cycle = {};
        cycle.again = {and: [cycle]};
        fails(() => Object.bsonsize(cycle), "Exceeded depth limit of", 17279);
        let deep = {};
        for (let i = 0; i < 100000; i++) { deep = {deep}; }
        fails(() => Object.bsonsize(deep), "Exceeded depth limit of");
        "#,
    );
}

#[test]
fn what_bson_has_no_place_for_is_an_error() {
    passes(
        r#"
        fails(() => Object.bsonsize({a: Symbol("x")}), "unable to convert JavaScript property to mongo element a");
        fails(() => Object.bsonsize({a: 1n}), "unable to convert JavaScript property to mongo element a");
        fails(() => Object.bsonsize({"a\0b": 1}), "null char");
        fails(() => Object.bsonsize({get a() { throw new Error("getter"); }}), "getter");
        "#,
    );
}

#[test]
fn recursion_without_end_is_an_error_of_the_script() {
    passes(
        r#"
        function dive() { return dive() + 1; }
        fails(dive, "call stack");
        fails(() => [1].map(function again() { return [1].map(again); }), "call stack");
        same("ab\ud800".length, 3);
        same(Object.bsonsize({s: "\ud800"}), 5 + 3 + 4 + 3 + 1);
        "#,
    );
}

#[test]
fn methods_refuse_foreign_receivers() {
    passes(
        r#"
        fails(() => NumberLong.prototype.toNumber.call({}), "receiver");
        fails(() => BinData.prototype.hex.call(NumberLong(1)), "BinData");
        fails(() => Mongo.prototype.runCommand.call({}, "a", {}), "Mongo");
        "#,
    );
}

#[test]
fn documents_without_end_stop_at_the_size_of_a_buffer() {
    passes(
        r#"
        const holes = [];
        holes.length = 4294967295;
        fails(() => Object.bsonsize({holes}), "past the 64MB limit", 13548);
        const long = "x".repeat(2 ** 26);
        fails(() => Object.bsonsize({long}), "past the 64MB limit", 13548);
        fails(() => Object.bsonsize({a: [[long]]}), "past the 64MB limit", 13548);
        same(Object.bsonsize({long: long.slice(1000)}) > 60e6, true);
        "#,
    );
}

#[test]
fn proxies_and_revoked_proxies_are_objects_or_errors() {
    passes(
        r#"
        same(Object.bsonsize(new Proxy({a: 1}, {})), 16);
        same(Object.bsonsize({a: new Proxy([1], {})}), Object.bsonsize({a: [1]}));
        const gone = Proxy.revocable({}, {});
        gone.revoke();
        fails(() => Object.bsonsize(gone.proxy), "revoked");
        "#,
    );
}

#[test]
fn a_panic_of_a_native_is_no_exception_of_the_script() {
    use crate::{Engine, Options, Shared};
    let work = || {
        let options = Options { nodb: true, ..Options::default() };
        let shared = Shared::new(Box::new(std::io::sink()));
        let engine = Engine::new(options.into(), shared.into()).unwrap();
        engine
            .with(|ctx, _| {
                let native =
                    rquickjs::Function::new(ctx.clone(), || -> i32 { panic!("a defect, for a test") })?;
                ctx.globals().set("native", native)?;
                crate::modules::run_eval(ctx, engine.shell(), "native()")
            })
            .is_err()
    };
    let worker = std::thread::Builder::new().stack_size(crate::STACK_BYTES).spawn(work).unwrap();
    assert!(worker.join().is_err());
}
