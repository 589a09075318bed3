#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| upstream::any_chunked(data));
