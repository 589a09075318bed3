//! Draws scenes on a new background or on existing pictures.

use super::scene::{Scene, SceneItem};
use crate::raster::{Raster, Rgba};

#[derive(Debug, Clone, Copy)]
pub(super) enum Background<'a> {
    Coloured,
    Transparent,
    /// An existing picture. It stays unchanged where the mask is not fully transparent.
    Picture {
        source: &'a Raster,
        mask: Option<&'a Raster>,
        others: &'a [Raster],
    },
}

/// Draws a scene in blocks of `block` pixels. A block of 1 pixel is full detail.
pub(super) fn paint(
    scene: &Scene,
    (width, height): (u32, u32),
    background: Background<'_>,
    block: u32,
) -> Raster {
    let block = block.max(1);
    let mut picture = match background {
        Background::Picture { source, others, .. } => composed(source, others, width, height),
        Background::Coloured | Background::Transparent => Raster::filled(width, height, [0; 4]),
    };
    let mask = match background {
        Background::Picture {
            mask: Some(mask), ..
        } => Some(mask.scaled(width, height)),
        _ => None,
    };
    for y in (0..height).step_by(block as usize) {
        for x in (0..width).step_by(block as usize) {
            let item = item_at(scene, x + block / 2, y + block / 2, width, height);
            let paint = match (item, background) {
                (Some(item), _) => Some(opaque(item.colour)),
                (None, Background::Coloured) => Some(opaque(scene.background)),
                (None, Background::Transparent) => None,
                // With a mask, the background is filled too, so that the edit is visible in the whole transparent area
                // of the mask.
                (None, Background::Picture { mask, .. }) => mask.map(|_| opaque(scene.background)),
            };
            let Some(paint) = paint else {
                continue;
            };
            for y in y..(y + block).min(height) {
                for x in x..(x + block).min(width) {
                    let may = mask.as_ref().is_none_or(|mask| mask.pixel(x, y)[3] == 0);
                    if may {
                        picture.set_pixel(x, y, paint);
                    }
                }
            }
        }
    }
    picture
}

/// The item at a pixel. Items are drawn side by side.
fn item_at(scene: &Scene, x: u32, y: u32, width: u32, height: u32) -> Option<&SceneItem> {
    let count = u32::try_from(scene.items.len()).unwrap_or(1).max(1);
    let cell = (width / count).max(1);
    let index = (x / cell).min(count - 1);
    let item = scene.items.get(index as usize)?;
    let radius = i64::from(cell.min(height)) * 2 / 5;
    let middle = i64::from(index * cell + cell / 2);
    let covers = item.shape.covers(
        i64::from(x) - middle,
        i64::from(y) - i64::from(height / 2),
        radius,
    );
    covers.then_some(item)
}

/// The first picture at the requested size, with the other pictures small in its corner.
fn composed(source: &Raster, others: &[Raster], width: u32, height: u32) -> Raster {
    let mut picture = source.scaled(width, height);
    let (side, tall) = ((width / 5).max(1), (height / 5).max(1));
    for (place, other) in (1_u32..).zip(others) {
        let small = other.scaled(side, tall);
        // Pictures that do not fit beside the others are left out.
        let Some(left) = width.checked_sub(side * place) else {
            break;
        };
        picture.put(&small, left, height.saturating_sub(tall));
    }
    picture
}

fn opaque([red, green, blue]: [u8; 3]) -> Rgba {
    [red, green, blue, 255]
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: (u32, u32) = (60, 40);

    #[test]
    fn a_picture_shows_what_it_claims() {
        let scene = Scene::of("a red circle and a green square on a blue background", 0);
        let picture = paint(&scene, SIZE, Background::Coloured, 1);
        assert_eq!(picture.pixel(15, 20), [220, 40, 40, 255]);
        assert_eq!(picture.pixel(45, 20), [40, 160, 60, 255]);
        assert_eq!(picture.pixel(0, 0), [40, 80, 210, 255]);
        let clear = paint(&scene, SIZE, Background::Transparent, 1);
        assert_eq!(clear.pixel(0, 0)[3], 0);
    }

    #[test]
    fn previews_grow_sharper() {
        let scene = Scene::of("a red circle", 0);
        let whole = paint(&scene, SIZE, Background::Coloured, 1);
        let differing = |block| {
            let preview = paint(&scene, SIZE, Background::Coloured, block);
            let pixels = preview.pixels().iter().zip(whole.pixels());
            pixels.filter(|(one, other)| one != other).count()
        };
        assert!(differing(16) > differing(4));
        assert!(differing(4) > 0);
    }

    #[test]
    fn an_edit_changes_what_the_mask_leaves_open() {
        let source = Raster::filled(60, 40, [1, 2, 3, 255]);
        let mut mask = Raster::filled(60, 40, [0, 0, 0, 255]);
        for y in 0..40 {
            for x in 0..30 {
                mask.set_pixel(x, y, [0; 4]);
            }
        }
        let scene = Scene::of("a yellow star", 0);
        let others = [Raster::filled(9, 9, [9, 9, 9, 255])];
        let background = |mask| Background::Picture {
            source: &source,
            mask,
            others: &others,
        };
        let edited = paint(&scene, SIZE, background(Some(&mask)), 1);
        assert_ne!(edited.pixel(0, 0), source.pixel(0, 0));
        assert_eq!(edited.pixel(31, 20), source.pixel(31, 20));
        assert_eq!(edited.pixel(59, 39), [9, 9, 9, 255]);
        let free = paint(&scene, SIZE, background(None), 1);
        assert_eq!(free.pixel(30, 20), [245, 210, 50, 255]);
        assert_eq!(free.pixel(0, 0), source.pixel(0, 0));
    }
}
