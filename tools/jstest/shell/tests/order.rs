//! Order: of fields in documents, and of documents.

use super::passes;

#[test]
fn names_like_numbers_keep_the_place_they_came_with() {
    passes(
        r#"
        const sent = _buildBsonObj("b", 1, "2", 2, "1", 3, "a", 4);
        const nested = bsonObjToArray({o: sent})[0];
        same(bsonBinaryEqual({o: nested}, {o: sent}), true);
        nested.c = 5;
        delete nested["2"];
        same(bsonBinaryEqual({o: nested}, {o: _buildBsonObj("b", 1, "1", 3, "a", 4, "c", 5)}), true);
        "#,
    );
}

#[test]
fn id_is_written_first_at_the_top_only() {
    passes(
        r#"
        same(bsonBinaryEqual({a: 1, _id: 2}, {_id: 2, a: 1}), true);
        same(bsonBinaryEqual({o: {a: 1, _id: 2}}, {o: {_id: 2, a: 1}}), false);
        "#,
    );
}

#[test]
fn comparisons_count_the_order_of_fields_unless_told() {
    passes(
        r#"
        same(bsonWoCompare({a: 1, b: 2}, {b: 2, a: 1}), -1);
        same(bsonUnorderedFieldsCompare({a: 1, b: {c: 1, d: 2}}, {b: {d: 2, c: 1}, a: 1}), 0);
        same(bsonUnorderedFieldsCompare({a: [1, 2]}, {a: [2, 1]}), -1);
        same(bsonBinaryEqual({a: 1}, {a: NumberInt(1)}), false);
        same(bsonWoCompare({a: 1}, {a: 1, b: 1}), -1);
        same(bsonWoCompare({}, {}), 0);
        "#,
    );
}

#[test]
fn result_sets_compare_as_sets() {
    passes(
        r#"
        same(_resultSetsEqualUnordered([{a: 1}, {a: 2}], [{a: 2}, {a: 1}]), true);
        same(_resultSetsEqualUnordered([{a: 1}, {a: 1}], [{a: 1}, {a: 2}]), false);
        same(_resultSetsEqualUnordered([{a: 1}], [{a: NumberInt(1)}]), false);
        same(_resultSetsEqualNormalized([{a: NumberInt(1), b: 2}], [{b: 2, a: 1}]), true);
        same(_resultSetsEqualNormalized([{a: [1, 2]}], [{a: [2, 1]}]), true);
        same(_resultSetsEqualNormalized([{a: 0.1 + 0.2}], [{a: 0.3}]), true);
        same(_resultSetsEqualNormalized([{a: 1}], [{a: 1}, {a: 1}]), false);
        "#,
    );
}

#[test]
fn sizes_and_strict_text_are_those_of_the_bytes() {
    passes(
        r#"
        same(Object.bsonsize({}), 5);
        same(Object.bsonsize(null), 0);
        same(Object.bsonsize({a: "\u00e9"}), 15);
        same(tostrictjson({a: NumberInt(1), b: [true, null]}), '{"a":1,"b":[true,null]}');
        same(getStringWidth("a\u0301\u4e2d"), 3);
        same(_fnvHashToHexString(""), "CBF29CE484222325");
        same(_fnvHashToHexString("a"), "AF63DC4C8601EC8C");
        "#,
    );
}
