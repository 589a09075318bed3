#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tollgate_fuzz::event_streams::event_stream(data));
