"""Random numbers with an address: the Philox 4x32-10 generator, streams and uniform draws, as scalar functions."""

from __future__ import annotations

from typing import NamedTuple

from banditune.core.arrays import IntArray
from banditune.core.scalar import addressed_by, noinline_on_gpu, scalar

MASK32 = 0xFFFFFFFF


WORD_BITS = 32
"""Pulls in a word of 0/1 rewards."""


NO_WORD = MASK32
"""The number of no word: integers that a shortcut keeps are from 0 to this on a GPU."""


REWARD_STREAM = 0


UNSEEN_STREAM = 1


AGENT_STREAM = 2


PSEUDO_STREAM = 3


TABLE_STREAM = 4
"""Kinds of draws, the lowest byte of an address: pulled rewards, the best arm's rewards on steps where it was not
pulled, the agent's own draws, pseudo-rewards, tables of rewards and their rows."""


class Stream(NamedTuple):
    """A place to draw from. The cursor is the Philox counter: (block, pull or block / 2^32, arm, kind and noise)."""

    key0: int
    key1: int
    cursor: IntArray


@scalar
def philox(c0, c1, c2, c3, key0, key1):
    """Ten rounds of Philox 4x32: four 32-bit words out of a counter and a key.

    The rounds are written out because a loop around calls of this function is then turned into vector code.
    """
    c0, c1, c2, c3 = mix_round(c0, c1, c2, c3, key0, key1)
    c0, c1, c2, c3 = mix_round(c0, c1, c2, c3, (key0 + 0x9E3779B9) & MASK32, (key1 + 0xBB67AE85) & MASK32)
    c0, c1, c2, c3 = mix_round(c0, c1, c2, c3, (key0 + 2 * 0x9E3779B9) & MASK32, (key1 + 2 * 0xBB67AE85) & MASK32)
    c0, c1, c2, c3 = mix_round(c0, c1, c2, c3, (key0 + 3 * 0x9E3779B9) & MASK32, (key1 + 3 * 0xBB67AE85) & MASK32)
    c0, c1, c2, c3 = mix_round(c0, c1, c2, c3, (key0 + 4 * 0x9E3779B9) & MASK32, (key1 + 4 * 0xBB67AE85) & MASK32)
    c0, c1, c2, c3 = mix_round(c0, c1, c2, c3, (key0 + 5 * 0x9E3779B9) & MASK32, (key1 + 5 * 0xBB67AE85) & MASK32)
    c0, c1, c2, c3 = mix_round(c0, c1, c2, c3, (key0 + 6 * 0x9E3779B9) & MASK32, (key1 + 6 * 0xBB67AE85) & MASK32)
    c0, c1, c2, c3 = mix_round(c0, c1, c2, c3, (key0 + 7 * 0x9E3779B9) & MASK32, (key1 + 7 * 0xBB67AE85) & MASK32)
    c0, c1, c2, c3 = mix_round(c0, c1, c2, c3, (key0 + 8 * 0x9E3779B9) & MASK32, (key1 + 8 * 0xBB67AE85) & MASK32)
    c0, c1, c2, c3 = mix_round(c0, c1, c2, c3, (key0 + 9 * 0x9E3779B9) & MASK32, (key1 + 9 * 0xBB67AE85) & MASK32)
    return c0, c1, c2, c3


@scalar
def mix_round(c0, c1, c2, c3, key0, key1):
    """One round of Philox 4x32."""
    product0 = 0xD2511F53 * c0
    product1 = 0xCD9E8D57 * c2
    return (
        ((product1 >> 32) & MASK32) ^ c1 ^ key0,
        product1 & MASK32,
        ((product0 >> 32) & MASK32) ^ c3 ^ key1,
        product0 & MASK32,
    )


@addressed_by("pull")
@scalar
def seek(stream, arm, pull):
    """Point a stream at the draws of one pull of one arm."""
    stream.cursor[0] = 0
    stream.cursor[1] = pull
    stream.cursor[2] = arm


@scalar
def draw_block(stream):
    """The next four 32-bit words at this address."""
    cursor = stream.cursor
    first = int(cursor[0])
    cursor[0] = (first + 1) & MASK32
    if first == MASK32:
        cursor[1] += 1
    return philox(first, int(cursor[1]), int(cursor[2]), int(cursor[3]), stream.key0, stream.key1)


class BufferedStream(NamedTuple):
    """A stream whose next block is computed ahead of time, while the processor is busy with the present one."""

    key0: int
    key1: int
    cursor: IntArray
    ready: IntArray


@scalar
def make_buffered_stream(stream, memory):
    """A ready stream from a stream and four integers of memory."""
    made = BufferedStream(stream.key0, stream.key1, stream.cursor, memory)
    draw_buffered_block(made)
    return made


@noinline_on_gpu
def draw_buffered_block(stream):
    """The block computed last time; computes the next one."""
    ready = stream.ready
    w0, w1, w2, w3 = int(ready[0]), int(ready[1]), int(ready[2]), int(ready[3])
    ready[0], ready[1], ready[2], ready[3] = draw_block(stream)
    return w0, w1, w2, w3


@scalar
def convert_to_unit(high, low):
    """A number in the open interval (0, 1) from 52 of 64 random bits; the midpoints of 2^52 cells."""
    return ((high << 20 | low >> 12) + 0.5) * (1.0 / 4503599627370496.0)


@scalar
def uniform(stream):
    """A number in the open interval (0, 1)."""
    w0, w1, _, _ = draw_block(stream)
    return convert_to_unit(w0, w1)


@scalar
def uniform_pair(stream):
    """Two independent uniforms for the price of one."""
    w0, w1, w2, w3 = draw_block(stream)
    return convert_to_unit(w0, w1), convert_to_unit(w2, w3)


@scalar
def buffered_uniform_pair(stream):
    """Two independent uniforms out of a block that is ready."""
    w0, w1, w2, w3 = draw_buffered_block(stream)
    return convert_to_unit(w0, w1), convert_to_unit(w2, w3)
