"""Make the cards of data sets and keep them: ``python -m ib_core.datasets iris uci/zoo``.

For processes that plan but never train: reading data takes libraries and memory that they would
keep for ever, and that are gone when this command ends.
"""

import sys
from contextlib import suppress

from ib_core.datasets import data_card
from ib_core.errors import IBError

if __name__ == "__main__":
    for name in sys.argv[1:]:
        with suppress(IBError):  # whoever needs the card asks again, and is told
            data_card(name)
