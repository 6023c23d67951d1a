//! Libraries of a directory.

use crate::testing;
use crate::{Library, Options};

/// Runs `script` over a library of `files`.
fn over(files: &[(&str, &str)], script: &str) -> Result<(), String> {
    let directory = tempfile::tempdir().unwrap();
    for (name, source) in files {
        std::fs::write(directory.path().join(name), source).unwrap();
    }
    let library = Library::Directory(directory.path().to_path_buf());
    testing::run_with(Options { nodb: true, library, ..Options::default() }, script, |_| {}).0
}

const ASSERT: &str = "function check(truth) { if (!truth) { throw new Error('wrong'); } }";

#[test]
fn files_that_need_later_ones_are_run_after_them() {
    let files = [
        ("a.js", "first = second + 1;"),
        ("b.js", "globalThis.second = third * 2;"),
        ("c.js", "var third = 3;"),
    ];
    over(&[&files[..], &[("z.js", ASSERT)]].concat(), "check(first === 7);").unwrap();
}

#[test]
fn what_is_never_defined_is_told_as_it_was_first() {
    let failure = over(&[("a.js", "let once = 1;\nnowhere();")], "").unwrap_err();
    assert!(failure.contains("nowhere is not defined") && failure.contains("a.js:2"), "{failure}");
}

#[test]
fn other_errors_of_a_file_end_the_loading() {
    let failure = over(&[("a.js", "throw new TypeError('broken');")], "").unwrap_err();
    assert!(failure.starts_with("TypeError: broken"), "{failure}");
    assert!(over(&[("a.js", "if (")], "").unwrap_err().starts_with("SyntaxError"));
}

#[test]
fn error_codes_are_there_without_a_file_and_kept_with_one() {
    let script = "check(ErrorCodes.BadValue === 2 && ErrorCodes.FailPointSetFailed > 0 && ErrorCodeStrings[2] === 'BadValue');
        check(ErrorCodes.isNetworkError(6) && ErrorCodes.isNetworkError('HostUnreachable') && !ErrorCodes.isNetworkError(2));
        check(ErrorCodes.isShutdownError('ShutdownInProgress') && !ErrorCodes.isShutdownError('NoSuchName'));";
    over(&[("a.js", ASSERT)], script).unwrap();
    over(&[("a.js", ASSERT), ("error_codes.js", "ErrorCodes = {Own: 1};")], "check(ErrorCodes.Own === 1);")
        .unwrap();
}

#[test]
fn a_library_puts_its_own_classes_over_the_natives() {
    let library = "Mongo.prototype.getDB = function(name) { return new DB(this, name); };
        DB.prototype.getCollection = function(name) { return new DBCollection(this._mongo, this, name, this._name + '.' + name); };
        NumberLong.prototype.tojson = function() { return 'own'; };
        if (!DB.prototype.helper) { DB.prototype.helper = function() { return 'helper of ' + this._name; }; }
        connect = function() { return 'own'; };";
    let script = "const db = new DB({}, 'd');
        check(db.helper() === 'helper of d' && db.a.b._fullName === 'd.a.b' && connect() === 'own');
        check(NumberLong(1).tojson() === 'own');";
    over(&[("a.js", library), ("b.js", ASSERT)], script).unwrap();
}
