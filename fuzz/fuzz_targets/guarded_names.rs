#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tollgate_fuzz::bodies::guarded_names(data));
