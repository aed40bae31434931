"""The fuzzer: python -m tests.fuzz.run -runs=100000 FOLDER tests/fuzz/corpus

The options are libFuzzer's. Inputs that lead to new code are kept in FOLDER. Needs atheris.
"""

import importlib
import sys
from typing import Any

atheris: Any = importlib.import_module("atheris")  # it carries no types

with atheris.instrument_imports(include=["rm_service.domain"]):
    from tests.fuzz.grammars import one_input

if __name__ == "__main__":
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
