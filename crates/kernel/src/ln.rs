//! Natural logarithm in operations that every machine rounds alike; the results of libraries differ.

/// Return the natural logarithm of a positive number.
///
/// x = m·2ᵉ with m from 0.5 to 1, and ln m = 2·(z + z³/3 + z⁵/5 + …) with z = (m−1)/(m+1), so |z| ≤ 1/3: 17 terms are
/// within 2⁻⁵³ of it.
pub(crate) fn ln(x: f64) -> f64 {
    const LN_2: f64 = std::f64::consts::LN_2;
    let bits = x.to_bits();
    let exponent = (bits >> 52) as i64 - 1022;
    let m = f64::from_bits(bits & 0x000F_FFFF_FFFF_FFFF | 1022 << 52);
    let z = (m - 1.0) / (m + 1.0);
    let square = z * z;
    let sum = (0..17).rev().fold(0.0, |sum, term| sum * square + 1.0 / f64::from(2 * term + 1));
    exponent as f64 * LN_2 + 2.0 * z * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_equals_the_library_up_to_its_last_bits() {
        for i in 1..10_000_u64 {
            let x = (crate::hash::mix(i) >> 11) as f64 / (1_u64 << 53) as f64;
            for x in [x, i as f64 * x] {
                assert!((ln(x) - x.ln()).abs() <= 4.0 * f64::EPSILON * x.ln().abs().max(1.0), "{x}");
            }
        }
    }
}
