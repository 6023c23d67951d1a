//! Bytes as text: hexadecimal, and base64 in the alphabets of files and of URLs.

use base64::Engine;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Bits that a last digit has too many are ignored, as the real server ignores them.
const CONFIG: GeneralPurposeConfig = GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true);
const PADDED: GeneralPurpose = GeneralPurpose::new(&STANDARD, CONFIG);
const LENIENT: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, CONFIG.with_decode_padding_mode(DecodePaddingMode::Indifferent));
const URL: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    CONFIG.with_encode_padding(false).with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    hex::encode(bytes)
}
/// `None` for anything but pairs of hexadecimal digits, of either case.
pub fn from_hex(text: &str) -> Option<Vec<u8>> {
    hex::decode(text).ok()
}

/// Base64 with padding.
pub fn base64(bytes: &[u8]) -> String {
    PADDED.encode(bytes)
}
/// Base64 that must have its padding.
pub fn from_base64(text: &str) -> Option<Vec<u8>> {
    PADDED.decode(text).ok()
}
/// Base64 whose padding may be missing.
pub fn from_base64_lenient(text: &str) -> Option<Vec<u8>> {
    LENIENT.decode(text).ok()
}
/// Base64 with `-` and `_`, without padding.
pub fn base64_url(bytes: &[u8]) -> String {
    URL.encode(bytes)
}
/// Base64 with `-` and `_`, with or without padding.
pub fn from_base64_url(text: &str) -> Option<Vec<u8>> {
    URL.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_is_pairs_of_digits_and_nothing_else() {
        assert_eq!(hex(&[0, 0xAB, 0xff]), "00abff");
        assert_eq!(from_hex("00aBFf"), Some(vec![0, 0xAB, 0xff]));
        assert_eq!(from_hex(""), Some(Vec::new()));
        for bad in ["0", "+1", "-1", "0x", " 1", "g0", "é"] {
            assert_eq!(from_hex(bad), None, "{bad}");
        }
    }

    #[test]
    fn base64_forms_differ_in_alphabet_and_padding() {
        let bytes = [0xfb, 0xff, 0xfe, 1];
        assert_eq!((base64(&bytes).as_str(), base64_url(&bytes).as_str()), ("+//+AQ==", "-__-AQ"));
        let all = [from_base64, from_base64_lenient, from_base64_url];
        for (text, accepted) in [
            ("+//+AQ==", [true, true, false]),
            ("+//+AQ", [false, true, false]),
            ("-__-AQ==", [false, false, true]),
            ("-__-AQ", [false, false, true]),
            ("+//+AR==", [true, true, false]),
            ("+//+A", [false; 3]),
            ("+//+AQ===", [false; 3]),
            ("+//+ AQ==", [false; 3]),
        ] {
            for (decode, accepted) in all.iter().zip(accepted) {
                assert_eq!(decode(text), accepted.then(|| bytes.to_vec()), "{text}");
            }
        }
        assert!(all.iter().all(|decode| decode("") == Some(Vec::new())));
    }
}
