"""Random numbers with an address, as scalar functions: the Philox 4x32-10 generator, streams and uniform draws."""

from __future__ import annotations

from typing import NamedTuple

from banditune.core.arrays import IntArray
from banditune.core.scalar import addressed_by, noinline_on_gpu, scalar

MASK32 = 0xFFFFFFFF


WORD_BITS = 32
"""The number of pulls in a word of 0/1 rewards."""


NO_WORD = MASK32
"""The value of a missing word. On a GPU, integers of a shortcut are from 0 to this number."""


REWARD_STREAM = 0


UNSEEN_STREAM = 1


AGENT_STREAM = 2


PSEUDO_STREAM = 3


TABLE_STREAM = 4
"""Kinds of draws, the lowest byte of an address.

They are rewards of pulls, rewards of the best arm on steps at which it was not pulled, draws of the policy,
pseudo-rewards, and tables of rewards and their rows.
"""


class Stream(NamedTuple):
    """An address of random numbers. The cursor is the Philox counter: block, pull or block / 2^32, arm, kind and noise."""

    key0: int
    key1: int
    cursor: IntArray


@scalar
def philox(c0, c1, c2, c3, key0, key1):
    """Compute ten rounds of Philox 4x32: four 32-bit words from a counter and a key.

    The rounds are written out because the compiler turns a loop around calls of this function into vector code.
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
    """Compute one round of Philox 4x32."""
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
    """Set a stream to the address of one pull of one arm.

    Parameters
    ----------
    stream : Stream
        The stream of rewards.
    arm : int
        The arm.
    pull : int
        The number of its earlier pulls.
    """
    stream.cursor[0] = 0
    stream.cursor[1] = pull
    stream.cursor[2] = arm


@scalar
def draw_block(stream):
    """Draw the next four 32-bit words at this address."""
    cursor = stream.cursor
    first = int(cursor[0])
    cursor[0] = (first + 1) & MASK32
    if first == MASK32:
        cursor[1] += 1
    return philox(first, int(cursor[1]), int(cursor[2]), int(cursor[3]), stream.key0, stream.key1)


class BufferedStream(NamedTuple):
    """A stream that computes its next block in advance, in parallel with the use of the present one."""

    key0: int
    key1: int
    cursor: IntArray
    next_block: IntArray


@scalar
def make_buffered_stream(stream, memory):
    """Make a buffered stream from a stream and four integers of memory."""
    buffered = BufferedStream(stream.key0, stream.key1, stream.cursor, memory)
    draw_buffered_block(buffered)
    return buffered


@noinline_on_gpu
def draw_buffered_block(stream):
    """Return the buffered block, and compute the next one."""
    block = stream.next_block
    w0, w1, w2, w3 = int(block[0]), int(block[1]), int(block[2]), int(block[3])
    block[0], block[1], block[2], block[3] = draw_block(stream)
    return w0, w1, w2, w3


@scalar
def convert_to_unit(high, low):
    """Convert 52 of 64 random bits to a number in the open interval (0, 1): the midpoints of 2^52 cells."""
    return ((high << 20 | low >> 12) + 0.5) * (1.0 / 4503599627370496.0)


@scalar
def uniform(stream):
    """Draw a number in the open interval (0, 1).

    Parameters
    ----------
    stream : Stream
        Source of random numbers: the last argument of `choose`, `update` or `reward`.
    """
    w0, w1, _, _ = draw_block(stream)
    return convert_to_unit(w0, w1)


@scalar
def uniform_pair(stream):
    """Draw two independent uniforms from one block."""
    w0, w1, w2, w3 = draw_block(stream)
    return convert_to_unit(w0, w1), convert_to_unit(w2, w3)


@scalar
def buffered_uniform_pair(stream):
    """Draw two independent uniforms from a buffered block."""
    w0, w1, w2, w3 = draw_buffered_block(stream)
    return convert_to_unit(w0, w1), convert_to_unit(w2, w3)
