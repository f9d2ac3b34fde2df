//! Target `join` for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| minwise_fuzz::join::run(data));
