//! Tests of the usage that each kind of metering computes.

use protocol::Compaction;
use protocol::native::LongCache;

use super::*;

fn card(json: &str) -> PriceCard {
    serde_json::from_str(json).unwrap()
}

fn summary(delivered: u64, usage: Option<Usage>, usd_ticks: Option<u64>) -> AnswerSummary {
    AnswerSummary {
        usage,
        pictures: Some(Box::new(Pictures {
            delivered,
            previewed: 0,
            usd_ticks,
            reported: PriceGrade {
                size: Some("2048x2048".into()),
                ..PriceGrade::default()
            },
        })),
        ..AnswerSummary::default()
    }
}

fn metering(quality: Option<&str>) -> PictureMetering {
    PictureMetering {
        prompt_tokens: 10,
        source_tokens: 100,
        image_tokens_max: 1000,
        requested_grade: PriceGrade {
            quality: quality.map(Into::into),
            ..PriceGrade::default()
        },
        images_held: 1,
        has_text: false,
    }
}

#[test]
fn every_family_and_tier_is_billed_exactly() {
    let tiers = r#"{"image":{"default":"0.04","high":"0.17","2k":"0.07"}}"#;
    let gpt = r#"{"input":"5","output":"10","image_input":"8","image_output":"30"}"#;
    let video_a = r#"{"image":{"default":"0.06","low":"0.04","2k":"0.08"},"usd":"1"}"#;
    let tokens = Usage {
        input: 10,
        image_input: 50,
        image_output: 1000,
        ..Usage::default()
    };
    for (price, quality, summary, charge) in [
        (tiers, None, summary(1, None, None), 70_000),
        (tiers, Some("high"), summary(2, None, None), 340_000),
        (tiers, Some("low"), summary(3, None, None), 210_000),
        (tiers, Some("high"), summary(0, None, None), 0),
        (
            gpt,
            Some("high"),
            summary(1, Some(tokens), None),
            50 + 400 + 30_000,
        ),
        (
            video_a,
            Some("low"),
            summary(2, None, Some(800_000_000)),
            80_000,
        ),
        (video_a, Some("low"), summary(2, None, None), 160_000),
        (video_a, Some("low"), summary(1, Some(tokens), None), 80_000),
    ] {
        let price = card(price);
        let metering = metering(quality);
        let meter = metering.reported(&summary, &price).unwrap();
        assert_eq!(
            price.price(&meter).unwrap().get(),
            charge,
            "{quality:?} {summary:?}"
        );
    }
}

#[test]
fn pictures_without_a_report_are_billed_as_delivered() {
    let gpt = card(r#"{"input":"5","output":"10","image_input":"8","image_output":"30"}"#);
    let metering = metering(None);
    assert_eq!(metering.reported(&summary(2, None, None), &gpt), None);
    let meter = metering.counted(&summary(2, None, None), &gpt);
    assert_eq!(
        (meter.input, meter.image_input, meter.image_output),
        (10, 100, 2000)
    );
    assert_eq!(
        metering
            .counted(&AnswerSummary::default(), &gpt)
            .image_output,
        0
    );
}

/// A client that leaves after a preview has seen the picture.
#[test]
fn previews_of_an_unfinished_picture_are_billed_like_the_picture() {
    let tokens = r#"{"input":"5","output":"10","image_input":"8","image_output":"30"}"#;
    let previewed = |previewed, usage| {
        let mut summary = summary(1, usage, None);
        summary.pictures.as_mut().unwrap().previewed = previewed;
        summary
    };
    let no_output = Usage {
        input: 10,
        ..Usage::default()
    };
    for (price, previews, usage, images) in [
        (tokens, 0, None, 1),
        (tokens, 1, None, 2),
        (tokens, 1, Some(no_output), 2),
        (r#"{"image":"0.04"}"#, 0, None, 1),
        (r#"{"image":"0.04"}"#, 2, None, 3),
    ] {
        let (price, summary) = (card(price), previewed(previews, usage));
        let metering = metering(None);
        let meter = metering.reported(&summary, &price);
        let meter = meter.unwrap_or_else(|| metering.counted(&summary, &price));
        let billed = meter.images + meter.image_output / metering.image_tokens_max;
        assert_eq!(billed, images, "{previews} {usage:?}");
    }
}

#[test]
fn the_bound_covers_every_tier_that_may_come() {
    let price = card(r#"{"image":{"default":"0.04","high":"0.17"}}"#);
    for (quality, images, micro) in [(Some("high"), 1, 170_000), (None, 2, 340_000)] {
        let metering = PictureMetering {
            images_held: images,
            ..metering(quality)
        };
        let bound = metering.bound(&Meter::default(), &price);
        assert_eq!(ledger::hold_of(&price, &bound).unwrap().get(), micro);
    }
    let gpt = card(r#"{"input":"5","output":"10","image_input":"8","image_output":"30"}"#);
    let bound = metering(None).bound(&metering(None).prompt(), &gpt);
    assert_eq!((bound.input, bound.image_output), (10, 1000));
    // For a model that is billed by tokens, the hold does not also include a price per picture.
    let both = card(r#"{"input":"5","image_output":"30","image":"0.01"}"#);
    let bound = metering(None).bound(&Meter::default(), &both);
    assert_eq!(ledger::hold_of(&both, &bound).unwrap().get(), 30_000);
}

/// Built-in tools are billed whether pictures are billed one by one or by tokens.
#[test]
fn tools_are_billed_beside_pictures() {
    let pieces = r#"{"image":"0.04","tools":{"web_search":"0.01"}}"#;
    let tokens = r#"{"input":"5","image_output":"30","tools":{"web_search":"0.01"}}"#;
    let mut tools = ToolCalls::default();
    tools.add(protocol::Tool::WebSearch, 2);
    let reported = Usage {
        image_output: 1000,
        ..Usage::default()
    };
    for (price, usage, charge) in [
        (pieces, None, 40_000 + 20_000),
        (tokens, Some(reported), 30_000 + 20_000),
        (tokens, None, 50 + 30_000 + 20_000),
    ] {
        let price = card(price);
        let summary = AnswerSummary {
            tools,
            ..summary(1, usage, None)
        };
        let metering = Metering::Pictures(Box::new(PictureMetering {
            source_tokens: 0,
            ..metering(None)
        }));
        let meter = metering.reported(&summary, &price);
        let meter = meter.unwrap_or_else(|| metering.counted(&summary, &price));
        assert_eq!(price.price(&meter).unwrap().get(), charge, "{usage:?}");
    }
}

#[test]
fn a_cost_of_nothing_is_not_told() {
    let price = card(r#"{"image":"0.06","usd":"1"}"#);
    for (delivered, charge) in [(2, 120_000), (0, 0)] {
        let meter = metering(None).reported(&summary(delivered, None, Some(0)), &price);
        assert_eq!(price.price(&meter.unwrap()).unwrap().get(), charge);
    }
}

/// The upstream's other counts do not include the tokens that it used to shorten the conversation.
#[test]
fn shortening_the_conversation_is_billed_with_the_answer() {
    let metering = Metering::Tokens {
        input_tokens: 100,
        long_cache: LongCache::No,
    };
    let usage = Usage {
        input: 1_000,
        cached_input: 1,
        output: 10,
        compaction: Compaction {
            input: 100_000,
            cached_input: 100,
            cache_write: 2_000,
            cache_write_1h: 3_000,
            output: 500,
        },
        ..Usage::default()
    };
    let summary = AnswerSummary {
        usage: Some(usage),
        output_tokens_counted: 10,
        ..AnswerSummary::default()
    };
    let price = card(
        r#"{"input":"1","cached_input":"1","cache_write":"1","cache_write_1h":"2","output":"10"}"#,
    );
    let meter = metering.reported(&summary, &price).unwrap();
    let charge = 101_000 + 101 + 2_000 + 2 * 3_000 + 10 * 510;
    assert_eq!(price.price(&meter).unwrap().get(), charge);
}

#[test]
fn input_for_the_long_cache_is_counted_at_the_dearer_price() {
    let metering = Metering::Tokens {
        input_tokens: 100,
        long_cache: LongCache::CountedApart,
    };
    let [usual, chat] = [LongCache::No, LongCache::CountedTogether].map(|long_cache| {
        let input_tokens = 100;
        Metering::Tokens {
            input_tokens,
            long_cache,
        }
    });
    let summary = AnswerSummary {
        output_tokens_counted: 10,
        ..AnswerSummary::default()
    };
    for (price, dearer) in [
        (r#"{"input":"4","cache_write_1h":"8","output":"20"}"#, 1_000),
        (r#"{"input":"4","cache_write_1h":"2","output":"20"}"#, 600),
        (r#"{"input":"4","output":"20"}"#, 600),
    ] {
        let price = card(price);
        let charge = |metering: &Metering| {
            price
                .price(&metering.counted(&summary, &price))
                .unwrap()
                .get()
        };
        assert_eq!((charge(&metering), charge(&usual)), (dearer, 600));
        assert_eq!(charge(&chat), 600);
    }
}

fn native() -> PictureMetering {
    PictureMetering {
        has_text: true,
        ..metering(None)
    }
}

const NATIVE: &str = r#"{"input":"1","output":"2","image_output":"30"}"#;

#[test]
fn a_report_that_leaves_pictures_out_is_none() {
    let thought = Usage {
        input: 7,
        output: 5,
        reasoning: 5,
        ..Usage::default()
    };
    let unsorted = Usage {
        output: 405,
        ..thought
    };
    let reported = Usage {
        image_output: 400,
        ..thought
    };
    let price = card(NATIVE);
    for (usage, image_output) in [
        (None, None),
        (Some(Usage::default()), None),
        (Some(thought), None),
        (Some(unsorted), Some(400)),
        (Some(reported), Some(400)),
    ] {
        for metering in [metering(None), native()] {
            let meter = metering.reported(&summary(1, usage, None), &price);
            let found = meter.map(|meter| (meter.image_output, meter.output));
            assert_eq!(found, image_output.map(|images| (images, 5)), "{usage:?}");
        }
    }
    // The members that are reported count, although others are missing.
    let meter = native().counted(&summary(2, Some(thought), None), &price);
    let found = (meter.input, meter.output, meter.image_output);
    assert_eq!(found, (7, 5, 2000));
    let meter = native().counted(&summary(1, None, None), &price);
    assert_eq!((meter.input, meter.image_output), (10, 1000));
}

#[test]
fn pictures_beside_text_are_held_for_and_grow() {
    let text = Meter {
        input: 10,
        output: 64,
        ..Meter::default()
    };
    let bound = native().bound(&text, &card(NATIVE));
    let found = (bound.input, bound.output, bound.image_output);
    assert_eq!(found, (10, 64, 1000));
    let pieces = card(r#"{"input":"1","output":"2","image":{"default":"0.04","2k":"0.07"}}"#);
    let bound = native().bound(&text, &pieces);
    assert_eq!((bound.output, bound.images), (64, 1));
    let price = card(r#"{"image":"0.04"}"#);
    let bound = native().bound(&text, &price);
    assert_eq!((bound.output, bound.images), (0, 1));
    let metering = Metering::Pictures(Box::new(native()));
    for (delivered, tokens) in [(0, 0), (1, 0), (3, 2000)] {
        assert_eq!(
            metering.observed_output(&summary(delivered, None, None)),
            tokens
        );
    }
}

/// A partial report is billed for what it contains, without the cap that applies to our own count. We count what it
/// omits.
#[test]
fn half_a_report_is_completed_and_stays_a_report() {
    let metering = Metering::Tokens {
        input_tokens: 40,
        long_cache: LongCache::No,
    };
    let price = card(r#"{"input":"1","output":"2"}"#);
    for ((input, output), expected) in [((0, 30_500), (40, 30_500)), ((90, 0), (90, 500))] {
        let summary = AnswerSummary {
            usage: Some(Usage {
                input,
                output,
                ..Usage::default()
            }),
            output_tokens_counted: 500,
            ..AnswerSummary::default()
        };
        let meter = metering.reported(&summary, &price).unwrap();
        assert_eq!((meter.input, meter.output), expected);
    }
    assert_eq!(metering.reported(&AnswerSummary::default(), &price), None);
}

/// A chat report has one count for all writes to caches.
#[test]
fn writes_that_are_counted_together_belong_to_the_long_cache_if_it_was_asked_for() {
    let usage = Usage {
        input: 100,
        cache_write: 1_000,
        output: 10,
        ..Usage::default()
    };
    let summary = AnswerSummary {
        usage: Some(usage),
        output_tokens_counted: 10,
        ..AnswerSummary::default()
    };
    let price = card(r#"{"input":"1","cache_write":"2","cache_write_1h":"3","output":"10"}"#);
    for (long_cache, write) in [
        (LongCache::No, 2),
        (LongCache::CountedApart, 2),
        (LongCache::CountedTogether, 3),
    ] {
        let metering = Metering::Tokens {
            input_tokens: 100,
            long_cache,
        };
        let meter = metering.reported(&summary, &price).unwrap();
        let charge = 100 + 1_000 * write + 100;
        assert_eq!(price.price(&meter).unwrap().get(), charge, "{long_cache:?}");
    }
}
