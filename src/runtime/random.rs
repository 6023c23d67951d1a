//! Random numbers: the thread's generator, which nobody can guess, or that of the simulation.

use rand::distr::uniform::{SampleRange, SampleUniform};
use rand::distr::{Distribution, StandardUniform};
use rand::{Rng, RngCore};

use crate::simulation;

/// The source of random numbers. Fit for keys and nonces outside simulations.
#[derive(Debug, Clone, Copy, Default)]
pub struct Randomness;

impl RngCore for Randomness {
    fn next_u32(&mut self) -> u32 {
        simulation::with(|world| world.rng().next_u32()).unwrap_or_else(|| rand::rng().next_u32())
    }
    fn next_u64(&mut self) -> u64 {
        simulation::with(|world| world.rng().next_u64()).unwrap_or_else(|| rand::rng().next_u64())
    }
    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        if simulation::with(|world| world.rng().fill_bytes(bytes)).is_none() {
            rand::rng().fill_bytes(bytes);
        }
    }
}

/// The source, for what takes a generator.
pub fn rng() -> Randomness {
    Randomness
}

/// A random value of a type, all of its values being equally likely.
pub fn random<T>() -> T
where
    StandardUniform: Distribution<T>,
{
    Randomness.random()
}

/// A random value of a range.
pub fn random_range<T: SampleUniform>(range: impl SampleRange<T>) -> T {
    Randomness.random_range(range)
}

/// The bytes of a new UUID, version 4.
pub fn uuid() -> [u8; 16] {
    uuid::Builder::from_random_bytes(random()).into_uuid().into_bytes()
}
