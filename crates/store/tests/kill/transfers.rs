//! Tests a move, backup or restore that is killed at any step. The same command must complete it.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use store::{
    JournalRow, MeterText, OpenError, Progress, Settings, Store, TransferError, backup_store,
    move_store, restore_store,
};

use crate::{NOW, Scene, assert_clean, fund};

const COMMAND: &str = "TOLLGATE_KILL_COMMAND";
const FROM: &str = "TOLLGATE_KILL_FROM";
const TO: &str = "TOLLGATE_KILL_TO";
const MEDIA: &str = "TOLLGATE_KILL_MEDIA";
const STEPS: &str = "TOLLGATE_KILL_STEPS";
/// How long a victim waits to be killed before it ends by itself.
const WAIT_MAX: std::time::Duration = std::time::Duration::from_secs(60);
/// `TOLLGATE_MOVE_CALLS=1000000` runs the long version.
const CALLS: u64 = 5_500;
const JOURNAL_ROWS: usize = 900;
const MEDIA_FILES: usize = 30;

/// The folder, or the URL of the server.
fn place(scene: &Scene) -> String {
    match &scene.server {
        Some(url) => url.clone(),
        None => scene.folder.join("tollgate.db").display().to_string(),
    }
}

fn settings(place: &str) -> Settings {
    let settings = if place.starts_with("postgres") {
        Settings::on(store::Server::at(place))
    } else {
        Settings::at(place)
    };
    Settings {
        disk_floor_bytes: 0,
        queue_wait_max: std::time::Duration::from_secs(60),
        ..settings
    }
}

/// A command in a process of its own, which prints each step and waits after the requested number of steps. It is
/// killed when dropped.
struct Victim {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    steps: usize,
}

impl Victim {
    fn start(command: &str, from: &str, to: &str, media: &Path, steps: usize) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "transfers::the_victim",
                "--ignored",
                "--nocapture",
            ])
            .env(COMMAND, command)
            .env(FROM, from)
            .env(TO, to)
            .env(MEDIA, media)
            .env(STEPS, steps.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self {
            child,
            lines,
            steps,
        }
    }

    /// Waits for the requested number of steps. Returns whether the command has succeeded before that.
    fn has_ended(&mut self) -> bool {
        let lines = self.lines.by_ref().map_while(Result::ok);
        let steps = lines.filter(|line| line.starts_with("step "));
        if steps.take(self.steps).count() == self.steps {
            return false;
        }
        assert!(self.child.wait().unwrap().success());
        true
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Runs a command that is killed repeatedly, each time a little later, until it succeeds. Returns the number of kills.
fn run_killed(
    command: &str,
    from: &str,
    to: &str,
    media: &Path,
    mut killed: impl FnMut(),
) -> usize {
    for kills in 0.. {
        let mut victim = Victim::start(command, from, to, media, 1 + 5 * kills);
        if victim.has_ended() {
            return kills;
        }
        drop(victim);
        killed();
    }
    unreachable!("it ends")
}

#[tokio::test]
#[ignore = "plays the victim of the other tests"]
async fn the_victim() {
    let value = |name| std::env::var(name).expect("started by the other tests");
    let (from, to, media) = (value(FROM), value(TO), value(MEDIA));
    let mut steps: usize = value(STEPS).parse().unwrap();
    let tell = |progress: Progress| {
        let mut out = std::io::stdout();
        writeln!(out, "step {progress:?}").unwrap();
        out.flush().unwrap();
        steps -= 1;
        if steps == 0 {
            std::thread::sleep(WAIT_MAX);
            panic!("nobody has killed it");
        }
    };
    let media = Path::new(&media);
    match value(COMMAND).as_str() {
        "move" => drop(
            move_store(&settings(&from), &settings(&to), tell)
                .await
                .unwrap(),
        ),
        "backup" => {
            let (from, to) = (settings(&from), Path::new(&to));
            drop(
                backup_store(&from, Some(media), to, "kill", tell)
                    .await
                    .unwrap(),
            );
        }
        "restore" => {
            let (from, to) = (Path::new(&from), settings(&to));
            drop(restore_store(from, &to, Some(media), tell).await.unwrap());
        }
        other => panic!("{other}"),
    }
}

fn calls() -> u64 {
    std::env::var("TOLLGATE_MOVE_CALLS").map_or(CALLS, |calls| calls.parse().unwrap())
}

/// Writes calls and journal rows, more than a batch of each.
async fn fill(scene: &Scene) {
    let key = fund(scene).await;
    let (store, _) = Store::open(&settings(&place(scene))).unwrap();
    let key = store.find_key(&key).await.unwrap().unwrap();
    let price_version = store
        .price_version("a/model", r#"{"input":"1"}"#)
        .await
        .unwrap();
    for call in 0..calls() {
        let admitted = store.admit(crate::admission(&key)).await.unwrap();
        let meter = ledger::Meter {
            input: call % 7,
            ..ledger::Meter::default()
        };
        let end = store::End::Settled {
            charge: ledger::Micro::new(i64::try_from(call % 7).unwrap()),
            meter: MeterText::from(&meter),
            price_version,
            basis: store::Basis::Reported,
            tokens: None,
            cost: None,
        };
        store.close(store::Close {
            if_lost: store::IfLost::Charge,
            hold: admitted.hold,
            now: NOW,
            end,
        });
    }
    for call in 0..JOURNAL_ROWS {
        let row = JournalRow {
            at: NOW,
            request_id: format!("req_{call}").as_str().into(),
            wallet: Some(key.wallet),
            key: Some(key.id),
            model: "a/model".into(),
            status: 200,
            ..JournalRow::default()
        };
        store.journal_append(row);
    }
    store.flush().await.unwrap();
}

async fn assert_equal(one: &Settings, other: &Settings) {
    let (one, other) = (Store::attach(one).unwrap(), Store::attach(other).unwrap());
    assert_clean(&other).await;
    let (before, after) = (one.verify().await.unwrap(), other.verify().await.unwrap());
    assert!(before.entries >= calls());
    assert_eq!(before, after);
    let journal = store::JournalQuery {
        limit: 1_000,
        ..store::JournalQuery::default()
    };
    let (before, after) = (one.journal(journal.clone()), other.journal(journal));
    let (before, after) = (before.await.unwrap(), after.await.unwrap());
    assert_eq!(before.len(), JOURNAL_ROWS);
    assert_eq!(format!("{before:?}"), format!("{after:?}"));
}

fn scenes(folder: &Path) -> Vec<Scene> {
    let in_folder = |name: &str| {
        let folder = folder.join(name);
        std::fs::create_dir(&folder).unwrap();
        Scene {
            folder,
            server: None,
            node: None,
        }
    };
    let server = Scene::on_server(folder, None);
    let mut scenes = vec![in_folder("one")];
    scenes.extend(server);
    scenes.push(in_folder("two"));
    scenes
}

/// Moves a store from a file to a server and on to another file. Without a server, it moves from file to file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_move_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let scenes = scenes(folder.path());
    fill(&scenes[0]).await;
    for pair in scenes.windows(2) {
        let (from, to) = (place(&pair[0]), place(&pair[1]));
        let kills = run_killed("move", &from, &to, folder.path(), || {
            // An incomplete destination cannot be opened, even before the first row.
            let opened = Store::attach(&settings(&to)).map(drop);
            assert!(
                matches!(opened, Err(OpenError::UnfinishedMove { .. })),
                "{opened:?}"
            );
        });
        assert!(kills > 3, "only {kills} kills met a move");
        assert_equal(&settings(&from), &settings(&to)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_backup_does_not_look_complete() {
    let folder = tempfile::tempdir().unwrap();
    let media = folder.path().join("media");
    std::fs::create_dir(&media).unwrap();
    for file in 0..MEDIA_FILES {
        std::fs::write(media.join(format!("{file:032}.mp4")), "film").unwrap();
    }
    let scenes = scenes(folder.path());
    let targets = scenes.iter().skip(1).rev();
    fill(&scenes[0]).await;
    let copy = folder.path().join("copy");
    let to = copy.display().to_string();
    let mut unfinished = 0;
    let partial = folder.path().join("copy.partial");
    let kills = run_killed("backup", &place(&scenes[0]), &to, &media, || {
        assert!(!copy.exists());
        unfinished += usize::from(partial.exists());
    });
    assert!(unfinished > 3, "{unfinished} of {kills} kills met a backup");
    assert!(!partial.exists());
    for target in targets {
        let restored = folder
            .path()
            .join(format!("media of {}", place(target).len()));
        let kills = run_killed("restore", &to, &place(target), &restored, || ());
        assert!(kills > 3, "only {kills} kills met a restore");
        assert_eq!(std::fs::read_dir(&restored).unwrap().count(), MEDIA_FILES);
        assert_equal(&settings(&place(&scenes[0])), &settings(&place(target))).await;
    }
    // The remains of a killed backup are not a backup.
    std::fs::rename(&copy, &partial).unwrap();
    std::fs::write(partial.join("backup-in-progress"), "").unwrap();
    let refused = restore_store(&partial, &settings("unused"), None, |_| ()).await;
    assert!(
        matches!(refused, Err(TransferError::NoBackup { .. })),
        "{refused:?}"
    );
}
