//! Sixteen-bit floating-point numbers (IEEE 754 binary16), for files.

/// The bits of the nearest 16-bit number, ties to even; beyond its range, infinity.
pub(super) fn bits(value: f32) -> u16 {
    let word = value.to_bits();
    let (sign, magnitude) = ((word >> 16) as u16 & 0x8000, word & 0x7fff_ffff);
    if magnitude > 0x7f80_0000 {
        return sign | 0x7e00;
    }
    // Everything from 65520 on rounds to infinity.
    if magnitude >= 0x477f_f000 {
        return sign | 0x7c00;
    }
    // Below the normal numbers, the spacing is 2⁻²⁴: the addition rounds to it and leaves the multiple in the low bits.
    if magnitude < 0x3880_0000 {
        let shifted = f32::from_bits(magnitude) + 0.5;
        return sign | (shifted.to_bits() - 0x3f00_0000) as u16;
    }
    // Ten bits of the fraction are kept; the exponent is biased by 15 instead of 127.
    let odd = (magnitude >> 13) & 1;
    sign | ((magnitude + 0xfff + odd - 0x3800_0000) >> 13) as u16
}

/// The number with these bits.
pub(super) fn value(bits: u16) -> f32 {
    let (sign, exponent, fraction) =
        (u32::from(bits >> 15) << 31, (bits >> 10) & 0x1f, u32::from(bits & 0x3ff));
    match exponent {
        // A multiple of 2⁻²⁴.
        0 => f32::from_bits(sign | (fraction as f32 * 2f32.powi(-24)).to_bits()),
        31 => f32::from_bits(sign | 0x7f80_0000 | (fraction << 13)),
        _ => f32::from_bits(sign | ((u32::from(exponent) + 112) << 23) | (fraction << 13)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_survives_and_others_go_to_the_nearest() {
        for word in 0..=u16::MAX {
            let number = value(word);
            if number.is_nan() {
                assert!(value(bits(number)).is_nan());
            } else {
                assert_eq!(bits(number), word, "{number}");
            }
        }
        for (number, rounded) in [
            (1.0 + 1.0 / 2048.0, 1.0),
            (1.0 + 3.0 / 2048.0, 1.0 + 4.0 / 2048.0),
            (65519.0, 65504.0),
            (65520.0, f32::INFINITY),
            (-1e9, f32::NEG_INFINITY),
            (2f32.powi(-25), 0.0),
            (1.5 * 2f32.powi(-24), 2f32.powi(-23)),
            (-0.0, 0.0),
        ] {
            assert_eq!(value(bits(number)), rounded, "{number}");
        }
    }
}
