//! Tests that stored media can be read, whole and in ranges, until they expire.

use store::MediaType;

use super::test_storage::{TestStorage, after_expiry, collect, film, fresh, now};

/// The size of a file that is uploaded in more than two parts.
const LARGE_BYTES: usize = (16 << 20) + 3;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_kept_is_read_as_it_was_written() {
    for (place, it) in TestStorage::all().await {
        for (kind, length) in [
            (MediaType::Png, 1),
            (MediaType::Mov, 100_000),
            (MediaType::Mp4, LARGE_BYTES),
        ] {
            let (name, bytes) = (fresh(kind), film(length));
            it.keep(name, &bytes).await.unwrap();
            let (head, body) = it.media.read(name, now()).await.unwrap().unwrap();
            assert_eq!(head.bytes, bytes.len() as u64, "{place}");
            assert_eq!(body.bytes_left(), head.bytes, "{place}");
            assert!(collect(body).await.unwrap() == bytes, "{place} {length}");
            assert_eq!(
                it.media.head(name, now()).await.unwrap(),
                Some(head),
                "{place}"
            );
        }
        assert_eq!(it.on_their_way(), 0, "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ranges_are_read_alone() {
    for (place, it) in TestStorage::all().await {
        let (name, bytes) = (fresh(MediaType::Mp4), film(200_000));
        it.keep(name, &bytes).await.unwrap();
        let head = it.media.head(name, now()).await.unwrap().unwrap();
        for range in [0..1, 0..200_000, 65_535..65_537, 199_999..200_000] {
            let body = it.media.read_range(name, &head, range.clone()).await;
            let body = body.unwrap().unwrap();
            let span = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
            assert!(
                collect(body).await.unwrap() == bytes[span],
                "{place} {range:?}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_and_what_has_expired_are_the_same() {
    for (place, it) in TestStorage::all().await {
        let name = fresh(MediaType::Mp4);
        assert_eq!(it.media.head(name, now()).await.unwrap(), None, "{place}");
        assert!(
            it.media.read(name, now()).await.unwrap().is_none(),
            "{place}"
        );

        it.keep(name, b"film").await.unwrap();
        let head = it.media.head(name, now()).await.unwrap().unwrap();
        for (at, is_there) in [
            (head.expires_at.minus_ms(1), true),
            (head.expires_at, false),
            (after_expiry(), false),
        ] {
            assert_eq!(
                it.media.head(name, at).await.unwrap().is_some(),
                is_there,
                "{place}"
            );
            assert_eq!(
                it.media.read(name, at).await.unwrap().is_some(),
                is_there,
                "{place}"
            );
        }
        let other = store::MediaName {
            kind: MediaType::Png,
            ..name
        };
        assert_eq!(it.media.head(other, now()).await.unwrap(), None, "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_copy_takes_the_place_of_the_first() {
    for (place, it) in TestStorage::all().await {
        let name = fresh(MediaType::Mp4);
        it.keep(name, b"the first film").await.unwrap();
        let before = it.media.head(name, now()).await.unwrap().unwrap();
        it.keep(name, b"the second one").await.unwrap();
        let (head, body) = it.media.read(name, now()).await.unwrap().unwrap();
        assert_eq!(collect(body).await.unwrap(), b"the second one", "{place}");
        assert_ne!(head.etag, before.etag, "{place}");
        assert!(
            head.etag.starts_with('"') && head.etag.ends_with('"'),
            "{place}"
        );
        let swept = it.media.sweep(now()).await.unwrap();
        assert_eq!(
            (swept.deleted, swept.kept, swept.kept_bytes),
            (0, 1, 14),
            "{place}"
        );
    }
}

#[tokio::test]
async fn a_range_of_a_file_that_was_replaced_is_not_mixed_with_it() {
    let it = TestStorage::folder();
    let name = fresh(MediaType::Mp4);
    it.keep(name, b"the first film").await.unwrap();
    let head = it.media.head(name, now()).await.unwrap().unwrap();
    it.keep(name, b"another").await.unwrap();
    assert!(
        it.media
            .read_range(name, &head, 0..7)
            .await
            .unwrap()
            .is_none()
    );
}
