#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| http_server::any_requests(data));
