//! The memory of a process, read in blocks: buckets are small, many, and near each other.

use std::io;

use crate::processes::ProcessMemory;

/// Bytes that are read at a time.
const BLOCK: u64 = 16 << 10;

/// Blocks that are kept: each thread of the Go scheduler takes its buckets from a region of its own.
const BLOCKS: usize = 64;

/// What was read of a process's memory, until this is dropped.
#[derive(Debug)]
pub(super) struct MemoryBlocks<'memory> {
    memory: &'memory ProcessMemory,
    blocks: Vec<Block>,
}

#[derive(Clone, Debug, Default)]
struct Block {
    /// `None` before anything was read to this place.
    start: Option<u64>,
    /// Shorter than [`BLOCK`] where what follows is not mapped.
    bytes: Vec<u8>,
}

impl<'memory> MemoryBlocks<'memory> {
    pub(super) fn new(memory: &'memory ProcessMemory) -> Self {
        Self {
            memory,
            blocks: vec![Block::default(); BLOCKS],
        }
    }

    /// Fills a buffer from an address on.
    pub(super) fn read(&mut self, address: u64, buffer: &mut [u8]) -> io::Result<()> {
        let mut done = 0;
        while done < buffer.len() {
            let at = address.checked_add(done as u64);
            let at = at.ok_or(io::ErrorKind::InvalidInput)?;
            let (memory, block) = (self.memory, self.block(at - at % BLOCK));
            let bytes = block.get((at % BLOCK) as usize..).unwrap_or_default();
            if bytes.is_empty() {
                // A block may begin before what is mapped.
                return memory.read_exact(at, &mut buffer[done..]);
            }
            let count = bytes.len().min(buffer.len() - done);
            buffer[done..done + count].copy_from_slice(&bytes[..count]);
            done += count;
        }
        Ok(())
    }

    /// A number of eight bytes.
    pub(super) fn word(&mut self, address: u64) -> io::Result<u64> {
        let mut word = [0; 8];
        self.read(address, &mut word)?;
        Ok(u64::from_le_bytes(word))
    }

    /// Numbers of eight bytes, one behind the other.
    pub(super) fn words(&mut self, address: u64, count: usize) -> io::Result<Vec<u64>> {
        let mut bytes = vec![0; count * 8];
        self.read(address, &mut bytes)?;
        let (words, _) = bytes.as_chunks();
        Ok(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
    }

    fn block(&mut self, start: u64) -> &[u8] {
        let place = (start / BLOCK) as usize % BLOCKS;
        let block = &mut self.blocks[place];
        if block.start != Some(start) {
            block.start = Some(start);
            let bytes = self.memory.read(start, BLOCK as usize);
            block.bytes = bytes.unwrap_or_default();
        }
        &block.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_memory_is_read_across_blocks_and_not_beyond() {
        let memory = ProcessMemory::open(std::process::id()).expect("our own memory");
        let mut blocks = MemoryBlocks::new(&memory);
        let numbers: Vec<u64> = (0..10_000).collect();
        let address = numbers.as_ptr() as u64;
        assert_eq!(
            blocks.words(address, numbers.len()).expect("mapped"),
            numbers
        );
        assert_eq!(blocks.word(address + 80).expect("mapped"), 10);
        assert!(blocks.word(0x10).is_err(), "nothing is mapped there");
        assert!(blocks.word(u64::MAX - 3).is_err());
    }
}
