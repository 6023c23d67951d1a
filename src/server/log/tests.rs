//! The form of log lines.

use super::*;
use document::doc;

#[test]
fn line_has_the_columns_of_the_real_server() {
    let attr = doc! {"port": 27017, "ssl": "off"};
    let line = format_line(
        1_795_237_200_000,
        Severity::Info,
        "NETWORK",
        23016,
        "listener",
        "Waiting for connections",
        &attr,
        &[],
    );
    assert_eq!(
        line,
        "{\"t\":{\"$date\":\"2026-11-21T05:00:00.000+00:00\"},\"s\":\"I\",  \"c\":\"NETWORK\",  \"id\":23016,   \
         \"ctx\":\"listener\",\"msg\":\"Waiting for connections\",\"attr\":{\"port\":27017,\"ssl\":\"off\"}}"
    );
}

#[test]
fn line_stays_one_line_of_json_whatever_a_client_sent() {
    let attr = doc! {"name": "a\"\n\\\u{1}é", "nan": f64::NAN, "list": [1, 2.5, true]};
    let line = format_line(0, Severity::Warning, "-", 1, "conn1", "x", &attr, &["startupWarnings"]);
    let parsed: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(parsed["attr"]["name"], "a\"\n\\\u{1}é");
    assert_eq!(parsed["tags"][0], "startupWarnings");
    assert_eq!(parsed["t"]["$date"], "1970-01-01T00:00:00.000+00:00");
    assert!(!line.contains('\n'));
}

#[test]
fn rings_keep_the_last_lines_and_count_all() {
    let log = Logger::silent();
    log.startup_warning("CONTROL", 22120, "Access control is not enabled for the database", doc! {});
    for i in 0..RING_LINES + 5 {
        log.info("-", i as i32, "t", "m", doc! {});
    }
    let (lines, total) = log.ring("global").unwrap();
    assert_eq!((lines.len(), total), (RING_LINES, RING_LINES as i64 + 6));
    assert_eq!(log.ring("startupWarnings").unwrap().0.len(), 1);
    assert!(log.ring("other").is_none());
}

#[test]
fn verbosity_decides_debug_lines() {
    let log = Logger::silent();
    log.debug(1, "-", 1, "t", "m", || doc! {});
    assert_eq!(log.ring("global").unwrap().1, 0);
    log.set_verbosity(1);
    log.debug(1, "-", 1, "t", "m", || doc! {});
    assert_eq!(log.ring("global").unwrap().1, 1);
}

#[test]
fn rotation_keeps_the_old_file_and_a_start_without_append_does_too() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.log");
    let open = |append| Logger::new(Target::File { path: path.clone(), append }).unwrap();
    open(false).info("-", 1, "t", "first", doc! {});
    open(true).info("-", 1, "t", "second", doc! {});
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 2);
    let log = open(false);
    log.info("-", 1, "t", "third", doc! {});
    log.rotate(true).unwrap();
    log.info("-", 1, "t", "fourth", doc! {});
    assert!(std::fs::read_to_string(&path).unwrap().contains("fourth"));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3);
}
