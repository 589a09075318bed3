//! Compares prices with amounts calculated by hand, for cards as operators write them.

use ledger::{Exact, Meter, Micro, Overflow, PriceCard, PriceError, PriceKey};
use serde_json::json;

fn card(value: serde_json::Value) -> PriceCard {
    serde_json::from_value(value).expect("the card is well-formed")
}

fn meter(value: serde_json::Value) -> Meter {
    serde_json::from_value(value).expect("the meter is well-formed")
}

#[test]
fn prices_are_what_a_calculation_by_hand_gives() {
    let text = json!({"input": "1.25", "cached_input": "0.125", "output": "10"});
    let small = json!({"input": "0.15", "output": "0.6"});
    let plain = json!({"input": "2", "output": "8"});
    let special = json!({"input": "2", "output": "8", "cache_write": "2.5", "image_input": "3",
        "audio_input": "10", "image_output": "30", "audio_output": "20"});
    let image = json!({"image": {"default": "0.04", "high": "0.17", "2k": "0.07"}});
    let video = json!({"video_second": {"default": "0.4", "4k": "0.6"},
        "video_tokens": {"default": "10.7", "4k": "3.96"}});
    let usd = json!({"usd": "1"});
    let marked_up = json!({"usd": "1.1"});
    let voice = json!({"tts_characters": "15", "tts_stream_characters": "30",
        "stt_second": "0.000027777778", "stt_stream_second": "0.000055555556",
        "realtime_minute": "0.08", "realtime_text_input": "0.004"});
    let tools = json!({"input": "2", "output": "8", "tools": {"web_search": "0.01"}});
    for (prices, used, micro) in [
        (&text, json!({}), 0),
        // 1,250 and 5,000 micro-credits.
        (&text, json!({"input": 1_000, "output": 500}), 6_250),
        // 125 + 25 + 10, a whole number that needs no rounding.
        (
            &text,
            json!({"input": 100, "cached_input": 200, "output": 1}),
            160,
        ),
        // 1.25 + 0.125 = 1.375.
        (&text, json!({"input": 1, "cached_input": 1}), 2),
        (&small, json!({"input": 1}), 1),
        (&small, json!({"input": 20}), 3),
        // 0.45 + 4.2 = 4.65. Rounding each of the two separately would give 6.
        (&small, json!({"input": 3, "output": 7}), 5),
        // Special classes without their own price are priced as input and output.
        (
            &plain,
            json!({"cached_input": 10, "cache_write": 10, "image_input": 10, "audio_input": 10}),
            80,
        ),
        (&plain, json!({"image_output": 10, "audio_output": 10}), 160),
        (
            &special,
            json!({"input": 10, "cached_input": 10, "cache_write": 10, "image_input": 10,
            "audio_input": 10}),
            20 + 20 + 25 + 30 + 100,
        ),
        (
            &special,
            json!({"output": 10, "image_output": 10, "audio_output": 10}),
            80 + 300 + 200,
        ),
        (&image, json!({"images": 2}), 80_000),
        (&image, json!({"images": 2, "image_tier": "high"}), 340_000),
        (&image, json!({"images": 1, "image_tier": "2K"}), 70_000),
        (
            &image,
            json!({"images": 1, "image_tier": "unheard of"}),
            40_000,
        ),
        (&video, json!({"video_seconds": 8}), 3_200_000),
        (
            &video,
            json!({"video_seconds": 8, "video_tier": "4k"}),
            4_800_000,
        ),
        (&video, json!({"video_tokens": 108_900}), 1_165_230),
        (
            &video,
            json!({"video_tokens": 108_900, "video_tier": "4k"}),
            431_244,
        ),
        // 8 s at 0.05 dollars are 4e9 ticks; a micro-credit is 10,000 of them.
        (&usd, json!({"usd_ticks": 4_000_000_000_u64}), 400_000),
        (&usd, json!({"usd_ticks": 1}), 1),
        (&usd, json!({"usd_ticks": 10_000}), 1),
        (&usd, json!({"usd_ticks": 10_001}), 2),
        (&marked_up, json!({"usd_ticks": 4_000_000_000_u64}), 440_000),
        (&voice, json!({"tts_characters": 43}), 645),
        (&voice, json!({"tts_stream_characters": 43}), 1_290),
        // An hour costs 100,000.0008 micro-credits.
        (&voice, json!({"stt_seconds": 3_600}), 100_001),
        (&voice, json!({"stt_stream_seconds": 9}), 501),
        // A second costs 1,333 1/3 micro-credits.
        (&voice, json!({"realtime_seconds": 1}), 1_334),
        (&voice, json!({"realtime_seconds": 3}), 4_000),
        (
            &voice,
            json!({"realtime_seconds": 61, "text_inputs": 3}),
            81_334 + 12_000,
        ),
        (
            &tools,
            json!({"input": 1, "tools": {"web_search": 3}}),
            30_002,
        ),
        (
            &tools,
            json!({"input": 1, "tools": {"web_search": 1, "code": 9}}),
            10_002,
        ),
    ] {
        let price = card(prices.clone()).price(&meter(used.clone()));
        assert_eq!(price, Ok(Micro::new(micro)), "{used} at {prices}");
    }
}

#[test]
fn thirds_and_ticks_are_added_before_they_are_rounded() {
    // A second costs a third of a micro-credit, a tick costs a ten-thousandth.
    let card = card(json!({"realtime_minute": "0.00002", "usd": "1"}));
    for (ticks, micro) in [(6_666, 1), (6_667, 2), (16_666, 2), (16_667, 3)] {
        let used = Meter {
            realtime_seconds: 1,
            usd_ticks: ticks,
            ..Meter::default()
        };
        assert_eq!(card.price(&used), Ok(Micro::new(micro)), "{ticks}");
    }
}

#[test]
fn long_input_changes_the_prices_of_the_whole_call() {
    let thresholds = card(
        json!({"input": "2", "cached_input": "0.2", "output": "10", "long_context": [
            {"above_tokens": 500, "input": "8", "output": "40"},
            {"above_tokens": 200, "input": "4", "cached_input": "0.4", "output": "15"},
        ]}),
    );
    for (used, micro) in [
        (json!({"input": 200, "output": 10}), 500),
        (json!({"input": 201, "output": 10}), 954),
        // Cached input counts as input.
        (
            json!({"input": 101, "cached_input": 100, "output": 10}),
            404 + 40 + 150,
        ),
        (json!({"input": 500}), 2_000),
        (json!({"input": 501, "output": 1}), 4_048),
        // A class without a price above the threshold costs the `input` above the threshold.
        (json!({"cached_input": 501}), 4_008),
        // Output does not count towards long context.
        (json!({"output": 9_999}), 99_990),
    ] {
        assert_eq!(
            thresholds.price(&meter(used.clone())),
            Ok(Micro::new(micro)),
            "{used}"
        );
    }
}

#[test]
fn a_single_step_needs_no_list() {
    let threshold = json!({"above_tokens": 200, "input": "4"});
    let alone = card(json!({"input": "2", "output": "10", "long_context": threshold}));
    let listed = card(json!({"input": "2", "output": "10", "long_context": [threshold]}));
    assert_eq!(alone, listed);
    // The threshold has no price for output, so the card's price applies.
    let used = Meter {
        input: 201,
        output: 1,
        ..Meter::default()
    };
    assert_eq!(alone.price(&used), Ok(Micro::new(814)));
}

#[test]
fn usage_without_a_price_is_an_error() {
    let images = card(json!({"image": "0.04"}));
    for (used, key) in [
        (json!({"input": 1}), PriceKey::Input),
        (json!({"images": 1, "output": 1}), PriceKey::Output),
        (json!({"video_seconds": 1}), PriceKey::VideoSecond),
        (json!({"usd_ticks": 1}), PriceKey::Usd),
    ] {
        assert_eq!(images.price(&meter(used)), Err(PriceError::Unpriced(key)));
    }
}

#[test]
fn tools_without_a_price_are_named() {
    let card = card(json!({"input": "1", "output": "1", "tools": {"web_search": "0.01"}}));
    let used = meter(json!({"tools": {"code": 2, "files": 0, "maps": 1, "web_search": 1}}));
    assert_eq!(
        card.unpriced_tools(&used).collect::<Vec<_>>(),
        ["code", "maps"]
    );
}

#[test]
fn the_largest_amount_is_exact_and_one_more_is_an_error() {
    let card = card(json!({"image": "9223372.036854775807", "usd": "0.000000000001"}));
    let used = |images, usd_ticks| Meter {
        images,
        usd_ticks,
        ..Meter::default()
    };
    assert_eq!(card.price(&used(1_000_000, 0)), Ok(Micro::MAX));
    for beyond in [
        used(1_000_000, 1),
        used(1_000_001, 0),
        used(u64::MAX, 0),
        used(u64::MAX, u64::MAX),
    ] {
        assert_eq!(card.price(&beyond), Err(PriceError::Overflow(Overflow)));
    }
    assert_eq!(card.price(&used(0, u64::MAX)), Ok(Micro::new(1_845)));
}

#[test]
fn lines_explain_the_price() {
    let card = card(
        json!({"input": "1.25", "output": "10", "image": {"default": "0.04", "high": "0.17"},
        "realtime_minute": "0.08", "tools": {"web_search": "0.01"}}),
    );
    let used = meter(
        json!({"input": 3, "cached_input": 2, "images": 2, "image_tier": "high",
        "realtime_seconds": 1, "video_seconds": 5, "tools": {"code": 1, "web_search": 4}}),
    );
    let lines: Vec<_> = card
        .lines(&used)
        .into_iter()
        .map(|line| {
            let price = line.price.map(|price| price.to_string());
            let amount = line.amount.map(|amount| amount.to_string());
            (line.component, line.quantity, line.per, price, amount)
        })
        .collect();
    let line = |component: &str, quantity, per, price: &str, amount: &str| {
        (
            component.to_owned(),
            quantity,
            per,
            Some(price.to_owned()),
            Some(amount.to_owned()),
        )
    };
    assert_eq!(
        lines,
        [
            line("input", 3, 1_000_000, "1.25", "0.00000375"),
            line("cached_input", 2, 1_000_000, "1.25", "0.0000025"),
            line("image.high", 2, 1, "0.17", "0.34"),
            ("video_second".to_owned(), 5, 1, None, None),
            line(
                "realtime_minute",
                1,
                60,
                "0.08",
                "0.0013333333333333333333…"
            ),
            ("tools.code".to_owned(), 1, 1, None, None),
            line("tools.web_search", 4, 1, "0.01", "0.04"),
        ]
    );
}

#[test]
fn kinds_need_the_prices_they_are_billed_and_held_by() {
    for (kind, prices, faults) in [
        ("text", json!({"input": "1", "output": "2"}), 0),
        ("text", json!({"input": "1"}), 1),
        ("text", json!({"cached_input": "1", "image_output": "1"}), 2),
        ("embedding", json!({"input": "1"}), 0),
        ("embedding", json!({"output": "1"}), 1),
        ("image", json!({"image": "0.04"}), 0),
        ("image", json!({"input": "5", "image_output": "30"}), 0),
        ("image", json!({"input": "5", "output": "30"}), 0),
        ("image", json!({"image_output": "30"}), 1),
        ("image", json!({"input": "5", "usd": "1"}), 1),
        ("video", json!({"video_second": "0.1"}), 0),
        ("video", json!({"video_tokens": {"default": "10"}}), 0),
        ("video", json!({"video_second": "0.1", "usd": "1"}), 0),
        ("video", json!({"usd": "1"}), 1),
        ("audio", json!({"realtime_text_input": "0.1"}), 0),
        ("audio", json!({"stt_second": "0.1"}), 0),
        ("audio", json!({"input": "1", "output": "1"}), 1),
        ("smell", json!({"input": "1", "output": "1"}), 1),
        ("text", json!({}), 2),
    ] {
        let missing = card(prices.clone())
            .billable_as(kind)
            .err()
            .unwrap_or_default();
        assert_eq!(missing.len(), faults, "{kind} {prices}: {missing:?}");
    }
}

#[test]
fn the_dearest_tier_bounds_what_the_upstream_may_choose() {
    let tiers =
        card(json!({"image": {"default": "0.06", "low": "0.04", "medium": "0.06", "2k": "0.08"}}));
    assert_eq!(tiers.dearest_tier(PriceKey::Image), Some("2k"));
    let names: Vec<_> = tiers.tiers(PriceKey::Image).map(|(name, _)| name).collect();
    assert_eq!(names, ["2k", "low", "medium"]);
    assert_eq!(tiers.tiers(PriceKey::VideoSecond).count(), 0);
    let falling = card(json!({"video_second": {"default": "0.4", "480p": "0.1"}}));
    assert_eq!(falling.dearest_tier(PriceKey::VideoSecond), None);
    assert_eq!(falling.dearest_tier(PriceKey::Image), None);
}

#[test]
fn every_error_of_a_card_is_reported() {
    let toml = r#"
        input = "1,25"
        output = 10
        cached_input = 0.5
        cache_write = "-1"
        image_input = true
        image_output = { default = "1" }
        audio_input = "0.0000000000001"
        audio_output = "9223372.036854775808"
        image = { high = "x", 2k = "1", 2K = "2" }
        video_second = ["1"]
        tools = "0.01"
        usd = ""
        long_context = [
            { above_tokens = "200000", input = "1" },
            { input = "1", image = "1" },
            { above_tokens = -5 },
            { above_tokens = 7, output = "a" },
            { above_tokens = 7 },
            "4",
        ]
        outputs = "1"
    "#;
    let members = toml::from_str(toml).unwrap();
    let errors = PriceCard::parse(&members).unwrap_err();
    let messages: Vec<_> = errors.iter().map(ToString::to_string).collect();
    let decimal = r#"must be a decimal string such as "1.25""#;
    let malformed = r#"is not a decimal number such as "1.25""#;
    assert_eq!(
        messages,
        [
            "`audio_input` has more than 12 digits after the point".to_owned(),
            "`audio_output` is too large".to_owned(),
            format!("`cache_write` {malformed}"),
            format!("`cached_input` {decimal}, not a number"),
            "`image.default` is missing".to_owned(),
            "`image.2k` stands twice".to_owned(),
            format!("`image.high` {malformed}"),
            format!("`image_input` {decimal}, not a boolean"),
            format!("`image_output` {decimal}, not a table"),
            format!("`input` {malformed}"),
            format!("`output` {decimal}, not a number"),
            "`outputs` is not a price key".to_owned(),
            "`tools` must be a table of tool names, not a text".to_owned(),
            format!("`usd` {malformed}"),
            format!("`video_second` {decimal}, not a list"),
            "`long_context[0].above_tokens` must be a whole number, not a text".to_owned(),
            "`long_context[1].image` is not a price key".to_owned(),
            "`long_context[1].above_tokens` is missing".to_owned(),
            "`long_context[2].above_tokens` must be a whole number, not a negative number"
                .to_owned(),
            format!("`long_context[3].output` {malformed}"),
            "`long_context[4].above_tokens` stands twice".to_owned(),
            "`long_context[5]` must be a table, not a text".to_owned(),
        ]
    );
    // serde reports one message that contains all errors.
    let whole = toml::from_str::<PriceCard>(toml).unwrap_err().to_string();
    assert!(
        messages.iter().all(|error| whole.contains(error)),
        "{whole}"
    );
}

#[test]
fn a_repeated_name_is_refused() {
    let twice = r#"{"image": {"default": "1", "high": "1", "high": "2"}}"#;
    assert!(serde_json::from_str::<PriceCard>(twice).is_err());
    let twice = r#"{"image": {"default": "1", "Default": "2"}}"#;
    assert!(serde_json::from_str::<PriceCard>(twice).is_err());
}

#[test]
fn a_card_is_written_in_one_form() {
    let read: PriceCard = toml::from_str(
        r#"
        output = "10.50"
        tools = { web_search = "0.010" }
        input = "01.2500"
        image = { 2K = "0.07", default = "0.04", high = "0.17" }
        video_second = { default = "0.10" }
        long_context = { above_tokens = 200000, input = "2.5" }
        "#,
    )
    .unwrap();
    let written = serde_json::to_string(&read).unwrap();
    assert_eq!(
        written,
        concat!(
            r#"{"input":"1.25","output":"10.5","#,
            r#""image":{"default":"0.04","2k":"0.07","high":"0.17"},"video_second":"0.1","#,
            r#""long_context":[{"above_tokens":200000,"input":"2.5","output":"10.5"}],"#,
            r#""tools":{"web_search":"0.01"}}"#,
        )
    );
    assert_eq!(serde_json::from_str::<PriceCard>(&written).unwrap(), read);
}

#[test]
fn exact_amounts_show_every_digit() {
    let show = |prices: serde_json::Value, used: serde_json::Value| {
        let lines = card(prices).lines(&meter(used));
        let sum = lines
            .iter()
            .filter_map(|line| line.amount)
            .try_fold(Exact::ZERO, Exact::checked_add);
        sum.unwrap().to_string()
    };
    assert_eq!(show(json!({}), json!({})), "0");
    assert_eq!(show(json!({"image": "12"}), json!({"images": 1})), "12");
    assert_eq!(
        show(json!({"usd": "0.000000000001"}), json!({"usd_ticks": 1})),
        "0.0000000000000000000001"
    );
    assert_eq!(
        show(
            json!({"usd": "0.3", "image": "2"}),
            json!({"usd_ticks": 1_000_000_000, "images": 1})
        ),
        "2.03"
    );
}
