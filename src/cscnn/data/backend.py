"""The optional library for HDF5 files."""

from __future__ import annotations

from typing import Any


def h5py() -> Any:
    """The package h5py, or an error that says what to install."""
    try:
        import h5py
    except ImportError as error:
        raise ImportError("data files need h5py: pip install 'cscnn[data]'", name="h5py") from error
    return h5py
