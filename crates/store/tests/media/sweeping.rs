//! Tests that the sweep deletes media whose retention time is over, and nothing else.

use std::fs;
use std::time::{Duration, SystemTime};

use store::{Media, MediaSettings, MediaType, Swept};

use super::test_storage::{EXPIRY, TestStorage, after_expiry, fresh, keep, now};

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_takes_what_has_expired() {
    for (place, it) in TestStorage::all().await {
        let names = [
            fresh(MediaType::Mp4),
            fresh(MediaType::Mov),
            fresh(MediaType::Png),
        ];
        for name in names {
            it.keep(name, b"film").await.unwrap();
        }
        let all = Swept {
            deleted: 0,
            kept: 3,
            kept_bytes: 12,
        };
        assert_eq!(it.media.sweep(now()).await.unwrap(), all, "{place}");
        let none = Swept {
            deleted: 3,
            kept: 0,
            kept_bytes: 0,
        };
        assert_eq!(
            it.media.sweep(after_expiry()).await.unwrap(),
            none,
            "{place}"
        );
        assert_eq!(
            it.media.sweep(after_expiry()).await.unwrap(),
            Swept::default(),
            "{place}"
        );
        for name in names {
            assert_eq!(it.media.head(name, now()).await.unwrap(), None, "{place}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn evidence_is_kept_beyond_its_expiry() {
    for (place, it) in TestStorage::all().await {
        let settings = MediaSettings {
            keep_expired: EXPIRY,
            ..it.settings.clone()
        };
        let media = Media::open(&settings).unwrap();
        let name = fresh(MediaType::Mp4);
        keep(&media, name, b"film").await.unwrap();
        assert_eq!(
            media.head(name, after_expiry()).await.unwrap(),
            None,
            "{place}"
        );
        assert_eq!(
            media.sweep(after_expiry()).await.unwrap().kept,
            1,
            "{place}"
        );
        let later = after_expiry().plus_ms(i64::try_from(EXPIRY.as_millis()).unwrap());
        assert_eq!(media.sweep(later).await.unwrap().deleted, 1, "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_others_stay() {
    for (place, it) in TestStorage::all().await {
        it.keep(fresh(MediaType::Mp4), b"film").await.unwrap();
        let foreign = ["notes.txt", "holiday.mp4", "deep/er.mp4"].map(|name| it.objects.join(name));
        for path in &foreign {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "ours").unwrap();
        }
        assert_eq!(
            it.media.sweep(after_expiry()).await.unwrap().deleted,
            1,
            "{place}"
        );
        for path in foreign {
            assert!(path.exists(), "{place} {}", path.display());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_dead_process_left_on_its_way_goes_after_an_hour() {
    for (place, it) in TestStorage::all().await {
        let spool = it.media.spool(100).await.unwrap();
        let stale = it.spool.join("0123.part");
        let other = it.spool.join("notes.txt");
        for path in [&stale, &other] {
            let file = fs::File::create(path).unwrap();
            let long_ago = SystemTime::now() - Duration::from_secs(3700);
            file.set_modified(long_ago).unwrap();
        }
        it.media.sweep(now()).await.unwrap();
        assert!(!stale.exists(), "{place}");
        assert!(other.exists(), "{place}");
        assert_eq!(it.on_their_way(), 2, "{place}");
        drop(spool);
        assert_eq!(it.on_their_way(), 1, "{place}");
    }
}
