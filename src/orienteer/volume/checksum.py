"""A hash by which the content of a volume is recognised."""

import hashlib

import numpy as np

from orienteer.compute.arrays import to_numpy
from orienteer.volume.volume import Volume


def checksum(volume: Volume) -> str:
    """A hash of the values, as float32, and of shape, voxel size and origin.

    >>> one = Volume(np.zeros((2, 2, 2)), voxel_size=3.0)
    >>> checksum(one) == checksum(Volume(np.zeros((2, 2, 2)), voxel_size=3.0, name="another name"))
    True
    >>> checksum(one) == checksum(Volume(np.zeros((2, 2, 2)), voxel_size=3.1))
    False
    """
    hashed = hashlib.blake2b(digest_size=16)
    hashed.update(np.ascontiguousarray(to_numpy(volume.values), "<f4").tobytes())
    hashed.update(repr((volume.shape, volume.voxel_size, volume.origin)).encode())
    return hashed.hexdigest()
