//! Tests that failures are reported as failures, never as a missing or incomplete file.

use std::fs;
use std::io::Seek as _;

use store::{Media, MediaError, MediaOpenError, MediaPlace, MediaSettings, MediaType};

use super::test_storage::{TestStorage, film, fresh, keep, now};

#[tokio::test(flavor = "multi_thread")]
async fn a_file_beyond_its_bound_is_refused_and_leaves_nothing() {
    for (place, it) in TestStorage::all().await {
        let mut spool = it.media.spool(10).await.unwrap();
        spool.write(&[0; 10]).await.unwrap();
        let refused = spool.write(&[0]).await.unwrap_err();
        assert!(
            matches!(refused, MediaError::TooLarge(10)),
            "{place} {refused}"
        );
        drop(spool);
        assert_eq!(it.on_their_way(), 0, "{place}");

        let mut spool = it.media.spool(10).await.unwrap();
        spool.write(b"film").await.unwrap();
        drop(spool.finish().await.unwrap());
        assert_eq!(it.on_their_way(), 0, "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_near_its_floor_takes_nothing_in() {
    for (place, it) in TestStorage::all().await {
        let settings = MediaSettings {
            disk_floor_bytes: u64::MAX,
            ..it.settings.clone()
        };
        let media = Media::open(&settings).unwrap();
        let refused = keep(&media, fresh(MediaType::Mp4), b"film")
            .await
            .unwrap_err();
        assert!(matches!(refused, MediaError::Full), "{place} {refused}");
        assert_eq!(it.on_their_way(), 0, "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_near_its_floor_takes_no_uploads() {
    for (place, it) in TestStorage::all().await {
        let upload = it.media.upload().await.unwrap();
        let upload = upload.write(vec!["fi".into(), "lm".into()]).await.unwrap();
        assert_eq!(upload.bytes(), 4, "{place}");
        let mut file = upload.into_file();
        file.rewind().unwrap();
        assert_eq!(std::io::read_to_string(file).unwrap(), "film", "{place}");
        // The file has no name, so a process that dies leaves nothing behind.
        assert_eq!(it.on_their_way(), 0, "{place}");

        let full = MediaSettings {
            disk_floor_bytes: u64::MAX,
            ..it.settings.clone()
        };
        let refused = Media::open(&full).unwrap().upload().await.unwrap_err();
        assert!(matches!(refused, MediaError::Full), "{place} {refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storage_that_cannot_be_used_is_noticed_by_a_probe() {
    for (place, mut it) in TestStorage::all().await {
        it.media.probe().await.unwrap();
        it.keep(fresh(MediaType::Mp4), b"film").await.unwrap();
        it.media.probe().await.unwrap();
        let mut settings = it.settings.clone();
        if let MediaPlace::Bucket(bucket) = &mut settings.place {
            bucket.name = "another".to_owned();
            let other = Media::open(&settings).unwrap();
            assert!(other.probe().await.is_err(), "a bucket that is not there");
        }
        match it.s3.take() {
            Some(s3) => s3.stop().await,
            None => fs::rename(&it.objects, it.objects.with_file_name("elsewhere")).unwrap(),
        }
        assert!(it.media.probe().await.is_err(), "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storage_that_is_gone_is_no_missing_file() {
    for (place, mut it) in TestStorage::all().await {
        let (name, other) = (fresh(MediaType::Mp4), fresh(MediaType::Mp4));
        it.keep(name, b"film").await.unwrap();
        let head = it.media.head(name, now()).await.unwrap().unwrap();
        match it.s3.take() {
            Some(s3) => s3.stop().await,
            None => fs::rename(&it.objects, it.objects.with_file_name("elsewhere")).unwrap(),
        }
        assert!(it.media.head(name, now()).await.is_err(), "{place}");
        assert!(it.media.read(name, now()).await.is_err(), "{place}");
        assert!(
            it.media.read_range(name, &head, 0..1).await.is_err(),
            "{place}"
        );
        assert!(it.media.sweep(now()).await.is_err(), "{place}");
        assert!(it.keep(other, b"film").await.is_err(), "{place}");
        if place == "bucket" {
            assert_eq!(it.on_their_way(), 0);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_with_other_keys_refuses_and_is_not_empty() {
    let it = TestStorage::bucket().await;
    let name = fresh(MediaType::Mp4);
    it.keep(name, b"film").await.unwrap();
    let mut settings = it.settings.clone();
    let MediaPlace::Bucket(bucket) = &mut settings.place else {
        unreachable!("it is a bucket");
    };
    bucket.secret_access_key = "wrong".to_owned();
    let media = Media::open(&settings).unwrap();
    assert!(matches!(
        media.head(name, now()).await,
        Err(MediaError::Storage(_))
    ));
    assert!(matches!(
        media.read(name, now()).await.map(drop),
        Err(MediaError::Storage(_))
    ));
    // One file is uploaded whole, the other in parts.
    for length in [4, 9 << 20] {
        let refused = keep(&media, fresh(MediaType::Mp4), &film(length)).await;
        assert!(matches!(refused, Err(MediaError::Storage(_))), "{length}");
    }
    assert_eq!(it.media.sweep(now()).await.unwrap().kept, 1);
}

#[test]
fn a_folder_that_takes_no_file_is_told_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let settings = MediaSettings {
        place: MediaPlace::Folder(file.join("media")),
        ..MediaSettings::default()
    };
    let refused = Media::open(&settings).unwrap_err();
    assert!(
        matches!(refused, MediaOpenError::Folder { .. }),
        "{refused}"
    );
    assert!(refused.to_string().contains("media"), "{refused}");
}
