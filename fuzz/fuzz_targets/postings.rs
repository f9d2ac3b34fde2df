//! Target `postings` for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| minwise_fuzz::postings::run(data));
