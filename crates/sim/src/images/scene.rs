//! Reads the scene that a prompt describes: coloured shapes on a background.

use crate::seed::Seed;

pub(super) type Colour = [u8; 3];

const COLOURS: [(&str, Colour); 12] = [
    ("red", [220, 40, 40]),
    ("green", [40, 160, 60]),
    ("blue", [40, 80, 210]),
    ("yellow", [245, 210, 50]),
    ("orange", [240, 140, 40]),
    ("purple", [130, 60, 170]),
    ("pink", [240, 130, 180]),
    ("brown", [130, 85, 50]),
    ("black", [15, 15, 20]),
    ("white", [250, 250, 250]),
    ("gray", [128, 128, 128]),
    ("grey", [128, 128, 128]),
];

const SHAPES: [(&str, Shape); 14] = [
    ("circle", Shape::Circle),
    ("ball", Shape::Circle),
    ("sun", Shape::Circle),
    ("moon", Shape::Circle),
    ("apple", Shape::Circle),
    ("square", Shape::Square),
    ("box", Shape::Square),
    ("house", Shape::Square),
    ("triangle", Shape::Triangle),
    ("mountain", Shape::Triangle),
    ("tree", Shape::Triangle),
    ("star", Shape::Star),
    ("flower", Shape::Star),
    ("cat", Shape::Star),
];
const SHAPES_MAX: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Circle,
    Square,
    Triangle,
    Star,
}

impl Shape {
    /// Whether a point is inside a shape of this radius around the origin.
    pub(super) fn covers(self, x: i64, y: i64, radius: i64) -> bool {
        match self {
            Self::Circle => x * x + y * y <= radius * radius,
            Self::Square => x.abs() <= radius && y.abs() <= radius,
            Self::Triangle => y.abs() <= radius && x.abs() * 2 <= y + radius,
            Self::Star => x.abs() * 3 + y.abs() <= radius || x.abs() + y.abs() * 3 <= radius,
        }
    }
}

/// The background of a picture, and its items from left to right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Scene {
    pub(super) items: Vec<SceneItem>,
    pub(super) background: Colour,
    background_word: Option<&'static str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SceneItem {
    pub(super) shape: Shape,
    pub(super) colour: Colour,
    word: &'static str,
    colour_word: Option<&'static str>,
}

impl Scene {
    /// Reads the scene from a prompt. `variant` makes the pictures of one call differ.
    pub(super) fn of(prompt: &str, variant: u64) -> Self {
        let mut seed = Seed::of(&[prompt.as_bytes(), &variant.to_le_bytes()]);
        let words = prompt.to_lowercase();
        let mut colour = None;
        let mut background = None;
        let mut items = Vec::new();
        for word in words.split(|c: char| !c.is_ascii_alphabetic()) {
            if let Some(known) = COLOURS.iter().find(|(name, _)| *name == word) {
                colour = Some(*known);
            } else if word == "background" {
                background = colour.take();
            } else if let Some((name, shape)) = SHAPES.iter().find(|(name, _)| *name == word)
                && items.len() < SHAPES_MAX
            {
                let (colour_word, paint) = colour.take().map_or_else(
                    || (None, bright(&mut seed)),
                    |(word, paint)| (Some(word), paint),
                );
                items.push(SceneItem {
                    shape: *shape,
                    colour: paint,
                    word: name,
                    colour_word,
                });
            }
        }
        if items.is_empty() {
            // A prompt without known shapes gets a shape that depends on its text.
            let shapes = ["circle", "square", "triangle", "star"];
            let word = shapes
                .get(seed.below(shapes.len()))
                .copied()
                .unwrap_or("star");
            let shape = SHAPES.iter().find(|(name, _)| *name == word);
            items.push(SceneItem {
                shape: shape.map_or(Shape::Star, |(_, shape)| *shape),
                colour: bright(&mut seed),
                word,
                colour_word: None,
            });
        }
        Self {
            items,
            background: background.map_or_else(|| pale(&mut seed), |(_, colour)| colour),
            background_word: background.map(|(word, _)| word),
        }
    }

    /// Describes the scene, for example "a red circle on a plain background".
    pub(super) fn description(&self) -> String {
        let items: Vec<String> = self
            .items
            .iter()
            .map(|item| match item.colour_word {
                Some(colour) => format!("a {colour} {}", item.word),
                None => format!("a {}", item.word),
            })
            .collect();
        let background = self.background_word.unwrap_or("plain");
        format!("{} on a {background} background", items.join(" and "))
    }
}

fn bright(seed: &mut Seed) -> Colour {
    let [red, green, blue, ..] = seed.next().to_le_bytes();
    [red / 2 + 60, green / 2 + 30, blue / 2 + 30]
}

fn pale(seed: &mut Seed) -> Colour {
    let [red, green, blue, ..] = seed.next().to_le_bytes();
    [red / 4 + 190, green / 4 + 190, blue / 4 + 190]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_are_taken_at_their_words() {
        let scene = Scene::of("A red circle and a green SQUARE, on a blue background.", 0);
        assert_eq!(
            scene.description(),
            "a red circle and a green square on a blue background"
        );
        assert_eq!(scene.background, [40, 80, 210]);
        assert_eq!(scene.items[1].colour, [40, 160, 60]);
        assert_ne!(Scene::of("hello", 0), Scene::of("goodbye", 0));
        assert_eq!(Scene::of("hello", 0), Scene::of("hello", 0));
    }
}
