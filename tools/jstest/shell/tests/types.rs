//! Constructors, with and without `new`, and what instances answer.

use super::passes;

#[test]
fn object_ids_are_made_parsed_and_shown() {
    passes(
        r#"
        const text = "0123456789abcdef01234567", id = ObjectId(text);
        same(id.str, text);
        same(id.toString(), 'ObjectId("' + text + '")');
        same(JSON.stringify(id), '{"$oid":"' + text + '"}');
        same(id.valueOf(), text);
        same(id instanceof ObjectId, true);
        same(new ObjectId(text).equals(id), true);
        same(id.getTimestamp().getTime(), 0x01234567 * 1000);
        same(ObjectId().str === ObjectId().str, false);
        same(Math.abs(ObjectId().getTimestamp() - Date.now()) < 5000, true);
        same(Object.keys(id).length, 0);
        "#,
    );
}

#[test]
fn binary_data_keeps_subtype_and_bytes() {
    passes(
        r#"
        const data = BinData(0, "/wA=");
        same(data.type, 0);
        same(data.len, 2);
        same(data.subtype(), 0);
        same(data.length(), 2);
        same(data.hex(), "ff00");
        same(data.base64(), "/wA=");
        same(data.toString(), 'BinData(0,"/wA=")');
        same(JSON.stringify(data), '{"$binary":"/wA=","$type":"00"}');
        same(HexData(0, "FF00").base64(), "/wA=");
        same(MD5("d41d8cd98f00b204e9800998ecf8427e").type, 5);
        same(BinData(128, "").len, 0);
        same(data instanceof BinData && UUID() instanceof BinData, true);
        "#,
    );
}

#[test]
fn uuids_are_binary_data_with_a_text_of_their_own() {
    passes(
        r#"
        const text = "0a0b0c0d-0102-4304-8506-07080900ff10";
        same(UUID(text).toString(), 'UUID("' + text + '")');
        same(UUID(text.replaceAll("-", "")).hex(), text.replaceAll("-", ""));
        same(UUID(text).type, 4);
        same(UUID().hex() === UUID().hex(), false);
        same(UUID().hex()[12], "4");
        same(bsonBinaryEqual({u: UUID(text)}, {u: HexData(4, UUID(text).hex())}), true);
        "#,
    );
}

#[test]
fn timestamps_have_own_seconds_and_increment() {
    passes(
        r#"
        const stamp = new Timestamp(4294967295, 7);
        same(stamp.t, 4294967295);
        same(stamp.i, 7);
        same(stamp.getTime(), 4294967295);
        same(stamp.getInc(), 7);
        same(Object.keys(stamp).join(), "t,i");
        same(String(Timestamp()), "Timestamp(0, 0)");
        same(JSON.stringify(Timestamp(1, 2)), '{"$timestamp":{"t":1,"i":2}}');
        same(bsonWoCompare({t: stamp}, {t: Timestamp(4294967295, 8)}), -1);
        "#,
    );
}

#[test]
fn smallest_and_largest_keys_are_values_and_can_be_called() {
    passes(
        r#"
        same(MinKey(), MinKey);
        same(new MaxKey(), MaxKey);
        same(MinKey instanceof MinKey, true);
        same(MinKey instanceof MaxKey, false);
        same(({}) instanceof MinKey, false);
        same(JSON.stringify([MinKey, MaxKey]), '[{"$minKey":1},{"$maxKey":1}]');
        same(MinKey.tojson(), '{ "$minKey" : 1 }');
        same(bsonWoCompare({a: MinKey}, {a: null}), -1);
        same(bsonWoCompare({a: MaxKey()}, {a: new Date()}), 1);
        same(bsonObjToArray({a: MinKey})[0], MinKey);
        "#,
    );
}

#[test]
fn references_pointers_and_code_show_their_parts() {
    passes(
        r#"
        const id = ObjectId("0123456789abcdef01234567");
        const ref = new DBRef("c", id, "d");
        same([ref.$ref, ref.$db, ref.$id === id].join(), "c,d,true");
        same(Object.keys(DBRef("c", 1)).join(), "$ref,$id");
        same(bsonObjToArray({r: ref})[0] instanceof DBRef, true);
        const pointer = DBPointer("a.b", id);
        same(pointer.ns + pointer.id.str, "a.b" + id.str);
        same(bsonObjToArray({p: pointer})[0].id.str, id.str);
        const code = Code("return x", {x: 1});
        same(code.code + code.scope.x, "return x1");
        same(bsonObjToArray({c: code})[0].scope.x, 1);
        same(bsonObjToArray({f: function() { return 1; }})[0].code, "function() { return 1; }");
        same(bsonObjToArray({c: Code("x")})[0] instanceof Code, true);
        "#,
    );
}

#[test]
fn values_survive_the_way_through_a_document() {
    passes(
        r#"
        const sent = {
            s: "h\u00e9 \u{1F600}", e: "", d: new Date(1234567890123), n: null, u: undefined, t: true,
            r: /a\/b+/im, i: NumberInt(-7), l: NumberLong("-9223372036854775808"), f: -0.5, big: 1e300, z: -0,
            x: NumberDecimal("1.50"), a: [1, [2], {k: 3}], o: {p: {q: []}}, __proto__x: 1,
        };
        const back = bsonObjToArray({o: sent})[0];
        same(bsonBinaryEqual(sent, back), true);
        same(Object.keys(back).join(), Object.keys(sent).join());
        same(back.s, sent.s);
        same(back.d instanceof Date && back.d.getTime(), 1234567890123);
        same(String(back.r), "/a\\/b+/im");
        same(back.l.toString(), 'NumberLong("-9223372036854775808")');
        same(Array.isArray(back.a) && back.a[1][0], 2);
        same("u" in back && back.u, undefined);
        same(back.z, -0);
        "#,
    );
}

#[test]
fn what_javascript_cannot_say_of_a_pattern_is_kept() {
    passes(
        r#"
        const odd = bsonObjToArray({r: /a/})[0];
        same(String(odd), "/a/");
        same(bsonBinaryEqual({r: new RegExp("")}, {r: bsonObjToArray({r: new RegExp("")})[0]}), true);
        "#,
    );
}

#[test]
fn a_field_called_proto_is_a_field() {
    passes(
        r#"
        const object = JSON.parse('{"__proto__": {"x": 1}}');
        const back = bsonObjToArray({o: object})[0];
        same(Object.keys(back).join(), "__proto__");
        same(Object.getPrototypeOf(back), Object.prototype);
        same(back.x, undefined);
        "#,
    );
}
