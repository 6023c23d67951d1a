//! How values are shown in golden files.

use super::{Config, Golden, difference, output_root};
use crate::testing::run_with_shared;
use crate::{Options, Shared};
use std::sync::Arc;

/// A root with one expected file, and a shell's state whose failures are kept in the same directory.
struct Place {
    directory: tempfile::TempDir,
    shared: Arc<Shared>,
}

impl Place {
    fn new() -> Place {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("golden");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("greeting"), "one\ntwo\n").unwrap();
        let mut shared = Shared::new(Box::new(std::io::sink()));
        shared.golden = Golden::writing_to(directory.path().join("output"));
        Place { directory, shared: Arc::new(shared) }
    }
    /// What the script threw.
    fn run(&self, script: &str) -> Result<(), String> {
        let root = self.directory.path().to_path_buf();
        run_with_shared(Options { nodb: true, root, ..Options::default() }, script, &self.shared)
    }
    fn output(&self, path: &str) -> String {
        std::fs::read_to_string(self.directory.path().join("output").join(path)).unwrap()
    }
}

#[test]
fn what_is_as_expected_passes_and_what_differs_throws() {
    let place = Place::new();
    let with = |text: &str| {
        place.run(&format!(
            "_openGoldenData('greeting', {{relativePath: 'golden'}}); _writeGoldenData('one\\n');
             _writeGoldenData('{text}\\n'); _closeGoldenData();"
        ))
    };
    with("two").unwrap();
    assert!(!place.directory.path().join("output").exists());
    let error = with("three").unwrap_err();
    assert!(error.contains("line 2 is \"three\", expected \"two\""), "{error}");
    assert_eq!(place.output("actual/golden/greeting"), "one\nthree\n");
    assert_eq!(place.output("expected/golden/greeting"), "one\ntwo\n");
}

#[test]
fn an_expected_file_must_be_there() {
    let place = Place::new();
    let script =
        "_openGoldenData('other', {relativePath: 'golden'}); _writeGoldenData('x'); _closeGoldenData();";
    let error = place.run(script).unwrap_err();
    assert!(error.contains("Expected result file doesn't exist"), "{error}");
    assert_eq!(place.output("actual/golden/other"), "x");
}

#[test]
fn calls_in_a_wrong_order_and_paths_elsewhere_are_refused() {
    for (script, reason) in [
        ("_writeGoldenData('x')", "no golden data is open"),
        ("_closeGoldenData()", "no golden data is open"),
        ("_openGoldenData('a'); _openGoldenData('b')", "still open"),
        ("_openGoldenData('../a')", "no path below"),
        ("_openGoldenData('/etc/passwd')", "no path below"),
        ("_openGoldenData('a', {relativePath: '/tmp'})", "no path below"),
        ("_openGoldenData('a', 'b')", "takes an object"),
    ] {
        let error = Place::new().run(script).unwrap_err();
        assert!(error.contains(reason), "{script}: {error}");
    }
}

#[test]
fn what_is_left_open_is_compared_at_the_end() {
    let place = Place::new();
    let write = |text: &str| {
        place.run(&format!(
            "_openGoldenData('greeting', {{relativePath: 'golden'}}); _writeGoldenData({text:?});"
        ))
    };
    write("one\ntwo\n").unwrap();
    super::finish(&place.shared).unwrap();
    super::finish(&place.shared).unwrap();
    write("one\n").unwrap();
    super::finish(&place.shared).unwrap_err();
    assert_eq!(place.output("actual/golden/greeting"), "one\n");
}

#[test]
fn the_output_directory_is_new_every_time() {
    let config: Config =
        serde_saphyr::from_str("outputRootPattern: /tmp/g/out-%%%%\ndiffCmd: diff {{expected}} {{actual}}\n")
            .unwrap();
    assert_eq!(config.diff_cmd.as_deref(), Some("diff {{expected}} {{actual}}"));
    let (one, other) = (output_root(&config), output_root(&config));
    assert!(one.to_str().unwrap().starts_with("/tmp/g/out-") && !one.to_str().unwrap().contains('%'));
    assert_ne!(one, other);
}

#[test]
fn the_first_line_that_differs_is_named() {
    assert_eq!(difference("a\nb", "a"), "line 2 is nothing, expected \"b\"");
    assert_eq!(difference("a", "a\n"), "line 2 is \"\", expected nothing");
}
