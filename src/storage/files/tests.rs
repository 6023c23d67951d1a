//! Every kind of files keeps the same contract, and the simulated disk loses what a disk may lose.

use std::path::Path;

use super::*;

fn each_world(test: impl Fn(&dyn Files, &Path)) {
    let dir = tempfile::tempdir().unwrap();
    test(&RealFiles, dir.path());
    test(&MemoryFiles::default(), Path::new("/data"));
    test(&SimulatedDisk::new(), Path::new("/data"));
}

#[test]
fn every_world_keeps_the_same_contract() {
    each_world(|files, dir| {
        files.create_dir_all(&dir.join("sub")).unwrap();
        let path = dir.join("sub/a");
        let file = files.create(&path).unwrap();
        file.append(b"hello").unwrap();
        file.append(b" world").unwrap();
        file.write_at(b"W", 6).unwrap();
        assert_eq!(files.read(&path).unwrap(), b"hello World");
        let mut buffer = [0; 20];
        assert_eq!(file.read_at(&mut buffer, 6).unwrap(), 5);
        assert_eq!(file.read_at(&mut buffer, 60).unwrap(), 0);
        assert!(file.read_exact_at(&mut buffer, 6).is_err());
        file.preallocate(200_000).unwrap();
        assert_eq!(file.len().unwrap(), 200_000);
        file.preallocate(10).unwrap();
        assert_eq!(file.len().unwrap(), 200_000);
        assert!(files.read(&path).unwrap()[11..].iter().all(|&b| b == 0));
        file.set_len(5).unwrap();
        file.set_len(8).unwrap();
        assert_eq!(files.read(&path).unwrap(), b"hello\0\0\0");
        file.sync().unwrap();
        files.rename(&path, &dir.join("sub/b")).unwrap();
        files.sync_dir(&dir.join("sub")).unwrap();
        assert!(!files.exists(&path).unwrap());
        assert!(files.exists(&dir.join("sub")).unwrap());
        assert_eq!(files.list(&dir.join("sub")).unwrap(), ["b"]);
        assert_eq!(files.list(dir).unwrap(), ["sub"]);
        files.replace(&dir.join("sub/b"), b"other").unwrap();
        assert_eq!(files.read(&dir.join("sub/b")).unwrap(), b"other");
        assert!(files.open(&path).is_err());
        assert!(files.remove(&path).is_err());
        files.remove(&dir.join("sub/b")).unwrap();
        files.create(&dir.join("sub/c")).unwrap();
        files.remove_dir_all(&dir.join("sub")).unwrap();
        files.remove_dir_all(&dir.join("sub")).unwrap();
        assert!(!files.exists(&dir.join("sub/c")).unwrap());
    });
}

#[test]
fn a_lock_is_refused_even_in_the_same_process_until_released() {
    each_world(|files, dir| {
        let path = dir.join("mongod.lock");
        let lock = files.lock(&path).unwrap();
        assert!(matches!(files.lock(&path), Err(LockError::InUse(_))));
        drop(lock);
        files.lock(&path).unwrap();
    });
}

#[test]
fn the_file_system_of_a_directory_has_a_size_where_it_is_the_machines() {
    let dir = tempfile::tempdir().unwrap();
    let Space { total, used } = RealFiles.space(dir.path()).unwrap();
    assert!(0 < used && used < total, "{used} of {total}");
    assert!(RealFiles.space(&dir.path().join("none")).is_err());
    assert_eq!(MemoryFiles::default().space(dir.path()).unwrap(), Space::default());
}

fn path(name: &str) -> PathBuf {
    Path::new("/d").join(name)
}

#[test]
fn a_crash_drops_what_was_not_synced() {
    let disk = SimulatedDisk::new();
    let file = disk.create(&path("a")).unwrap();
    file.write_at(b"kept", 0).unwrap();
    file.sync().unwrap();
    disk.sync_dir(Path::new("/d")).unwrap();
    file.write_at(b"lost", 4).unwrap();
    disk.create(&path("b")).unwrap();
    disk.rename(&path("a"), &path("c")).unwrap();
    disk.crash(CrashMode::DropUnsynced);
    assert_eq!(disk.list(Path::new("/d")).unwrap(), ["a"]);
    assert_eq!(disk.read(&path("a")).unwrap(), b"kept");
    assert!(file.write_at(b"x", 0).is_err(), "a handle from before the crash is dead");
}

#[test]
fn a_torn_crash_keeps_some_sectors_and_tears_others() {
    let (mut whole, mut none, mut torn) = (0, 0, 0);
    for seed in 0..200 {
        let disk = SimulatedDisk::new();
        let file = disk.create(&path("a")).unwrap();
        file.sync().unwrap();
        disk.sync_dir(Path::new("/d")).unwrap();
        file.write_at(&[7; 2000], 0).unwrap();
        disk.crash(CrashMode::Torn { seed });
        let bytes = disk.read(&path("a")).unwrap();
        match bytes.iter().filter(|&&b| b == 7).count() {
            2000 => whole += 1,
            0 => none += 1,
            _ => torn += 1,
        }
    }
    assert!(whole > 0 && none > 0 && torn > 100, "{whole} {none} {torn}");
}

#[test]
fn a_rename_survives_whole_or_not_at_all() {
    for seed in 0..50 {
        let disk = SimulatedDisk::new();
        disk.create(&path("a")).unwrap();
        disk.sync_dir(Path::new("/d")).unwrap();
        disk.rename(&path("a"), &path("b")).unwrap();
        disk.crash(CrashMode::Torn { seed });
        assert_eq!(disk.list(Path::new("/d")).unwrap().len(), 1);
    }
}

#[test]
fn after_a_failed_sync_a_later_one_lies() {
    let disk = SimulatedDisk::new();
    let file = disk.create(&path("a")).unwrap();
    disk.sync_dir(Path::new("/d")).unwrap();
    file.write_at(b"gone", 0).unwrap();
    disk.fail_at(disk.operations(), Fault::SyncFails);
    assert!(file.sync().is_err());
    disk.crash(CrashMode::Torn { seed: 3 });
    assert_eq!(disk.read(&path("a")).unwrap(), b"");
}

#[test]
fn faults_strike_at_their_operation() {
    let disk = SimulatedDisk::new();
    let file = disk.create(&path("a")).unwrap();
    disk.fail_at(disk.operations() + 1, Fault::NoSpace);
    file.write_at(b"1", 0).unwrap();
    assert_eq!(file.write_at(b"2", 1).unwrap_err().kind(), io::ErrorKind::StorageFull);
    file.write_at(b"2", 1).unwrap();
    disk.fail_at(disk.operations(), Fault::PowerOff);
    assert!(file.write_at(b"3", 2).is_err());
    assert!(file.read_at(&mut [0], 0).is_err());
    disk.crash(CrashMode::KeepAll);
    assert_eq!(disk.read(&path("a")).unwrap(), b"123");
}
