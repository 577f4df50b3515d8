"""`python -m routescope ...`"""

import sys

from routescope import main

sys.exit(main())
