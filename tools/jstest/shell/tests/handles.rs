//! The hooks of DB, DBCollection and DBQuery.

use super::passes;

#[test]
fn unknown_names_of_a_database_are_its_collections() {
    passes(
        r#"
        const db = new DB({}, "test");
        db.getCollection = function(name) { return "collection " + name; };
        same(db.foo, "collection foo");
        same(db["foo.bar"], "collection foo.bar");
        same(db._foo, undefined);
        same(db._name, "test");
        same(DB.prototype.someFunctionNobodyDefined, undefined);
        same("foo" in db, false);
        same(db.toString === undefined || typeof db.toString, "function");
        db.foo = 3;
        same(db.foo, 3);
        DB.prototype.testMethod = function() { return this._name; };
        same(db.testMethod(), "test");
        same(db instanceof DB, true);
        same(Object.keys(db).includes("bar"), false);
        "#,
    );
}

#[test]
fn unknown_names_of_a_collection_are_collections_below_it() {
    passes(
        r#"
        const db = new DB({}, "test");
        db.getCollection = function(name) { return new DBCollection({}, db, name, "test." + name); };
        same(db.a.b.c._fullName, "test.a.b.c");
        same(db.a._hidden, undefined);
        same(DBCollection.prototype.someFunctionNobodyDefined, undefined);
        DBCollection.prototype.testMethod = function() { return this._shortName; };
        same(db.a.b.testMethod(), "a.b");
        "#,
    );
}

#[test]
fn a_number_of_a_query_is_its_result_at_that_place() {
    passes(
        r#"
        const query = new DBQuery({}, {}, {}, "test.a", {x: 1}, null, 5, 2);
        query.arrayAccess = function(i) { return "result " + i; };
        same(query[7], "result 7");
        same(query.seven, undefined);
        same([query._ns, query._limit, query._skip, query._batchSize, query._numReturned].join(), "test.a,5,2,0,0");
        "#,
    );
}

#[test]
fn constructors_refuse_bad_names() {
    passes(
        r#"
        fails(() => new DB({}), "db constructor requires 2 arguments");
        fails(() => new DB({}, "a.b"), "[a.b] is not a valid database name");
        fails(() => new DB({}, ""), "is not a valid database name");
        fails(() => new DB({}, "x".repeat(64)), "is not a valid database name");
        fails(() => new DBCollection({}, {}, "a"), "collection constructor requires 4 arguments");
        "#,
    );
}
