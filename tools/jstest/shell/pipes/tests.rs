//! Named pipes of test programs.

use crate::testing::run;
use std::io::Read;

/// Names are of one process and test, because all pipes are in one folder.
fn name(test: &str) -> String {
    format!("jsshell_pipe_{test}_{}", std::process::id())
}

#[test]
fn what_is_written_is_read_from_pipe_after_pipe() {
    let (one, other) = (name("one"), name("other"));
    run(&format!(
        r#"
        const doc = {{a: 1, b: "x"}};
        _writeTestPipeObjects("{one}", 5, [doc, {{}}]);
        _writeTestPipe("{other}", 100, 10, 1000);
        const all = _readTestPipes("{one}", "{other}");
        if (all.objects !== 105) throw Error(tojson(all));
        const least = 3 * Object.bsonsize(doc) + 2 * 5 + 100 * Object.bsonsize({{string: "0123456789"}});
        if (all.bytes < least || all.bytes > least + 100 * 990) throw Error(tojson(all));
    "#
    ))
    .unwrap();
    assert!(!std::path::Path::new("/tmp").join(one).exists(), "a pipe is gone when it was read");
}

#[test]
fn a_dump_file_is_repeated_in_the_folder_it_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let document = b"\x0c\0\0\0\x10a\0\x01\0\0\0\0";
    let file = directory.path().join("dump.bson");
    std::fs::write(&file, document).unwrap();
    let pipe = directory.path().join("p");
    let reader = std::thread::spawn(move || {
        while !pipe.exists() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let mut bytes = Vec::new();
        std::fs::File::open(pipe).unwrap().read_to_end(&mut bytes).unwrap();
        bytes
    });
    run(&format!(
        "_writeTestPipeBsonFileSync('p', 3, '{}', '{}')",
        file.display(),
        directory.path().display()
    ))
    .unwrap();
    assert_eq!(reader.join().unwrap(), document.repeat(3));
}

#[test]
fn misuse_is_an_exception() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("file"), "kept").unwrap();
    let folder = directory.path().display();
    for script in [
        "_writeTestPipe('x')".to_string(),
        "_writeTestPipe('x', -1, 0, 0)".to_string(),
        "_writeTestPipe('x', 1, 5, 4)".to_string(),
        "_writeTestPipe('../x', 1, 1, 1)".to_string(),
        format!("_writeTestPipeObjects('x', 1, [], '{folder}')"),
        format!("_writeTestPipeObjects('file', 1, [{{}}], '{folder}')"),
        format!("_writeTestPipeObjects('x', 1, [{{}}], '{folder}/nowhere')"),
        format!("_writeTestPipeBsonFile('x', 1, '{folder}/nowhere', '{folder}')"),
        "_readTestPipes()".to_string(),
        "_readTestPipes('jsshell_no_such_pipe')".to_string(),
    ] {
        run(&script).expect_err(&script);
    }
    assert_eq!(std::fs::read_to_string(directory.path().join("file")).unwrap(), "kept");
}
