//! The pseudo-random sequence of `_srand` and `_rand`: the same numbers for the same seed, on every machine.

/// SplitMix64. Its whole state is a counter, so every seed, zero too, starts a good sequence.
#[derive(Default)]
pub(super) struct Generator {
    state: u64,
}

impl Generator {
    pub(super) fn new(seed: u64) -> Generator {
        Generator { state: seed }
    }
    /// The next number of the sequence, at least 0 and less than 1.
    pub(super) fn next(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        // The upper 53 bits are what a double can hold exactly.
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A seed nobody can guess, for a test that names none.
pub(super) fn unpredictable() -> u32 {
    uuid::Uuid::new_v4().as_fields().0
}

/// A number in 0..1 that nothing predicts.
pub(super) fn fraction() -> f64 {
    const BITS: u32 = 53;
    let drawn = uuid::Uuid::new_v4().as_u128() as u64 & ((1 << BITS) - 1);
    drawn as f64 / (1u64 << BITS) as f64
}

#[cfg(test)]
mod tests {
    use super::Generator;

    #[test]
    fn a_seed_gives_one_sequence_spread_over_the_unit_interval() {
        let take = |seed| {
            let mut generator = Generator::new(seed);
            (0..1000).map(|_| generator.next()).collect::<Vec<_>>()
        };
        assert_eq!(take(7), take(7));
        assert_ne!(take(7), take(8));
        let sequence = take(0);
        assert!(sequence.iter().all(|n| (0.0..1.0).contains(n)));
        let mean = sequence.iter().sum::<f64>() / 1000.0;
        assert!((0.45..0.55).contains(&mean), "{mean}");
    }
}
