"""Hostile model files, made by code: what an attacker could hand to `polyseme.load`.

Each is a function that writes a model into an empty folder and returns the path to open. `hostile` says what the answer
must be: an error in one sentence that matches a pattern, or `OPENS`. `attack` opens them one after the other in a
process of its own and measures time and memory.
"""

from hostile_models import archives, hdf5, native, pickles, tasks, transformers, vectors
from hostile_models.case import CASES, OPENS, Case

__all__ = ["CASES", "OPENS", "Case", "archives", "hdf5", "native", "pickles", "tasks", "transformers", "vectors"]
