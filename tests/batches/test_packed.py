"""What is told of a model file that was sent to a worker."""

import pytest

from hetcal._exceptions import FileFormatError, InputError
from hetcal.batches.packed import _from_disk


@pytest.mark.parametrize("kind", [FileFormatError, InputError])
def test_errors_name_the_file_that_the_user_knows(kind):
    class Detailed(kind):
        def __init__(self, path, reason):
            super().__init__(f"{path}: {reason}")

    def read(path):
        raise Detailed(path, "no model")

    with pytest.raises(kind, match=r"^s3://models/m\.hetcal: no model$"):
        _from_disk(b"", "s3://models/m.hetcal", read)
