//! Creates embedding vectors. Equal texts give equal vectors, texts that share words and letters are close, and every
//! vector has length one.

use crate::seed::Seed;

/// The weight of a word relative to a trigram of letters.
const WORD_WEIGHT: f32 = 2.0;
const TRIGRAM: usize = 3;

pub(crate) fn of_text(text: &str, dimensions: usize) -> Vec<f32> {
    let text = text.to_lowercase();
    let mut sum = vec![0.0; dimensions];
    for word in text.split(|c: char| !c.is_alphanumeric()) {
        if word.is_empty() {
            continue;
        }
        add(&mut sum, &[b"word", word.as_bytes()], WORD_WEIGHT);
        let edged: Vec<char> = format!(" {word} ").chars().collect();
        for letters in edged.windows(TRIGRAM) {
            let letters: String = letters.iter().collect();
            add(&mut sum, &[b"letters", letters.as_bytes()], 1.0);
        }
    }
    // Ensures that a text without letters or digits does not give the zero vector.
    add(&mut sum, &[b"text", text.as_bytes()], 0.1);
    unit(sum)
}

pub(crate) fn of_tokens(tokens: &[u64], dimensions: usize) -> Vec<f32> {
    let mut sum = vec![0.0; dimensions];
    for token in tokens {
        add(&mut sum, &[b"token", &token.to_le_bytes()], 1.0);
    }
    unit(sum)
}

/// Adds a feature to the vector. The feature's hash selects a few positions and their signs.
#[expect(
    clippy::float_arithmetic,
    reason = "the elements of a vector are floats"
)]
fn add(sum: &mut [f32], feature: &[&[u8]], weight: f32) {
    let mut seed = Seed::of(feature);
    for _ in 0..4 {
        let at = seed.below(sum.len());
        let sign = if seed.next() & 1 == 0 { 1.0 } else { -1.0 };
        if let Some(place) = sum.get_mut(at) {
            *place += sign * weight;
        }
    }
}

#[expect(
    clippy::float_arithmetic,
    reason = "the elements of a vector are floats"
)]
fn unit(mut vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    if length > 0.0 {
        for value in &mut vector {
            *value /= length;
        }
    } else if let Some(first) = vector.first_mut() {
        *first = 1.0;
    }
    vector
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(
        clippy::float_arithmetic,
        reason = "the elements of a vector are floats"
    )]
    fn product(one: &[f32], other: &[f32]) -> f32 {
        one.iter().zip(other).map(|(a, b)| a * b).sum()
    }

    fn nearness(one: &str, other: &str) -> f32 {
        product(&of_text(one, 256), &of_text(other, 256))
    }

    #[test]
    fn similar_texts_are_closer() {
        let cat = "a cat sleeps on the warm roof";
        assert!(nearness(cat, cat) > 0.999);
        let close = nearness(cat, "the cat slept on a warm roof");
        let far = nearness(cat, "quarterly revenue grew by nine percent");
        assert!(close > 0.6, "{close}");
        assert!(far < 0.3, "{far}");
    }

    #[test]
    fn every_vector_has_the_length_one() {
        for text in ["hello", "", "...", "ü 界 🙂", "a a a a a"] {
            for dimensions in [1, 3, 1536] {
                let vector = of_text(text, dimensions);
                assert_eq!(vector.len(), dimensions);
                let length = product(&vector, &vector);
                assert!((0.999..1.001).contains(&length), "{text}: {length}");
            }
        }
        let vector = of_tokens(&[1, 2], 8);
        let length = product(&vector, &vector);
        assert!((0.999..1.001).contains(&length), "{length}");
        assert_eq!(of_tokens(&[1, 2], 8), vector);
        assert_ne!(of_tokens(&[1, 2], 8), of_tokens(&[1, 3], 8));
    }
}
